package framework

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/giantswarm/micrologger"

	"github.com/operatorkit/operatorkit/context/deletionallowedcontext"
	"github.com/operatorkit/operatorkit/context/finalizerskeptcontext"
	"github.com/operatorkit/operatorkit/context/reconciliationcanceledcontext"
	"github.com/operatorkit/operatorkit/context/resourcecanceledcontext"
	"github.com/operatorkit/operatorkit/context/secretscontext"
	"github.com/operatorkit/operatorkit/context/signal"
	"github.com/operatorkit/operatorkit/context/updateallowedcontext"
	"github.com/operatorkit/operatorkit/framework/identity"
	"github.com/operatorkit/operatorkit/informer"
)

// ProcessUpdate runs the resources for an object that was created or changed. It is a drop-in for an informer's
// handlers; a Framework does the same for the keys of its queue.
//
//	handler := cache.ResourceEventHandlerFuncs{
//		AddFunc:    func(obj any) { err = framework.ProcessUpdate(ctx, obj, resources) },
//		UpdateFunc: func(_, obj any) { err = framework.ProcessUpdate(ctx, obj, resources) },
//		DeleteFunc: func(obj any) { err = framework.ProcessDelete(ctx, obj, resources) },
//	}
//
// The resources run in the order given, each with a copy of obj. The first error ends the run; it names the object, the
// resource and the step. Without resources it is an error for which IsExecutionFailed holds. Each call has signals of
// its own; one that the caller's context carries is set too when a resource sets it. If the reconciliation of the caller's context
// is cancelled, nothing runs and the result is nil, as when a resource has cancelled it: a next reconciliation takes another one.
func ProcessUpdate(ctx context.Context, obj any, resources []Resource) error {
	return runWithoutFramework(ctx, updateEvent, obj, resources)
}

// ProcessDelete runs the resources for an object that is being deleted; obj is its last known state. All that is said
// of ProcessUpdate holds here too. When a resource cancelled the reconciliation the result is nil although the deletion
// is not complete: a caller that has to know puts reconciliationcanceledcontext.NewContext into ctx and looks at it.
func ProcessDelete(ctx context.Context, obj any, resources []Resource) error {
	return runWithoutFramework(ctx, deleteEvent, obj, resources)
}

// runWithoutFramework runs resources for somebody who is not a Framework, and hands the signals on to the caller's context.
func runWithoutFramework(ctx context.Context, e event, obj any, resources []Resource) error {
	if reconciliationcanceledcontext.IsCanceled(ctx) {
		return nil
	}
	r := &reconciliation{event: e, object: obj, scopes: scopesOf(identity.From(ctx).Identity, leftOf(resources))}
	r.init(ctx)
	err := advised(runResources(r, r, informer.Copy(obj), resources))
	if reconciliationcanceledcontext.IsCanceled(r) {
		reconciliationcanceledcontext.SetCanceled(ctx)
	}
	if finalizerskeptcontext.IsKept(r) {
		finalizerskeptcontext.SetKept(ctx)
	}
	if after, ok := signal.Requeue(r); ok {
		signal.SetRequeue(ctx, after)
	}
	return err
}

