package objectresource

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/resource/internal/keyed"
)

// State is a set of objects: those that are there, those that should be, or those that a part of a patch changes. It shows
// keys and changes only, never the content of an object, and no values of Secrets.
type State = keyed.State[Key, item]

// item is one object of a state.
type item struct {
	key    Key
	action plan.Action
	// content is the object: as it is, or as it is to be applied.
	content *unstructured.Unstructured
	// given is the desired object as the author gave it.
	given client.Object
	// live is set when content is exactly what the API server answered.
	live      bool
	sensitive bool
	fields    []plan.FieldChange
	// version is the resource version of the object that an update or delete change was computed for.
	version string
	// claim is that on the object before the change, and move the first write of a takeover, a JSON patch; nil if it takes none.
	claim keyed.Claim
	move  []byte
	// replaces is set on an update that takes another object in the place of this one.
	replaces bool
}

// terminating tells whether the object is being deleted.
func (it item) terminating() bool { return it.content.GetDeletionTimestamp() != nil }

// description is what there is to tell of the change beside its fields.
func (it item) description() string {
	if it.action != plan.Update {
		return ""
	}
	replaced, unchanged := "", ""
	if it.replaces {
		replaced = "replaced: deleted, without its dependents, and created anew"
	}
	if len(it.fields) == 0 {
		unchanged = "other fields are set than before, and no value changes"
	}
	return strings.Trim(it.claim.Takeover()+"; "+replaced+"; "+unchanged, "; ")
}

// Key implements keyed.Item. It is the same for all versions in which the object is served.
func (it item) Key() Key { return it.key.unversioned() }

// Action implements keyed.Item.
func (it item) Action() plan.Action { return it.action }

// Held implements keyed.Item.
func (it item) Held() keyed.Claim { return it.claim }

// Change implements keyed.Item.
func (it item) Change() plan.Change {
	return plan.Change{Action: it.action, Object: it.object(), Fields: slices.Clone(it.fields), Description: it.description()}
}

// object names the object, and which one of this name it is if it is there already.
func (it item) object() plan.Object {
	o := it.key.object()
	if it.action != plan.Create {
		o.UID, o.Version = it.content.GetUID(), it.version
	}
	return o
}
