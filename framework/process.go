package framework

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/giantswarm/micrologger"

	"github.com/operatorkit/operatorkit/context/reconciliationcanceledcontext"
	"github.com/operatorkit/operatorkit/context/requeuecontext"
	"github.com/operatorkit/operatorkit/context/resourcecanceledcontext"
	"github.com/operatorkit/operatorkit/context/secretscontext"
	"github.com/operatorkit/operatorkit/context/signal"
	"github.com/operatorkit/operatorkit/framework/identity"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/informer"
)

// ProcessUpdate runs the resources for an object that was created or changed. It is a drop-in for
// an informer's handlers; a Framework does the same for the keys of its queue.
//
//	handler := cache.ResourceEventHandlerFuncs{
//		AddFunc:    func(obj any) { err = framework.ProcessUpdate(ctx, obj, resources) },
//		UpdateFunc: func(_, obj any) { err = framework.ProcessUpdate(ctx, obj, resources) },
//		DeleteFunc: func(obj any) { err = framework.ProcessDelete(ctx, obj, resources) },
//	}
//
// The resources run in the given order, each with a copy of obj. The first error ends the run,
// except for Concluders; it names the object, the resource and the step. Without resources it
// returns an error for which IsExecutionFailed holds. Each call has its own signals. If the
// caller's context carries a signal too, a resource that sets it sets both. If the reconciliation
// of the caller's context is cancelled, nothing runs and the result is nil, as when a resource has
// cancelled it: the next reconciliation needs a new context.
func ProcessUpdate(ctx context.Context, obj any, resources []Resource) error {
	return runWithoutFramework(ctx, updateEvent, obj, resources)
}

// ProcessDelete runs the resources for an object that is being deleted; obj is its last known
// state. The documentation of ProcessUpdate applies here too. If a resource cancelled the
// reconciliation, the result is nil although the deletion is not complete. To detect this, put
// reconciliationcanceledcontext.NewContext into ctx and check it afterwards.
func ProcessDelete(ctx context.Context, obj any, resources []Resource) error {
	return runWithoutFramework(ctx, deleteEvent, obj, resources)
}

// runWithoutFramework runs resources without a Framework, and copies the signals to the caller's
// context.
func runWithoutFramework(ctx context.Context, e event, obj any, resources []Resource) error {
	if reconciliationcanceledcontext.IsCanceled(ctx) {
		return nil
	}
	r := newAlone(ctx, e, obj, resources)
	err := advised(runResources(r, r, informer.Copy(obj), resources))
	handOn(r, ctx)
	return err
}

// newAlone returns the context of a reconciliation, or a plan, without a framework.
func newAlone(ctx context.Context, e event, obj any, resources []Resource) *reconciliation {
	r := &reconciliation{event: e, object: obj}
	r.scopes = scopesOf(identity.From(ctx).Identity, leftToOthers(resources))
	r.init(ctx)
	return r
}

// handOn copies the set signals of a reconciliation to another context. from is a child of to, and
// may carry its own signals.
func handOn(from, to context.Context) {
	for _, s := range []signal.Signal{signal.ReconciliationCanceled, signal.FinalizersKept, signal.UpdateNecessary} {
		if set, _ := signal.Lookup(from, s); set {
			signal.Set(to, s)
		}
	}
	if after, ok := signal.Requeue(from); ok {
		signal.SetRequeue(to, after)
	}
}

// runResources runs the resources in order. After an error only Concluders run. ctx is r or a child
// of it. It takes ownership of the object: the last resource gets it, the others get copies.
func runResources(ctx context.Context, r *reconciliation, obj any, resources []Resource) error {
	if len(resources) == 0 {
		return r.errorf("%w: there are no resources", ErrExecutionFailed)
	}
	for i, resource := range resources {
		if reconciliationcanceledcontext.IsCanceled(ctx) {
			return r.failure
		}
		if r.failure != nil && (ctx.Err() != nil || !concludes(resource)) {
			continue
		}
		if err := ctx.Err(); err != nil {
			return r.errorf("stopped before resource %q: %w", resource.Name(), err)
		}
		own := obj
		if i < len(resources)-1 || r.isGuarded() { // guards look at the object as it was read
			own = informer.Copy(obj)
		}
		err := r.runResource(ctx, i, resource, own)
		switch {
		case err == nil:
		case r.failure == nil:
			r.failure = r.errorf("%w", err)
		default:
			r.failure = failedToo(r.failure, err)
		}
	}
	return r.failure
}

