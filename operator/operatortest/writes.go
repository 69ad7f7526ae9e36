package operatortest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"
	"k8s.io/apimachinery/pkg/types"
)

// Write is the record of one counted write.
type Write struct {
	Request
	// Fault is what a rule did to it; empty when it passed.
	Fault string
	// Status is the HTTP status the API server answered with; 0 when it gave no
	// answer, or has not yet. A status that a rule made up is not kept here.
	Status int
	// Body is what was sent: only with [KeepBodies], and never that of a Secret.
	Body []byte
}

// String is, for example, "write 3: PATCH configmaps shop/web (fail after)".
func (w Write) String() string {
	text := fmt.Sprintf("write %d: %s", w.N, w.Request)
	if w.Fault != "" {
		text += " (" + w.Fault + ")"
	}
	return text
}

// Writes returns the counted writes so far, in the order in which they arrived.
// The slice and its elements are the caller's, their bodies are shared.
func (f *Faults) Writes() []Write {
	f.mu.Lock()
	defer f.mu.Unlock()
	writes := make([]Write, 0, len(f.writes))
	for _, write := range f.writes {
		writes = append(writes, *write)
	}
	return writes
}

// Count returns how many writes were counted so far.
func (f *Faults) Count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.writes)
}

func newWrite(request Request, body []byte, keepBody bool) *Write {
	write := &Write{Request: request}
	if keepBody && !request.isSecret() {
		write.Body = slices.Clone(body)
	}
	return write
}

func (r Request) isSecret() bool { return r.Group == "" && r.Resource == "secrets" }

// head is what a write's record needs of its body: the name of the object, and
// the dry run that delete options ask for; and what an answer tells: which objects were written.
type head struct {
	Metadata headMeta `json:"metadata"`
	DryRun   []string `json:"dryRun"`
	Items    []head   `json:"items"`
	Details  struct {
		UID types.UID `json:"uid"`
	} `json:"details"`
}

type headMeta struct {
	Name         string    `json:"name"`
	GenerateName string    `json:"generateName"`
	UID          types.UID `json:"uid"`
}

// uids are those of the object, of the items of a list, or of what is gone.
func (h head) uids() []types.UID {
	var uids []types.UID
	for _, item := range append(h.Items, h) {
		for _, uid := range []types.UID{item.Metadata.UID, item.Details.UID} {
			if uid != "" {
				uids = append(uids, uid)
			}
		}
	}
	return uids
}

func (h head) name() string {
	if h.Metadata.Name == "" && h.Metadata.GenerateName != "" {
		return h.Metadata.GenerateName + "*"
	}
	return h.Metadata.Name
}

// readHead reads the head of a body in any of the API's encodings. What cannot be
// read is left empty: refusing a malformed body is the API server's part.
func readHead(contentType string, body []byte) head {
	var h head
	switch contentType {
	case runtime.ContentTypeProtobuf:
		return readProtobufHead(body)
	case runtime.ContentTypeCBOR:
		if direct.Unmarshal(body, &h) != nil {
			return head{}
		}
	default:
		if json.Unmarshal(body, &h) != nil {
			return head{}
		}
	}
	return h
}

// mediaType is that of a body, without its parameters.
func mediaType(header http.Header) string {
	return strings.TrimSpace(strings.Split(header.Get("Content-Type"), ";")[0])
}

// protobufMagic precedes each Protocol Buffers message of the API, whose envelope
// is a runtime.Unknown.
const protobufMagic = "k8s\x00"

// readProtobufHead relies on field 1 being the metadata in every API type that has
// a Protocol Buffers form, which PartialObjectMetadata is defined by.
func readProtobufHead(body []byte) head {
	var h head
	if len(body) < len(protobufMagic) || string(body[:len(protobufMagic)]) != protobufMagic {
		return h
	}
	var envelope runtime.Unknown
	if envelope.Unmarshal(body[len(protobufMagic):]) != nil {
		return h
	}
	switch envelope.Kind {
	case "DeleteOptions":
		var options metav1.DeleteOptions
		if options.Unmarshal(envelope.Raw) == nil {
			h.DryRun = options.DryRun
		}
		return h
	case "Status":
		var status metav1.Status
		if status.Unmarshal(envelope.Raw) == nil && status.Details != nil {
			h.Details.UID = status.Details.UID
		}
		return h
	}
	if strings.HasSuffix(envelope.Kind, "List") {
		var list metav1.PartialObjectMetadataList
		if list.Unmarshal(envelope.Raw) == nil {
			for _, item := range list.Items {
				h.Items = append(h.Items, head{Metadata: headMeta{UID: item.UID}})
			}
		}
		return h
	}
	var object metav1.PartialObjectMetadata
	if object.Unmarshal(envelope.Raw) == nil {
		h.Metadata.Name, h.Metadata.GenerateName, h.Metadata.UID = object.Name, object.GenerateName, object.UID
	}
	return h
}
