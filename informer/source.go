package informer

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// Key names an object within its source. Sources without namespaces leave Namespace empty.
type Key = types.NamespacedName

// EventType tells what happened to an object.
type EventType uint8

const (
	// Added is an object that the source did not know before.
	Added EventType = iota + 1
	// Updated is an object that changed, or that is announced again although it did not change (a resync).
	Updated
	// Deleted is an object that is gone from the source: deleted, or no longer selected by it.
	Deleted
)

// String returns the type in lower case, as it stands in logs and metrics.
func (t EventType) String() string {
	switch t {
	case Added:
		return "added"
	case Updated:
		return "updated"
	case Deleted:
		return "deleted"
	}
	return "unknown"
}

// Event says that an object changed. The objects it carries are the source's own and must not be modified.
type Event struct {
	// Type is what happened.
	Type EventType
	// Key names the object.
	Key Key
	// Object is the newest known state; for Deleted, the last one that was known.
	Object any
	// Old is the state before an update, and nil for the other types.
	Old any
	// Backlog is true when the event repeats what was so already: the first listing, a replay to a new subscriber, a
	// resync. It is false for a change that happens now. Queues put the latter first.
	Backlog bool

	// open are the writes of the object that were under way when the event was delivered.
	open []*Write
	// version is what the source has now, if known, and before what it had of the same object before.
	version, before string
	// gone is the UID of an object that does not exist any more.
	gone types.UID
}

// Handler receives events. It must return quickly: the source delivers nothing else meanwhile.
type Handler func(Event)

// Source is a store of objects and a stream of the keys that changed. All methods are safe for concurrent use.
type Source interface {
	// Name identifies the source in logs and metrics, for example "websites.example.com". It is unique among the
	// sources of one operator, and constant.
	Name() string
	// Subscribe has h called for every event from now on. When the source already holds objects, they are first
	// replayed to h as Added events of the backlog; before them, as Deleted events of the backlog, come the deletions of
	// which the source can't tell whether anybody has processed them. The returned function ends the subscription; h is
	// not called after it has returned. It must not be called from within h.
	Subscribe(h Handler) (unsubscribe func())
	// Run keeps the store up to date until ctx ends. Several users of a source may each call Run: the source works as
	// long as one of these calls lasts, and Run returns when ctx has ended and, for the last one, when every goroutine of
	// the source has. A lost connection is not an error: the source reconnects for as long as it runs.
	Run(ctx context.Context) error
	// WaitForSync returns nil once the store holds everything that existed when Run was called, and the context's
	// error when that ends first.
	WaitForSync(ctx context.Context) error
	// Get returns a private copy of an object. An error means that the object exists but can't be read as it is, such as
	// an entry that does not decode: it is the same until the object changes.
	Get(key Key) (obj any, exists bool, err error)
	// List returns private copies of all objects that can be read, in no particular order.
	List() []any
	// Status tells how fresh the store is.
	Status() Status
}

// Status tells how fresh a source is.
type Status struct {
	// Synced is true once the first listing is complete, and stays true.
	Synced bool
	// LastContact is when the other side was last heard of: an answer, an event, a bookmark. It is zero before the
	// first contact.
	LastContact time.Time
	// LastError is the error of the current outage, and nil while the connection holds.
	LastError error
	// Unusable is about what arrived last of that which can't be used, such as an event of an unknown type or an object without
	// metadata. It is no outage, and stays. It is nil when there was no such thing.
	Unusable error
	// Degraded says why the other side does not take changes, such as a bucket that is full. It is no outage: the store is up to date. It is
	// nil while there is no such thing.
	Degraded error
	// Objects is how many objects the store holds.
	Objects int
}

// FinalizerStore is implemented by sources that can hold an object back from its deletion until the operator has
// cleaned up after it.
type FinalizerStore interface {
	// AddFinalizer adds the finalizer to the object unless it is there, and returns the object as it is stored then.
	// It changes nothing else, and loses no finalizer of others. An object that is gone, being deleted, or replaced by
	// another of its name gives an error for which apierrors.IsNotFound or IsConflict holds.
	AddFinalizer(ctx context.Context, obj any, finalizer string) (any, error)
	// RemoveFinalizer removes the finalizer and nothing else. An object that is gone, or has no such finalizer, is
	// not an error.
	RemoveFinalizer(ctx context.Context, obj any, finalizer string) error
}

