package informer

import (
	"bytes"
	"encoding/json"
	"net/http"
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
)

// target is what a request writes.
type target struct {
	resource schema.GroupResource
	key      Key
}

// targetOf reads from the path of a request what it writes; it is false if it writes no object.
func targetOf(r *http.Request) (target, bool) {
	switch r.Method {
	case http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete:
	default:
		return target{}, false
	}
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	var found target
	at := -1
	for i, part := range parts {
		if part == "api" && i+2 < len(parts) {
			at = i + 2
			break
		}
		if part == "apis" && i+3 < len(parts) {
			found.resource.Group, at = parts[i+1], i+3
			break
		}
	}
	if at < 0 {
		return target{}, false
	}
	parts = parts[at:]
	if parts[0] == "namespaces" && len(parts) > 2 && parts[2] != "status" && parts[2] != "finalize" {
		found.key.Namespace, parts = parts[1], parts[2:]
	}
	found.resource.Resource = parts[0]
	if len(parts) > 1 {
		found.key.Name = parts[1]
	}
	switch {
	case r.Method == http.MethodPost && len(parts) > 1: // A subresource with an object of its own.
		return target{}, false
	case r.Method == http.MethodDelete && len(parts) == 1: // A collection.
		return target{}, false
	case len(parts) > 2 && parts[2] != "status" && parts[2] != "finalize" && parts[2] != "approval":
		return target{}, false
	}
	return found, true
}

// isDryRun tells whether a request changes nothing. Deletions say so in what is sent.
func isDryRun(r *http.Request) bool {
	if r.URL.Query().Has("dryRun") {
		return true
	}
	return r.Method == http.MethodDelete && len(deleteOptions(sent(r)).DryRun) > 0
}

// readName reads the name of an object that is created from what is sent.
func (t *target) readName(r *http.Request) {
	if sent := sentMeta(r); sent != nil {
		t.key.Name = sent.Name
	}
}

// baseOf returns the version that a request says to be based on, Created or changed if that is what it has done, and otherwise nothing.
func baseOf(r *http.Request, response *http.Response) string {
	switch {
	case response.StatusCode == http.StatusCreated:
		return Created
	case r.Method == http.MethodDelete:
		return requiredVersion(sent(r))
	case r.Header.Get("Content-Type") == string(types.JSONPatchType):
		return patchedVersion(sent(r))
	}
	if sent := sentMeta(r); sent != nil {
		return sent.ResourceVersion
	}
	return ""
}

// deleteOptions returns what is sent with a deletion, of which there may be nothing.
func deleteOptions(content []byte) *metav1.DeleteOptions {
	options := &metav1.DeleteOptions{}
	if json.Unmarshal(content, options) == nil {
		return options
	}
	if obj, _, err := scheme.Codecs.UniversalDeserializer().Decode(content, nil, nil); err == nil {
		if options, ok := obj.(*metav1.DeleteOptions); ok {
			return options
		}
	}
	return &metav1.DeleteOptions{}
}

// requiredVersion returns the version that a deletion has as its precondition, or nothing.
func requiredVersion(content []byte) string {
	required := deleteOptions(content).Preconditions
	if required == nil || required.ResourceVersion == nil {
		return ""
	}
	return *required.ResourceVersion
}

// patchedVersion returns the version that a JSON patch tests, or else changed if it can't have been accepted without changing something.
func patchedVersion(content []byte) (base string) {
	var ops []patchOp
	_ = json.Unmarshal(content, &ops) // What is wrong with it, the server has refused.
	tested := map[string]any{}
	for _, op := range ops {
		value, known := tested[op.Path]
		sets := op.Op == "add" || op.Op == "replace"
		switch {
		case op.Op == "test" && op.Path == "/metadata/resourceVersion":
			version, _ := op.Value.(string)
			return version
		case op.Op == "test":
			tested[op.Path] = op.Value
		case op.Op == "remove", sets && strings.HasSuffix(op.Path, "/-"), sets && known && !reflect.DeepEqual(value, op.Value):
			base = changed
		}
	}
	return base
}

// protobufPrefix is what Kubernetes begins protobuf with, before a runtime.Unknown. All kinds have their metadata as the first field.
var protobufPrefix = []byte("k8s\x00")

// sentMeta returns the metadata of the object that is sent, or nil if there is none.
func sentMeta(r *http.Request) *metav1.ObjectMeta {
	content := sent(r)
	if content == nil {
		return nil
	}
	var partial metav1.PartialObjectMetadata
	if json.Unmarshal(content, &partial) == nil {
		return &partial.ObjectMeta
	}
	if encoded, ok := bytes.CutPrefix(content, protobufPrefix); ok {
		var unknown runtime.Unknown
		if unknown.Unmarshal(encoded) != nil || partial.Unmarshal(unknown.Raw) != nil {
			return nil
		}
		return &partial.ObjectMeta
	}
	if obj, _, err := scheme.Codecs.UniversalDeserializer().Decode(content, nil, nil); err == nil {
		if o, ok := obj.(metav1.Object); ok {
			return &metav1.ObjectMeta{Name: o.GetName(), ResourceVersion: o.GetResourceVersion()}
		}
	}
	return nil
}
