package notfound

import (
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// ErrDoubtful is in the error chain for a 404 that does not prove that the object is gone. The
// answer itself is only in the text.
var ErrDoubtful = errors.New("answered 404, but not for this object: check that the API server serves the version (served: true), and what stands between here and it (a proxy, a webhook, an extension API server)")

// asked identifies the object of a request.
type asked struct {
	kind schema.GroupVersionKind
	key  client.ObjectKey
	uid  types.UID
}

// check returns err unchanged, unless it is a 404 that does not prove that the object is gone: then
// the result wraps ErrDoubtful and no 404. While the kind is not served it also wraps the error of
// the RESTMapper, for which meta.IsNoMatchError holds.
func (a asked) check(mapper meta.RESTMapper, err error) error {
	switch {
	case apierrors.IsNotFound(err):
		if a.isOwn(mapper, err) {
			return err
		}
		a.askAnew(mapper)
	case !meta.IsNoMatchError(err):
		return err
	}
	doubtful := fmt.Errorf("%s %s: %w: %s", a.kind.Kind, a.key, ErrDoubtful, err.Error())
	if unserved := a.unserved(mapper); unserved != nil {
		return fmt.Errorf("%w: %w", doubtful, unserved)
	}
	return doubtful
}

// isOwn reports whether the details of a 404 come from an API server that has looked for the
// object. If the answer was not a Status, client-go has made up the details from the request.
func (a asked) isOwn(mapper meta.RESTMapper, err error) bool {
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) || answer.Status().Details == nil || apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse) {
		return false
	}
	d := answer.Status().Details
	switch {
	case d.Group == "" && d.Kind == "namespaces" && a.key.Namespace != "" && d.Name == a.key.Namespace:
		return true
	case a.key.Name == "" || d.Name != a.key.Name || d.Group != a.kind.Group:
		return false
	case d.UID != "" && a.uid != "" && d.UID != a.uid:
		return false
	}
	plural, _ := meta.UnsafeGuessKindToResource(a.kind)
	if d.Kind == plural.Resource || d.Kind == a.kind.Kind {
		return true
	}
	mapping, err := mapper.RESTMapping(a.kind.GroupKind(), a.kind.Version)
	return err == nil && d.Kind == mapping.Resource.Resource
}

// unknownKind is a kind that no API has.
const unknownKind = "operatorkit.io/unknown"

// askAnew makes a mapper read again which resources of the group the API server serves. A mapper
// caches the kinds it knows, and asks only about unknown ones.
func (a asked) askAnew(mapper meta.RESTMapper) {
	mappings, _ := mapper.RESTMappings(a.kind.GroupKind())
	for _, m := range mappings {
		_, _ = mapper.RESTMapping(schema.GroupKind{Group: a.kind.Group, Kind: unknownKind}, m.GroupVersionKind.Version)
	}
}

// unserved returns an error for which meta.IsNoMatchError holds if the API server serves no version
// of the kind. A mapper that lacks a version asks for the list of all groups, which is not affected
// by a 404. An unknown result counts as served.
func (a asked) unserved(mapper meta.RESTMapper) error {
	_, err := mapper.RESTMapping(a.kind.GroupKind())
	var failed *apiutil.ErrResourceDiscoveryFailed
	if !meta.IsNoMatchError(err) || errors.As(err, &failed) {
		return nil
	}
	return err
}

// kindOf returns the kind of an object, or of the items of a list.
func kindOf(gvk schema.GroupVersionKind) schema.GroupVersionKind {
	gvk.Kind = strings.TrimSuffix(gvk.Kind, "List")
	return gvk
}