// runResource runs one resource, which is at that place in its set, in its own scope.
func (r *reconciliation) runResource(ctx context.Context, place int, resource Resource, obj any) error {
	s := r.newScope(ctx, place, resource.Name())
	before, asked := requeuecontext.After(r)
	err := observeStep(s, StepInfo{s.resource, stepOf(r.event)}, nil, func(ctx context.Context) error {
		return s.ensure(ctx, resource, obj)
	})
	if after, asks := requeuecontext.After(r); asks && (!asked || after < before) {
		r.requeuedBy = s.resource
	}
	return err
}

// ensure calls the resource. A resource without patches passes the gate as a whole.
func (s *scope) ensure(ctx context.Context, resource Resource, obj any) error {
	s.crud, s.concludes = isOwn(resource), concludes(resource)
	if !s.crud {
		if held, err := gate(ctx, s.proposal(resource, obj)); err != nil || held == allParts {
			return err
		}
	}
	if s.reconciliation.event == deleteEvent {
		return resource.EnsureDeleted(ctx, obj)
	}
	return resource.EnsureCreated(ctx, obj)
}

// proposal returns the proposal of a resource without patches.
func (s *scope) proposal(resource Resource, obj any) Proposal {
	e, planner := s.reconciliation.event, plannerOf(resource)
	p := Proposal{Resource: s.resource, Event: plan.Event(e.String()), Opaque: planner.plan == nil, plain: true}
	p.describe = func(parts) ([]plan.Change, error) {
		would, err := planner.plan(s, e, informer.Copy(obj))
		return would.changes, err
	}
	return p
}

func (r *reconciliation) errorf(format string, args ...any) error {
	return fmt.Errorf("%s of %s: %w", r.event, describe(r.object, r.key), fmt.Errorf(format, args...))
}

// event is the event of a reconciliation.
type event uint8

const (
	updateEvent event = iota
	deleteEvent
)

func (e event) String() string { return [...]string{"update", "delete"}[e] }

// reconciliation is the context of one reconciliation. It carries the signals, and the data for
// logs, metrics, own writes and marks. There is one for each run of each object.
type reconciliation struct {
	signal.Scope

	object any
	key    informer.Key
	// framework is nil outside a framework, and scopes are then the scopes of the
	// resources.
	framework *Framework
	scopes    []identity.Scope
	// set is the set that runs, or is planned.
	set  *setPlanner
	loop uint64
	// started is the start time, since the epoch of the metrics.
	started time.Duration
	// activity is the activity of the worker. It is nil without a worker, whose queue would retry
	// failures.
	activity *activity
	// recording is the record in progress. It is nil without an Observer.
	recording *recording
	// approval is nil unless a plan is being applied.
	approval *approval
	// live is the knowledge about the object beyond the state of the source.
	live confirmation
	// failure is the error of the resources that have run, or the reason why planning failed.
	failure error
	event   event
	// author identifies the reconciliation in its writes.
	author   informer.Author
	handover identity.Handover
	// logPairs are the pairs of all log messages.
	logPairs map[string]string
	// secrets are the known secret values, those of an enclosing reconciliation included.
	secrets *secretscontext.Vocabulary
	// plans is true for a plan.
	plans bool
	// first is true if the reconciliation has added the finalizer.
	first bool
	// unfinished says why the gate has held something that must be done before the object is done.
	// It is nil if the gate hasn't. Updates that a signal forbids need not be done.
	unfinished atomic.Pointer[string]
	// requeuedBy is the resource that requested the next requeue, the earliest if several did.
	requeuedBy string
}

// init makes r a child of parent with the signals of a reconciliation. None of them is set.
func (r *reconciliation) init(parent context.Context) {
	r.Init(parent, signal.ReconciliationCanceled, signal.FinalizersKept, signal.UpdateNecessary)
	r.CarryRequeue()
	// An object's method that panics here would panic later as well.
	defer func() { _ = recover() }()
	if r.key.Name == "" {
		r.key = subjectOf(r.object).key
	}
	if r.secrets = secretscontext.From(parent); r.secrets == nil {
		r.secrets = &secretscontext.Vocabulary{}
		r.secrets.Open(r.key.Namespace, r.key.Name)
	}
	r.author.Framework, r.author.Key = r.framework, r.key
	if r.isTraced() {
		r.author.Span = recordedSpan(parent)
	}
	r.logPairs = r.pairs()
	r.Context = r.withLogPairs(parent, StepInfo{})
	informer.MarkSecrets(r, r.object)
}