// Remover is implemented by sources without finalizers whose objects stay when their deletion is asked for, with a
// deletion timestamp, until they are taken out.
type Remover interface {
	// Remove takes an object out of the source for good. The framework calls it once the deletion has been processed,
	// of an object that has a deletion timestamp and of one that is gone already, whose last known state obj is. An
	// object that changed since gives an error for which apierrors.IsConflict holds. One that is gone, or that finalizers
	// of others hold, is not an error.
	Remove(ctx context.Context, obj any) error
	// Deletions returns the last states of objects that are gone and were not removed, by their keys.
	// A Hub has this method. The objects must not be changed.
	Deletions() map[Key]any
}

// KeyLister is implemented by sources that can tell which objects they hold without copying these. A [Hub] is one.
type KeyLister interface {
	// Keys returns the keys of all objects, in no particular order. The slice is the caller's.
	Keys() []Key
}

// Claimer is implemented by sources that know who uses them, so that two with one name don't. A [Hub] is one.
type Claimer interface {
	// Claim takes a name, until release is called. It is not ok while the name is taken.
	Claim(name string) (release func(), ok bool)
}

// LiveReader is implemented by sources that can read past their store and their selectors.
type LiveReader interface {
	// GetLive asks the other side for the object as it is now.
	GetLive(ctx context.Context, key Key) (obj any, exists bool, err error)
}

// Comparer is implemented by a LiveReader that can compare what it holds with the other side by one
// list. A framework that takes objects over from another process asks it before it begins.
type Comparer interface {
	// Behind returns of which keys, among those that of accepts, the source has yet to tell what there
	// was on the other side when it was called. Those of which it tells meanwhile may be among them.
	Behind(ctx context.Context, of func(key Key) bool) (map[Key]Lag, error)
}

// Lag is what a source has yet to tell of a key.
type Lag struct {
	// UID is that of the object on the other side, or of the one that the source still holds if that is Gone.
	UID types.UID
	// Version is the resource version that is there, and empty if the object is Gone.
	Version string
	// Gone is true when the object that the source holds is not there any more.
	Gone bool
}

// CatchUpper is implemented by sources that find out with a question or two whether they have shown what has happened.
type CatchUpper interface {
	// CatchUp returns nil once the source has shown everything that had happened on the other side when it was called. An error says that
	// the other side can't be asked, or that ctx has ended. It is for a source that runs.
	CatchUp(ctx context.Context) error
}

// LiveSelector is implemented by a LiveReader whose store may lack what GetLive finds: because a selector leaves it out, or because a
// list did not have it. What it still selects is waited for; without it, what the store lacks counts as left out.
type LiveSelector interface {
	// SelectsLive tells whether the source selects an object that GetLive returned. It may ask the other side.
	SelectsLive(ctx context.Context, obj any) (bool, error)
}

// Meta is what the framework reads of an object, if the object has it. Every Kubernetes object does (it is a part of
// metav1.Object); entries of other stores may.
type Meta interface {
	GetName() string
	GetNamespace() string
	GetUID() types.UID
	GetLabels() map[string]string
	GetAnnotations() map[string]string
	GetCreationTimestamp() metav1.Time
	GetDeletionTimestamp() *metav1.Time
	GetFinalizers() []string
}

// Copier is implemented by objects that are not Kubernetes objects and can copy themselves.
type Copier interface {
	// Copy returns a deep copy.
	Copy() any
}

// OuterCopier is implemented by what objects embed, and can copy the object around it.
type OuterCopier interface {
	// CopyOuter returns a deep copy of outer, which embeds the receiver.
	CopyOuter(outer any) any
}

// Copy returns a deep copy of a Kubernetes object, a Copier, or what embeds an OuterCopier. Anything else is returned as
// it is: give such objects as values without pointers, or implement Copier.
func Copy(obj any) any {
	switch o := obj.(type) {
	case runtime.Object:
		return o.DeepCopyObject()
	case Copier:
		return o.Copy()
	case OuterCopier:
		return o.CopyOuter(obj)
	}
	return obj
}

// MapFunc names the primary objects that are concerned by a change of obj, which must not be modified.
type MapFunc func(ctx context.Context, obj any) []Key
