package informer

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
)

// target is the object that a request writes.
type target struct {
	resource schema.GroupResource
	key      Key
}

// targetOf reads from the path of a request which object it writes. It returns false if it writes
// none.
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
	if found.key.Name == "" {
		found.key.Name = sentMeta(r).Name
	}
	return found, true
}

// isDryRun reports whether a request changes nothing. A deletion may say so in its body.
func isDryRun(r *http.Request) bool {
	if r.URL.Query().Has("dryRun") {
		return true
	}
	return r.Method == http.MethodDelete && len(deleteOptions(sent(r)).DryRun) > 0
}

// baseOf returns the version that a request was conditional on, [Created] if it created the object,
// and otherwise "".
func baseOf(r *http.Request, response *http.Response) string {
	switch {
	case response.StatusCode == http.StatusCreated:
		return Created
	case r.Method == http.MethodDelete:
		return requiredVersion(sent(r))
	case r.Header.Get("Content-Type") == string(types.JSONPatchType):
		return patchedVersion(sent(r))
	}
	return sentMeta(r).ResourceVersion
}

// deleteOptions returns the options in the body of a deletion, which may be empty.
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

// requiredVersion returns the version in the precondition of a deletion, or "".
func requiredVersion(content []byte) string {
	required := deleteOptions(content).Preconditions
	if required == nil || required.ResourceVersion == nil {
		return ""
	}
	return *required.ResourceVersion
}

// patchedVersion returns the version that a JSON patch tests or sets, and so requires, or "".
func patchedVersion(content []byte) string {
	var ops []patchOp
	_ = json.Unmarshal(content, &ops) // The server has refused an invalid one.
	for _, op := range ops {
		if version, ok := op.Value.(string); ok && op.Path == versionPath {
			return version
		}
	}
	return ""
}

// protobufPrefix is Kubernetes' prefix of protobuf, before a runtime.Unknown. All kinds have their
// metadata as the first field.
var protobufPrefix = []byte("k8s\x00")

// sentMeta returns the metadata of the object in the request. It is empty if there is none.
func sentMeta(r *http.Request) metav1.ObjectMeta {
	content := sent(r)
	var partial metav1.PartialObjectMetadata
	if encoded, ok := bytes.CutPrefix(content, protobufPrefix); ok {
		var unknown runtime.Unknown
		if unknown.Unmarshal(encoded) != nil || partial.Unmarshal(unknown.Raw) != nil {
			return metav1.ObjectMeta{}
		}
	} else if json.Unmarshal(content, &partial) != nil {
		return metav1.ObjectMeta{}
	}
	return partial.ObjectMeta
}