// runResources runs the resources in order, and after an error those that conclude. ctx is r or a child of it. The object is given
// away: the last resource gets it, the others get copies.
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
		if i < len(resources)-1 {
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

// runResource runs one resource, which has that place in its set, in a scope of its own.
func (r *reconciliation) runResource(ctx context.Context, place int, resource Resource, obj any) error {
	ensure, step := resource.EnsureCreated, StepEnsureCreated
	if r.event == deleteEvent {
		ensure, step = resource.EnsureDeleted, StepEnsureDeleted
		if !isOwn(resource) && !concludes(resource) {
			ensure = confirmedFirst(ensure)
		}
	}
	s := &scope{reconciliation: r, resource: resource.Name(), step: step, place: place, identity: r.scopeAt(place)}
	s.Init(ctx, signal.ResourceCanceled)
	if r.approval != nil && !concludes(resource) {
		ensure = r.approval.guarded(s, resource, ensure)
	}
	r.recording.reached(place)
	err := measureStep(s, StepInfo{s.resource, step}, nil, func(ctx context.Context) error { return ensure(ctx, obj) })
	r.recording.left(s)
	return err
}

func (r *reconciliation) errorf(format string, args ...any) error {
	return fmt.Errorf("%s of %s: %w", r.event, describe(r.object, r.key), fmt.Errorf(format, args...))
}

// event is what a reconciliation is about.
type event string

const (
	updateEvent event = "update"
	deleteEvent event = "delete"
)

// reconciliation is the context of one reconciliation: it carries its signals and what logs and metrics say about it.
type reconciliation struct {
	signal.Scope

	event     event
	object    any
	key       informer.Key
	framework string
	loop      uint64
	// metrics is nil outside of a Framework.
	metrics *metrics
	// activity is that of the worker, and nil outside of one.
	activity *activity
	// queued is true if the queue of a Framework tries again what fails, and lastTry is what LastTry returns.
	queued  bool
	lastTry error
	// recording is nil without an Observer.
	recording *recording
	// approval is nil unless a plan is being applied.
	approval *approval
	// life is what is known of the object beyond what the source says.
	life life
	// identity is whose the reconciliation is, and nil outside of a Framework; scopes are those of the resources.
	identity *identity.Scope
	scopes   []identity.Scope
	handover identity.Handover
	// author is who writes in it, and without a framework nobody.
	author informer.Author
	// failure is the error of the resources that have run, or why planning failed.
	failure error
	// log is what messages say of it.
	log logMeta
	// secrets are the values that nobody may see of the reconciliation: ownSecrets, or those of the one that it is a part of.
	secrets    *secretscontext.Vocabulary
	ownSecrets secretscontext.Vocabulary
	// deletionRefused is set when the deletion was not allowed at the moment when a part of it was due.
	deletionRefused atomic.Bool
}

// init makes r a child of parent with the signals of a reconciliation, none of them set.
func (r *reconciliation) init(parent context.Context) {
	r.Init(parent, signal.ReconciliationCanceled, signal.FinalizersKept, signal.UpdateNecessary)
	r.CarryRequeue()
	r.keepSecrets(parent)
}

// keepSecrets has the secrets of the object scrubbed from what is told of the reconciliation.
func (r *reconciliation) keepSecrets(parent context.Context) {
	defer func() { _ = recover() }() // What the object's methods can't tell now they can't tell later.
	if r.secrets = secretscontext.From(parent); r.secrets == nil {
		r.secrets = &r.ownSecrets
		if m, ok := metaOf(r.object); ok {
			r.secrets.Open(m.GetNamespace(), m.GetName())
		}
	}
	informer.MarkSecrets(r, r.object)
}

// Value implements context.Context.
func (r *reconciliation) Value(key any) any {
	if v, ok := identity.ValueOf(key, r.identity, &r.handover); ok {
		return v
	}
	switch key {
	case metaKey:
		return r.log.of(r, StepInfo{}, r.Scope.Value(key))
	case informer.AuthorKey:
		if r.author.Framework == nil {
			return r.Scope.Value(key)
		}
		return &r.author
	}
	if _, ok := key.(lifeKey); ok && r.life.framework != nil {
		return r
	}
	if v, ok := secretscontext.ValueOf(key, r.secrets); ok {
		return v
	}
	return r.Scope.Value(key)
}

// scopeAt is whose the work is of the resource that has that place in its set.
func (r *reconciliation) scopeAt(place int) *identity.Scope { return &r.scopes[place] }

// scope is the context of one resource in a reconciliation.
type scope struct {
	signal.Scope
	reconciliation *reconciliation
	identity       *identity.Scope
	resource       string
	// step is the one that all others are part of, and log is what messages say of it.
	step Step
	log  logMeta
	// place is the resource's place in the recording.
	place int
	// approval is set for a resource that compares what it is about to apply itself.
	approval *approval
}

type scopeKey struct{}

// Value implements context.Context.
func (s *scope) Value(key any) any {
	if _, ok := key.(scopeKey); ok {
		return s
	}
	if v, ok := identity.ValueOf(key, s.identity, &s.reconciliation.handover); ok {
		return v
	}
	if key == metaKey {
		return s.log.of(s.reconciliation, StepInfo{s.resource, s.step}, s.Scope.Value(key))
	}
	return s.Scope.Value(key)
}

// scopeOf returns the scope of the resource that is running, or nil outside of one.
func scopeOf(ctx context.Context) *scope {
	s, _ := ctx.Value(scopeKey{}).(*scope)
	return s
}

func (r *reconciliation) logFields() []any {
	return []any{"event", string(r.event), "object", describe(r.object, r.key)}
}

// logApplied logs that a part of a patch was applied, with what the context says. It never logs the part itself: that may be a Secret.
func logApplied(ctx context.Context, logger micrologger.Logger, info StepInfo) {
	logger.LogCtx(ctx, "level", "info", "message", "applied", "resource", info.Resource, "step", string(info.Step))
}

// proceed tells whether the resource may do its next step. It may not when a signal says so, and, with an error, when
// the context has ended: what was interrupted is not done.
func proceed(ctx context.Context) (bool, error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	return !resourcecanceledcontext.IsCanceled(ctx) && !reconciliationcanceledcontext.IsCanceled(ctx), nil
}

func updateAllowed(ctx context.Context) bool { return updateallowedcontext.IsUpdateAllowed(ctx) }

// deletionAllowed tells whether a delete part may be applied in a deletion, and remembers a refusal: a deletion that
// was refused once is not a finished one, also when a later resource allows it.
func deletionAllowed(ctx context.Context) bool {
	if deletionallowedcontext.IsDeletionAllowed(ctx) {
		return true
	}
	if s := scopeOf(ctx); s != nil {
		s.reconciliation.deletionRefused.Store(true)
	}
	return false
}

// runStep carries out one step through its middlewares, the last of which is the outermost. A panic is an error. The
// error names resource and step.
func runStep(ctx context.Context, middlewares []Middleware, info StepInfo, do func(context.Context) error) error {
	if s := scopeOf(ctx); s != nil {
		ctx = &stepContext{Context: ctx, scope: s, info: info}
	}
	run := do
	var attempts *atomic.Int64
	if len(middlewares) > 0 {
		attempts = new(atomic.Int64)
		run = func(ctx context.Context) error {
			attempts.Add(1)
			return recoveredIn(ctx, do)
		}
		for _, m := range middlewares {
			next := run
			run = func(ctx context.Context) error { return m(ctx, info, next) }
		}
	}
	return measureStep(ctx, info, attempts, run)
}

// measureStep runs a step, reports it to the metrics of the framework that runs the reconciliation, if any, and to its
// recording, and gives the error its resource and step. attempts counts how often the step is tried; nil is once.
func measureStep(ctx context.Context, info StepInfo, attempts *atomic.Int64, run func(context.Context) error) error {
	scope := scopeOf(ctx)
	if scope == nil || scope.reconciliation.metrics == nil {
		return stepError(info, recoveredIn(ctx, run))
	}
	m := scope.reconciliation.metrics
	activity, start := scope.reconciliation.activity, m.now()
	outer := activity.enter(info, start)
	err := recoveredIn(ctx, run)
	took := m.now() - start
	activity.enter(outer, start+took)
	m.observe(info, took, err)
	err = stepError(info, err)
	if recording := scope.reconciliation.recording; recording != nil {
		tried := int64(1)
		if attempts != nil {
			tried = attempts.Load()
		}
		recording.step(scope, info, start, took, int(tried), err)
	}
	return err
}

func stepError(info StepInfo, err error) error {
	if err == nil {
		return nil
	}
	var already *StepError
	if errors.As(err, &already) {
		return err
	}
	return &StepError{Resource: info.Resource, Step: info.Step, Err: err}
}
