package keyedresource

import (
	"cmp"
	"context"
	"reflect"
	"time"

	"github.com/giantswarm/micrologger"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/internal/faults"
	"github.com/operatorkit/operatorkit/resource/internal/keyed"
)

// Config configures a resource for primaries of type O that wants things of type T in an external system. Functions that compute,
// which are all but Put and Delete, must not change anything. All are called for different primaries at the same time, with a
// context that [Mark] and [Marks] know.
type Config[O, T any] struct {
	// Name identifies the resource in logs, metrics and errors. With the names of framework and operator it marks the things as the
	// resource's own. When it changes, the old one goes to FormerNames. Required.
	Name string
	// FormerNames are names that the resource had before, or that of a resource that it was split from. Things under them are taken
	// over as they are when they are desired; the others are deleted, by the last resource of a set that has the name. Default: none.
	FormerNames []string
	// Logger receives a message for every thing that was put or deleted. Required.
	Logger micrologger.Logger

	// Current returns what is there for the primary: with Config.Mark, it may return what belongs to others too; without, all that it
	// returns is the primary's. Required, unless there are Get and Journal.
	Current func(ctx context.Context, obj O) ([]T, error)
	// Desired returns what should be there for the primary. Those things are put in this order. It is not called for a primary that
	// has a deletion timestamp. Required.
	Desired func(ctx context.Context, obj O) ([]T, error)
	// Key returns the name of a thing, which no other thing of the system has, and which is known before the thing is made: a host
	// name, a path, an id that the primary gives. Required.
	Key func(thing T) string
	// Put creates a thing, or makes the one of its key what is desired. It must be idempotent. Where the system offers preconditions,
	// such as a version that Keep has carried over, it should use them, so that nothing is overwritten that appeared or changed since
	// the patch was computed; an error for which apierrors.IsConflict holds makes everything be computed anew. Required.
	Put func(ctx context.Context, obj O, thing T) error
	// Delete deletes a thing that Current or Get returned. That it is gone already is no error. Required.
	Delete func(ctx context.Context, obj O, thing T) error

	// System stands for Get, Put and Delete, where these need nothing of the primary. Not together with them. Default: none.
	System System[T]

	// Mark returns the mark that a thing has, as it was told by Mark to Desired, and nothing for one without: a tag, a comment, an
	// owner. Default: the system can't hold one.
	Mark func(thing T) string
	// OwnerKey returns what tells the primary from others in marks. Add the name of a cluster if frameworks of the same names in
	// several clusters share the system. Default: the name of the primary, with its namespace and a slash before it if it has one.
	OwnerKey func(obj O) string
	// Adopt lets the resource take over desired things that exist and belong to nobody. Those with another mark are refused in
	// any case. With a Journal, one that is as desired is put once more, so that it is noted. Default: false, they are all refused.
	Adopt bool
	// Get returns the thing of a key, or false if there is none. With it, a desired thing that Current does not return is looked up
	// before it is put. Default: Current returns all that could be in the way. Required with Journal.
	Get func(ctx context.Context, obj O, key string) (thing T, found bool, err error)
	// Journal writes the keys of all things into an annotation of the primary before they are put, and takes them from it when they
	// are gone: for systems of which one can't ask what belongs to a primary. It must reach the API server and not a cache, and needs
	// the verbs get and patch for the primaries. A journal is no proof: use it for primaries whose writers are trusted with the things,
	// because who writes the key of another's thing into the annotation has that changed or deleted. Default: none is written.
	Journal client.Client

	// Keep copies what the system or others maintain, such as a version or a status, from a thing as it is to what it should be. It
	// must not change what these point to. Default: all is as desired.
	Keep func(current, desired T) T
	// Equal tells whether a thing is as it should be. Default: when none of its fields differs, as JSON would show them.
	Equal func(current, desired T) bool
	// Order returns the rank of a thing. Within the creations and within the updates, a thing of a higher rank is put after those of
	// lower ranks, and not if one of those failed. It is deleted before them. Default: all have the same rank.
	Order func(thing T) int
	// Concurrency is how many things of one rank are put or deleted at the same time. Default: 1.
	Concurrency int
	// WaitForDeletion is for systems in which a deletion takes its time after Delete has returned: the finalizer of a primary that is
	// being deleted is kept, and so are keys in the journal, until the things are not found any more. Delete is called again until
	// then, every two seconds. Default: false, a thing is gone when Delete returns.
	WaitForDeletion bool
	// Sensitive tells whether the values of a field, and of what is in it, must not be shown. It is named by its path in the JSON of a
	// thing, such as users[name=joe].password. Their values are also scrubbed from all that is told of the reconciliation once they
	// are about to change, see package secretscontext. Default: all may be shown, but those of types that implement plan.Confidential, and of Secrets.
	Sensitive func(path string) bool
	// Kind is what things are called in plans, logs and errors. Default: the name of the type T.
	Kind string
	// Poll is after how long the primary is looked at again, to put right what others have changed. Default: when the primary changes,
	// is resynced, or a watch tells of a change.
	Poll time.Duration
}

