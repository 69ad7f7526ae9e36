// Package access lets the packages of this module call functions of package framework that are
// not public. Package framework sets the variables.
package access

import (
	"context"
	"time"

	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/internal/ledger"
)

// Engine is the part of a framework that only this module calls.
type Engine interface {
	// Join makes the framework part of an operator of that name. former are earlier names of the
	// operator, in addition to those of the framework's configuration. framework.IsInvalidConfig
	// holds for the error: the framework runs already, or its configuration names another
	// operator. Join must not be called once the framework runs or plans; operator.New calls it.
	Join(operator string, former []string) error

	// Share limits the framework to the objects that a shard owns. Events of other objects are
	// ignored. framework.IsInvalidConfig holds for the error: the framework runs already, or is
	// driven by a queue that is not its own. operator.New calls it.
	Share(s Shard) error
	// Gain is called before the shard owns more objects. Until Reshare is called, nothing is done
	// for them: the source may hold older states than another replica has seen.
	Gain(gained func(key informer.Key) bool)
	// Reshare is called each time that the shard owns or holds other objects than before. The
	// framework forgets its state of objects that the shard does not own, except for unprocessed
	// deletions of objects that it holds, and its state of objects that the source does not hold.
	// The gained objects that the source holds are compared with the live ones and become backlog,
	// and so do their unprocessed deletions. It may be called at any time, also before Run and
	// after it, but not twice at once, nor at the same time as Gain.
	//
	// lost are the objects that are about to be passed to another replica; nil stands for none.
	// Where only this process remembers deletions, the source is compared with the live objects,
	// so that no deletion is missed that the source shows late.
	Reshare(lost func(key informer.Key) bool)
	// HasUnprocessed reports whether there are deletions to process of objects that are gone, or
	// may be any, among objects that has accepts. It is safe for concurrent use.
	HasUnprocessed(has func(key informer.Key) bool) bool

	// OnEnd makes the framework report the end of every reconciliation. It is called before Run.
	// The workers call the function, for different objects at the same time.
	OnEnd(ended func(End))

	// Warn writes a warning event on an object, which may be another one than those of the
	// framework, unless the framework has no recorder for it.
	Warn(obj any, reason, message string)

	// LeavesAlone reports whether the framework changes nothing for an object, because an
	// annotation pauses the object, or because it is only planned.
	LeavesAlone(obj any) bool

	// CheckPlan checks whether the next reconciliation would do exactly what a plan of this
	// framework describes. If not, the error has framework.ErrPlanChanged or
	// framework.ErrPlanIncomplete in its chain, and describes the difference. Nothing is changed.
	CheckPlan(ctx context.Context, saved *plan.Plan) error
	// HasLimits reports whether a guard of the framework has a limit.
	HasLimits() bool
	// ChargeBy makes the limits of guards count in a ledger that replicas share. Without it they
	// count in this process. It is called before Run.
	ChargeBy(l Ledger)
	// FailingSince reports whether the last reconciliation of an object failed with a reported
	// error, and since when the object has been failing. It may be called at any time and is
	// cheap.
	FailingSince(key informer.Key) (since time.Time, fails bool)

	// FindManagers sets the function that returns the field managers, other than the resource's
	// own, which write fields of an object; no fields are all. It is called once when a
	// framework.Fight starts, and only reads. It is set before the framework runs.
	FindManagers(find func(
		ctx context.Context, resource string, object plan.Object, fields []string,
	) []string)
}

// End is the end of the reconciliation of an object.
type End struct {
	Key informer.Key
	// Succeeded is true if all resources have run without an error, and nothing was held, or if a
	// resource or a policy has ended the reconciliation early.
	Succeeded bool
	// Skipped is true if the state of the object was not reconciled and follows later, here or on
	// another replica.
	Skipped bool
	// Gone is true if there is no such object.
	Gone bool
	// Failed is true if Err is an error of the operator or of what it talks to: not a conflict, nor
	// a pause that was requested.
	Failed bool
	Err    error
}

// Ledger counts what the limits of guards allow. It is safe for concurrent use.
type Ledger interface {
	// Charge charges before the write that is charged for. An error means that it is unknown
	// whether anything was charged.
	Charge(ctx context.Context, c ledger.Charge) (ledger.Answer, error)
}

// Shard says which objects of a framework this replica reconciles, of several replicas that share
// them: see operator.ShardingConfig. Its methods are called for each reconciliation: they are
// quick, and safe for concurrent use.
type Shard interface {
	// Owns reports whether this replica may begin to work on an object.
	Owns(key informer.Key) bool
	// Holds reports whether this replica owns an object, is about to own it, or has not passed it
	// to another replica yet.
	Holds(key informer.Key) bool
	// Begin begins to work on an object, until End, and reports whether that is allowed. The
	// deletion of an object that is gone may begin until the object is passed to another replica.
	Begin(key informer.Key, gone bool) bool
	// End ends the work that Begin has begun. No other replica begins to work on the object
	// before.
	End(key informer.Key)
}

var (
	// EngineOf returns the engine of a *framework.Framework.
	EngineOf func(framework any) Engine

	// Advice suggests a fix for each refusal by an API server in the tree of an error: the
	// missing RBAC rule and its subject, or the managers of the fields that a server-side apply
	// sets. It is empty if there is nothing to suggest. The framework appends it to the errors of
	// reconciliations.
	Advice func(err error) string

	// RetriesAfter reports whether the step of a resource is run for the queue of a framework,
	// which handles a framework.RetryAfterError.
	RetriesAfter func(ctx context.Context) bool
	// LastTry returns the error of the last reconciliation of the same object if there is a
	// framework.RetryAfterError in its chain, so that a wrapper of steps finds its earlier state.
	// Otherwise, and outside the step of a resource, it returns nil.
	LastTry func(ctx context.Context) error
)
