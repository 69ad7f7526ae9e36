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

// EventType is the kind of change of an object.
type EventType uint8

const (
	// Added is an object that the source did not know before.
	Added EventType = iota + 1
	// Updated is an object that changed, or that is announced again without a change (a resync).
	Updated
	// Deleted is an object that is gone from the source: deleted, or no longer selected by it.
	Deleted
)

// String returns the type in lower case, as used in logs and metrics.
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

// Event says that an object changed. The objects it carries are the source's own and must not be
// modified.
type Event struct {
	// Type is the kind of change.
	Type EventType
	// Key names the object.
	Key Key
	// Object is the newest known state; for Deleted, the last one that was known.
	Object any
	// Old is the state before an update, and nil for the other types.
	Old any
	// Backlog is true when the event repeats a known state: the first listing, a replay to a new
	// subscriber, or a resync. It is false for a change that happens now. Queues put such changes
	// first.
	Backlog bool

	// open are the writes of the object that were in progress when the event was delivered.
	open []*Write
	// version is the version that the source has now, if known; before is the previous one of the
	// same object.
	version, before string
	// gone is the UID of an object that no longer exists.
	gone types.UID
}

// Handler receives events. It must return quickly: the source delivers nothing else meanwhile.
type Handler func(Event)

// Source is a store of objects and a stream of the keys that changed. All methods are safe for
// concurrent use.
type Source interface {
	// Name identifies the source in logs and metrics, for example "websites.example.com". It is
	// unique among the sources of one operator, and constant.
	Name() string
	// Subscribe calls h for every event from now on. If the source already holds objects, they are
	// first replayed to h as Added events of the backlog. Before them come, as Deleted events of
	// the backlog, deletions that may not have been processed yet. The returned function ends the
	// subscription: h is not called after it has returned. It must not be called from within h.
	Subscribe(h Handler) (unsubscribe func())
	// Run keeps the store up to date until ctx ends. Several users of a source may each call Run:
	// the source works until the last of these calls ends. Run returns when ctx has ended; the last
	// call also waits for every goroutine of the source. A lost connection is not an error: the
	// source reconnects until Run ends.
	Run(ctx context.Context) error
	// WaitForSync returns nil once the store holds everything that existed when Run was called. It
	// returns the context's error if that ends first.
	WaitForSync(ctx context.Context) error
	// Get returns a private copy of an object. An error means that the object exists but can't be
	// read, such as an entry that does not decode. It stays until the object changes.
	Get(key Key) (obj any, exists bool, err error)
	// List returns private copies of all objects that can be read, in no particular order.
	List() []any
	// Status reports how fresh the store is.
	Status() Status
}

// Status is the freshness of a source.
type Status struct {
	// Synced is true once the first listing is complete, and stays true.
	Synced bool
	// LastContact is the time of the last contact with the other side: an answer, an event, a
	// bookmark. It is zero before the first contact.
	LastContact time.Time
	// LastError is the error of the current outage, and nil while the connection holds.
	LastError error
	// Unusable is the error about the last unusable input, such as an event of an unknown type or
	// an object without metadata. It is not an outage, and it stays. It is nil if there was none.
	Unusable error
	// Degraded is the reason why the other side does not accept changes, such as a full bucket. It
	// is not an outage: the store is up to date. It is nil if there is none.
	Degraded error
	// Objects is how many objects the store holds.
	Objects int
}

// FinalizerStore is implemented by sources that can hold back the deletion of an object until the
// operator has cleaned up.
type FinalizerStore interface {
	// AddFinalizer adds the finalizer to the object unless it is there, and returns the stored
	// object. It changes nothing else, and keeps the finalizers of others. If the object is gone,
	// being deleted, or replaced by another of its name, apierrors.IsNotFound or IsConflict holds
	// for the error.
	AddFinalizer(ctx context.Context, obj any, finalizer string) (any, error)
	// RemoveFinalizer removes the finalizer and nothing else. It is not an error if the object is
	// gone or has no such finalizer.
	RemoveFinalizer(ctx context.Context, obj any, finalizer string) error
}

// Remover is implemented by sources without finalizers in which a deleted object stays, with a
// deletion timestamp, until it is removed.
type Remover interface {
	// Remove removes an object from the source for good. The framework calls it once the deletion
	// has been processed, for an object with a deletion timestamp and for one that is gone already.
	// obj is the last known state. If the object changed since, apierrors.IsConflict holds for the
	// error. An object that is gone, or that finalizers of others hold, is not an error.
	Remove(ctx context.Context, obj any) error
	// Deletions returns the last states of objects that are gone and were not removed, by their keys.
	// A Hub has this method. The objects must not be changed.
	Deletions() map[Key]any
}

// KeyLister is implemented by sources that can list the keys of their objects without copying
// these. A [Hub] is one.
type KeyLister interface {
	// Keys returns the keys of all objects, in no particular order. The slice is the caller's.
	Keys() []Key
}

// Claimer is implemented by sources that know their users, so that no two users have the same name.
// A [Hub] is one.
type Claimer interface {
	// Claim claims a name until release is called. ok is false if the name is already claimed.
	Claim(name string) (release func(), ok bool)
}

// LiveReader is implemented by sources that can bypass their store and their selectors.
type LiveReader interface {
	// GetLive reads the current object from the other side.
	GetLive(ctx context.Context, key Key) (obj any, exists bool, err error)
}

// Comparer is implemented by sources that can find out whether they have shown everything. A
// framework that adopts objects from another process calls it before it starts.
type Comparer interface {
	// Behind returns the keys for which the source has not yet shown the state at the time of the
	// call: for a deletion, until all handlers have returned. It checks at least the keys that of
	// accepts. Keys that the source shows meanwhile may be among them. A source that can't tell the
	// keys waits until it has shown everything. The error says that the other side can't be asked or
	// that ctx has ended. The source must be running. Handlers must not call it.
	Behind(ctx context.Context, of func(key Key) bool) (map[Key]Lag, error)
}

// Lag is how a source is behind for one key.
type Lag struct {
	// UID is the UID of the object on the other side, or of the object that the source still holds
	// if Gone is true.
	UID types.UID
	// Version is the resource version on the other side, and empty if the object is Gone.
	Version string
	// Gone is true if the object that the source holds no longer exists.
	Gone bool
}

// LiveSelector is implemented by a LiveReader that may find an object that its store lacks, because
// a selector excludes it or because a list did not have it. The framework waits for an object that
// is still selected. Without LiveSelector, an object that the store lacks counts as excluded.
type LiveSelector interface {
	// SelectsLive reports whether the source selects an object that GetLive returned. It may ask
	// the other side.
	SelectsLive(ctx context.Context, obj any) (bool, error)
}

// Meta is the part of an object that the framework reads, if the object has it. Every Kubernetes
// object does (it is a part of metav1.Object). Entries of other stores may.
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

// OuterCopier is implemented by embedded types that can copy the object around them.
type OuterCopier interface {
	// CopyOuter returns a deep copy of outer, which embeds the receiver.
	CopyOuter(outer any) any
}

// Copy returns a deep copy of a Kubernetes object, a Copier, or an object that embeds an
// OuterCopier. It returns anything else itself: use values without pointers for such objects, or
// implement Copier.
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

// MapFunc returns the keys of the primary objects that a change of obj concerns. It must not modify
// obj.
type MapFunc func(ctx context.Context, obj any) []Key
