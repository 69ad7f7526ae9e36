package natsresource

import (
	"context"
	"reflect"

	"github.com/giantswarm/micrologger"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/informer/natsinformer"
	"github.com/operatorkit/operatorkit/internal/faults"
	"github.com/operatorkit/operatorkit/resource/internal/keyed"
)

// Source is where the entries are read. A natsinformer.Source of the bucket with the index of OwnerIndexers is one.
type Source interface {
	// Name identifies the source in errors.
	Name() string
	// Get returns a private copy of an entity.
	Get(key informer.Key) (obj any, exists bool, err error)
	// ByIndex returns private copies of the entities that the index files under value.
	ByIndex(index, value string) ([]any, error)
	// Status tells whether the source is synced, before which nothing is computed, and in contact, without which no deletion is.
	Status() informer.Status
}

// Config configures a resource for primaries of type O that wants entries of type T, a pointer to a struct that embeds
// natsinformer.Meta.
type Config[O any, T natsinformer.Entity] struct {
	// Name identifies the resource in logs, metrics and errors. With the names of framework and operator, it marks the entries as
	// the resource's own. When it changes, the old one goes to FormerNames. Required.
	Name string
	// FormerNames are names that the resource had before, or of a resource that it was split from: the entries that were made
	// under them are taken over as they are. Those that are not desired are deleted, by the last resource of a set that has the
	// name. Default: none.
	FormerNames []string
	// Bucket is where the entries are written: that of Source, which knows of what is written through it. Required.
	Bucket *natsinformer.Bucket[T]
	// Source is where they are read: a source of Bucket, with the index of OwnerIndexers, and running. It runs
	// when it is watched. Required.
	Source Source
	// Logger receives a message for every entry that was written. Required.
	Logger micrologger.Logger
	// Desired returns the entries that should be there for the primary. They are created and updated in this order.
	// What a bucket maintains (UID, generation, times) is left out. Desired is not called for a primary that has a
	// deletion timestamp. It may be called at the same time for different primaries. Required.
	Desired func(ctx context.Context, obj O) ([]T, error)
	// Kind is the kind of the primaries. It is written on the entries as their OwnerKind, and must not change. Required.
	Kind string
	// OwnerKey returns what is written on the entries as their OwnerKey. It must be unique among the primaries of a kind.
	// Default: the name of the primary, with its namespace and a slash before it if it has one.
	OwnerKey func(obj O) string
	// Keep copies from an entry as it is what belongs to others, such as a status, to what it should be. It may set fields
	// of desired and must not change what these point to. Metadata need no care: conditions, labels, annotations
	// and finalizers of others are kept. Nor do fields that T does not have, which the JSON codec keeps. Default: all else is as desired.
	Keep func(current, desired T)
	// Adopt lets the resource take over desired entries that exist and belong to nobody. Those of another owner are
	// refused in any case. Default: false, they are all refused.
	Adopt bool
	// RequestDeletion makes entries be deleted by asking for it (natsinformer.Bucket.RequestDeletion). Set it when a
	// controller reconciles the entries in turn, which has to clean up after them. The primary's own deletion waits
	// until they are gone. Default: entries are purged at once, except those with finalizers.
	RequestDeletion bool
	// Sensitive tells for which entries values must not be shown. It is asked for desired ones. Default: none.
	Sensitive func(entity T) bool
}

// New returns the resource, or an error for which framework.IsInvalidConfig holds and which names the fields at fault.
func New[O any, T natsinformer.Entity](config Config[O, T]) (*framework.TypedCRUDResource[O, State[T]], error) {
	var wrong faults.List
	wrong.If(config.Name == "", "Name must not be empty")
	wrong.If(config.Bucket == nil, "Bucket must not be nil")
	wrong.If(config.Source == nil, "Source must not be nil")
	if s, ok := config.Source.(interface {
		Bucket() *natsinformer.Bucket[T]
	}); ok && config.Bucket != nil && s.Bucket() != config.Bucket {
		wrong.Add("Bucket must be the one of Source, of the bucket %s, is another one, of %s", s.Bucket().Name(), config.Bucket.Name())
	}
	wrong.If(config.Logger == nil, "Logger must not be nil")
	wrong.If(config.Desired == nil, "Desired must not be nil")
	wrong.If(config.Kind == "", "Kind must not be empty")
	wrong.If(config.OwnerKey == nil && !keyed.Implements[O, informer.Meta](),
		"OwnerKey must not be nil for a %s, which has no metadata", reflect.TypeFor[O]())
	if err := wrong.Of("natsresource.Config"); err != nil {
		return nil, err
	}

	return framework.NewTypedCRUDResource(framework.TypedCRUDResourceConfig[O, State[T]]{
		Logger: config.Logger, Ops: newResource(config),
	})
}
