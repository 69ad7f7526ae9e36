package objectresource

import (
	"context"
	"reflect"
	"slices"

	"github.com/giantswarm/micrologger"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/informer/notfound"
	"github.com/operatorkit/operatorkit/internal/faults"
	"github.com/operatorkit/operatorkit/resource/internal/keyed"
)

// maxFieldManager is how long the API server lets a field manager be.
const maxFieldManager = 128

// Store is where objects are read from instead of the API server. An informer.Kubernetes with the index of OwnerIndexers
// is one. It must hold all objects in the namespaces of the primaries whose OperatorLabel names the operator, or was made of a former
// name of it, as whole objects and not only their metadata; an object that it has not seen yet is looked up before it is created.
type Store interface {
	// GroupVersionKind is the kind of the objects it holds.
	GroupVersionKind() schema.GroupVersionKind
	// ByIndex returns private copies of the objects that the index files under value.
	ByIndex(index, value string) ([]any, error)
	// Status tells whether the store is synced. One that is not is passed over.
	Status() informer.Status
}

// Config configures a resource for primaries of type O.
type Config[O any] struct {
	// Name identifies the resource in logs, metrics and errors. Together with the names of operator and framework it marks the
	// objects as the resource's own. When it changes, the old one goes to FormerNames. Required.
	Name string
	// FormerNames are names that the resource had before, or which that one had of which it was split off. Objects under them are
	// taken over as they are when they are desired. Others are deleted, unless another resource of the set has that name still,
	// or had it too and stands later, and has their kind among its own. Default: none.
	FormerNames []string
	// Client reads and writes. It must read from the API server and not from a cache (client.New makes one): what it
	// does not find is created. It needs the verbs get, list, create, patch and delete for each of the kinds. Required.
	Client client.Client
	// Logger receives a message for every object that was written. Required.
	Logger micrologger.Logger
	// Desired returns the objects that should be there for the primary: typed ones of the client's scheme, or
	// unstructured ones. They are created and updated in this order. An object without a namespace gets that of the
	// primary. What the server fills in (status, UID, version, times) is left out. Desired is not called for a primary
	// that has a deletion timestamp. It may be called at the same time for different primaries. Required.
	Desired func(ctx context.Context, obj O) ([]client.Object, error)
	// Kinds are the kinds of all objects that Desired returns or returned in earlier versions, as typed or unstructured
	// objects of which only the kind is looked at. Objects of other kinds would never be found again, and are refused.
	// A kind may stand there in several versions. Required, unless Stores names them all.
	Kinds []client.Object
	// Stores hold the objects of some kinds, whose current state is read from there. The other kinds are listed through
	// the client, once in every reconciliation. Default: none.
	Stores []Store
	// Namespaces returns the namespaces in which the primary has or had objects; metav1.NamespaceAll stands for all of
	// them. Desired objects in other namespaces are refused. Default: the namespace of the primary, or all for a primary
	// without one.
	Namespaces func(obj O) []string
	// Owner returns who the objects belong to. Default: the primary, if it is a Kubernetes object of the client's scheme.
	Owner func(obj O) (Owner, error)
	// FieldManager is the name under which fields are applied. When it is set, or changes, fields that were applied before and are
	// no longer desired stay. Default: that of the mark, see identity.Mark.
	FieldManager string
	// Adopt lets the resource take over desired objects that exist and belong to nobody. Those of another owner are
	// refused in any case. Default: false, they are all refused.
	Adopt bool
	// Replace are those of the kinds whose objects are replaced when the API server refuses an update of them as invalid, such as of the
	// fields of a StatefulSet or a Job that are immutable: the object is deleted without its dependents, which are orphans then, and
	// created anew; the new one gets those that its selector matches. Plans say so. What the API server would refuse to create, too, is
	// not replaced. Default: none, such an update is an error.
	Replace []client.Object
	// Propagation says what happens to the dependents of a deleted object. Default: they are deleted in the background.
	Propagation metav1.DeletionPropagation
	// WaitForDeletion keeps the finalizer of a primary that is being deleted until its objects are really gone. Default:
	// false, the deletion is complete once the API server has accepted those of the objects.
	WaitForDeletion bool
	// Sensitive tells that no value of a desired object may be shown. Secrets are sensitive in any case. Default: no
	// others are.
	Sensitive func(obj client.Object) bool
}

// New returns the resource, or an error for which framework.IsInvalidConfig holds and which names the fields at fault.
func New[O any](config Config[O]) (*framework.TypedCRUDResource[O, State], error) {
	var wrong faults.List
	wrong.If(config.Name == "", "Name must not be empty")
	wrong.If(config.Logger == nil, "Logger must not be nil")
	wrong.If(config.Desired == nil, "Desired must not be nil")
	wrong.If(len(config.FieldManager) > maxFieldManager, "FieldManager %q is longer than %d bytes", config.FieldManager, maxFieldManager)
	switch config.Propagation {
	case "":
		config.Propagation = metav1.DeletePropagationBackground
	case metav1.DeletePropagationBackground, metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan:
	default:
		wrong.Add("Propagation %q is none of Background, Foreground, Orphan", config.Propagation)
	}
	wrong.If(config.Owner == nil && !keyed.Implements[O, client.Object](),
		"Owner must not be nil for a %s, which is no client.Object", reflect.TypeFor[O]())
	var kinds []kind
	var replaced []schema.GroupVersionKind
	if config.Client == nil {
		wrong.Add("Client must not be nil")
	} else {
		config.Client = notfound.Checked(config.Client)
		kinds = kindsOf(config.Client, config.Kinds, config.Stores, &wrong)
		for i, o := range config.Replace {
			if o == nil {
				wrong.Add("Replace[%d] must not be nil", i)
				continue
			}
			gvk, err := config.Client.GroupVersionKindFor(o)
			wrong.If(err != nil || !known(kinds, gvk), "Replace[%d], a %T, is of none of the kinds in Kinds and Stores", i, o)
			replaced = append(replaced, gvk)
		}
	}
	if err := wrong.Of("objectresource.Config"); err != nil {
		return nil, err
	}

	return framework.NewTypedCRUDResource(framework.TypedCRUDResourceConfig[O, State]{
		Logger: config.Logger, Ops: newResource(config, kinds, replaced),
	})
}

// kind is a kind of objects, and where to read them.
type kind struct {
	gvk   schema.GroupVersionKind
	store Store
}

// kindsOf returns the kinds of the stores and of the objects, each once.
func kindsOf(c client.Client, objects []client.Object, stores []Store, wrong *faults.List) []kind {
	var kinds []kind
	for i, s := range stores {
		if s == nil {
			wrong.Add("Stores[%d] must not be nil", i)
			continue
		}
		gvk := s.GroupVersionKind()
		wrong.If(known(kinds, gvk), "Stores[%d] is a second one for %s", i, gvk)
		kinds = append(kinds, kind{gvk: gvk, store: s})
	}
	for i, o := range objects {
		if o == nil {
			wrong.Add("Kinds[%d] must not be nil", i)
			continue
		}
		gvk, err := c.GroupVersionKindFor(o)
		switch {
		case err != nil:
			wrong.Add("Kinds[%d] has no kind: %s", i, err)
		case !known(kinds, gvk):
			kinds = append(kinds, kind{gvk: gvk})
		}
	}
	wrong.If(len(objects)+len(stores) == 0, "Kinds must not be empty")
	return kinds
}

func known(kinds []kind, gvk schema.GroupVersionKind) bool {
	return slices.ContainsFunc(kinds, func(k kind) bool { return k.gvk == gvk })
}
