package objectresource

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/resource/internal/keyed"
)

// State is a set of objects: those that are there, those that should be, or those that a part of a patch changes. It shows
// keys and changes only, never the content of an object, and no values of Secrets.
type State = keyed.State[Key, object]

// item is one object of a state. Its key is the same for all versions in which the object is
// served.
type item = keyed.Item[Key, object]

// object is an object, as it is or as it is to be applied.
type object struct {
	// key is the key in the version in which the object is read and written.
	key     Key
	content *unstructured.Unstructured
	// given is the desired object as the author gave it.
	given client.Object
	// live is set when content is exactly what the API server answered.
	live bool
	// move is the first write of a takeover, a JSON patch; nil if it takes none.
	move []byte
	// replaces is set on an update that takes another object in the place of this one.
	replaces bool
}

// newItem returns an object as an item. If it is there, its UID and version say which one of its
// name it is.
func newItem(gvk schema.GroupVersionKind, o object) item {
	o.content.SetGroupVersionKind(gvk)
	o.key = keyOf(gvk, o.content)
	named := o.key.object()
	named.UID, named.Version = o.content.GetUID(), o.content.GetResourceVersion()
	change := plan.Change{Object: named}.Describing(o.content)
	return item{Key: o.key.unversioned(), Thing: o, Sensitive: isSecret(gvk), Change: change}
}

// terminating tells whether the object is being deleted.
func (o object) terminating() bool { return o.content.GetDeletionTimestamp() != nil }