// System is a client of an external system that keeps things of type T by their keys. It is safe for concurrent use.
type System[T any] interface {
	// Get is that of Config.
	Get(ctx context.Context, key string) (thing T, found bool, err error)
	// Put is that of Config.
	Put(ctx context.Context, thing T) error
	// Delete deletes the thing of a key. That it is gone already is no error.
	Delete(ctx context.Context, key string) error
}

// New returns the resource, or an error for which framework.IsInvalidConfig holds and which names the fields at fault.
func New[O, T any](config Config[O, T]) (*framework.TypedCRUDResource[O, State[T]], error) {
	// What is set twice stays, and is a fault.
	if system := config.System; system != nil && config.Get == nil && config.Put == nil && config.Delete == nil {
		config.System = nil
		config.Get = func(ctx context.Context, _ O, key string) (T, bool, error) { return system.Get(ctx, key) }
		config.Put = func(ctx context.Context, _ O, thing T) error { return system.Put(ctx, thing) }
		config.Delete = func(ctx context.Context, _ O, thing T) error { return system.Delete(ctx, config.Key(thing)) }
	}
	if err := config.validate(); err != nil {
		return nil, err
	}
	if config.Kind == "" {
		thing := reflect.TypeFor[T]()
		if thing.Kind() == reflect.Pointer {
			thing = thing.Elem()
		}
		config.Kind = cmp.Or(thing.Name(), "thing")
	}
	return framework.NewTypedCRUDResource(framework.TypedCRUDResourceConfig[O, State[T]]{
		Logger: config.Logger, Ops: newResource(config),
	})
}

func (c Config[O, T]) validate() error {
	var wrong faults.List
	wrong.If(c.System != nil, "System and Get, Put or Delete must not both be set")
	wrong.If(c.Name == "", "Name must not be empty")
	wrong.If(c.Logger == nil, "Logger must not be nil")
	wrong.If(c.Desired == nil, "Desired must not be nil")
	wrong.If(c.Key == nil, "Key must not be nil")
	wrong.If(c.Put == nil, "Put must not be nil")
	wrong.If(c.Delete == nil, "Delete must not be nil")
	wrong.If(c.Current == nil && (c.Get == nil || c.Journal == nil), "Current must not be nil without Get and Journal: nothing would be found again")
	wrong.If(c.Journal != nil && c.Get == nil, "Get must not be nil with Journal: what it names has to be found")
	wrong.If(c.Adopt && c.Mark == nil && c.Get == nil, "Adopt must not be true without Mark or Get: nothing tells then what belongs to nobody")
	wrong.If(c.Concurrency < 0, "Concurrency must not be negative, and is %d", c.Concurrency)
	wrong.If(c.Poll < 0, "Poll must not be negative, and is %s", c.Poll)
	wrong.If(c.Journal != nil && !keyed.Implements[O, client.Object](),
		"Journal must be nil for a %s, which is no client.Object: it has no annotations", reflect.TypeFor[O]())
	wrong.If(c.OwnerKey == nil && !keyed.Implements[O, informer.Meta](),
		"OwnerKey must not be nil for a %s, which has no metadata", reflect.TypeFor[O]())
	return wrong.Of("keyedresource.Config")
}