// Value implements context.Context.
func (r *reconciliation) Value(key any) any {
	switch key {
	case informer.AuthorKey:
		if r.framework != nil && !r.plans {
			return &r.author
		}
	case identity.Key:
		if r.framework != nil {
			return &r.framework.scope
		}
	case identity.HandoverKey:
		return &r.handover
	case secretscontext.Key:
		return r.secrets
	case liveKey{}:
		if r.framework != nil && r.framework.live != nil && !r.plans {
			return r
		}
	}
	return r.Scope.Value(key)
}

// scope is the context of one resource in a reconciliation.
type scope struct {
	signal.Scope
	reconciliation *reconciliation
	resource       string
	// place is the resource's place in its set and in the recording.
	place int32
	// crud and concludes are the properties of the resource.
	crud, concludes bool
	// proposed are the changes that are about to be applied, if they are counted for a fight.
	// requeued is the requeue that was requested before; 0 is none.
	proposed []proposedChange
	requeued time.Duration
}

type scopeKey struct{}

// Value implements context.Context.
func (s *scope) Value(key any) any {
	switch key {
	case scopeKey{}:
		return s
	case identity.Key:
		if r := s.reconciliation; r.framework != nil {
			return &r.framework.scopes[r.set][s.place]
		}
		return &s.reconciliation.scopes[s.place]
	}
	return s.Scope.Value(key)
}

// newScope returns the context of the resource at that place in its set.
func (r *reconciliation) newScope(ctx context.Context, place int, resource string) *scope {
	s := &scope{reconciliation: r, resource: resource, place: int32(place)}
	step := stepOf(r.event)
	if r.plans {
		step = StepPlan
	}
	s.Init(r.withLogPairs(ctx, StepInfo{resource, step}), signal.ResourceCanceled)
	return s
}

// scopeOf returns the scope of the running resource, or nil outside a resource.
func scopeOf(ctx context.Context) *scope {
	s, _ := ctx.Value(scopeKey{}).(*scope)
	return s
}

func (r *reconciliation) logFields() []any {
	return []any{"event", r.event.String(), "object", describe(r.object, r.key)}
}

// logApplied logs that a part of a patch was applied, with the pairs of the context. It never logs
// the part itself, which may be a Secret.
func logApplied(ctx context.Context, logger micrologger.Logger, info StepInfo) {
	logger.LogCtx(ctx, "level", "info", "message", "applied", "resource", info.Resource, "step", string(info.Step))
}

// proceed reports whether the resource may do its next step. It may not if a signal forbids it, or,
// with an error, if the context has ended: an interrupted resource has not finished.
func proceed(ctx context.Context) (bool, error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	return !resourcecanceledcontext.IsCanceled(ctx) && !reconciliationcanceledcontext.IsCanceled(ctx), nil
}

// stepper executes steps. It is an interface because a function that is passed to middlewares would
// allocate memory even without middlewares.
type stepper interface {
	do(ctx context.Context, step Step) error
}

// runStep executes one step through its middlewares; the last one is the outermost. It turns a
// panic into an error. The error names resource and step.
func runStep(ctx context.Context, middlewares []Middleware, info StepInfo, of stepper) error {
	if s := scopeOf(ctx); s != nil {
		ctx = s.reconciliation.withLogPairs(ctx, info)
	}
	if len(middlewares) == 0 {
		return observeStep(ctx, info, nil, func(ctx context.Context) error { return of.do(ctx, info.Step) })
	}
	attempts := new(atomic.Int64)
	run := func(ctx context.Context) error {
		attempts.Add(1)
		return callStep(ctx, func(ctx context.Context) error { return of.do(ctx, info.Step) })
	}
	for _, m := range middlewares {
		next := run
		run = func(ctx context.Context) error { return m(ctx, info, next) }
	}
	return observeStep(ctx, info, attempts, run)
}

// observeStep runs a step, and adds its resource and step to the error. It reports the step to the
// observers, if any, and traces it. attempts counts the tries of the step; nil means one.
func observeStep(ctx context.Context, info StepInfo, attempts *atomic.Int64, run func(context.Context) error) error {
	s := scopeOf(ctx)
	observers := s.observers()
	if len(observers) == 0 {
		return stepError(info, callStep(ctx, run))
	}
	now := s.reconciliation.framework.metrics.now
	e := endedStep{StepInfo: info, start: now(), attempts: 1}
	observers.stepBegan(s, info, e.start)
	e.err = stepError(info, s.reconciliation.traceStep(ctx, info, func(ctx context.Context) error {
		return callStep(ctx, run)
	}))
	e.took = now() - e.start
	if attempts != nil {
		e.attempts = int(attempts.Load())
	}
	observers.stepEnded(s, e)
	return e.err
}
