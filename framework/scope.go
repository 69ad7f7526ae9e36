package framework

import (
	"context"
	"sync/atomic"

	"github.com/giantswarm/micrologger"

	"github.com/operatorkit/operatorkit/context/signal"
	"github.com/operatorkit/operatorkit/informer"
)

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
	// recording is nil without an Observer.
	recording *recording
	// approval is nil unless a plan is being applied.
	approval *approval
	// held is set when the deletion was not allowed at the moment when a part of it was due.
	held atomic.Bool
}

// init makes r a child of parent with the signals of a reconciliation, none of them set.
func (r *reconciliation) init(parent context.Context) {
	r.Init(parent, signal.ReconciliationCanceled, signal.FinalizersKept, signal.UpdateNecessary)
	r.CarryRequeue()
}

// scope is the context of one resource in a reconciliation.
type scope struct {
	signal.Scope
	reconciliation *reconciliation
	resource       string
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
	return s.Scope.Value(key)
}

// scopeOf returns the scope of the resource that is running, or nil outside of one.
func scopeOf(ctx context.Context) *scope {
	s, _ := ctx.Value(scopeKey{}).(*scope)
	return s
}

// Logger returns logger with what the context of a resource says: framework, object, loop and resource. Outside of a
// resource it returns logger as it is.
func Logger(ctx context.Context, logger micrologger.Logger) micrologger.Logger {
	s := scopeOf(ctx)
	if s == nil {
		return logger
	}
	return logger.With(append(s.reconciliation.logFields(), "resource", s.resource)...)
}

func (r *reconciliation) logFields() []any {
	fields := []any{"event", string(r.event), "object", describe(r.object, r.key)}
	if r.framework != "" {
		fields = append(fields, "framework", r.framework, "loop", r.loop)
	}
	return fields
}

// logApplied logs that a part of a patch was applied. It never logs the part itself: that may be a Secret.
func logApplied(ctx context.Context, logger micrologger.Logger, info StepInfo) {
	fields := []any{"level", "debug", "message", "applied", "resource", info.Resource, "step", string(info.Step)}
	if s := scopeOf(ctx); s != nil {
		fields = append(fields, s.reconciliation.logFields()...)
	}
	logger.LogCtx(ctx, fields...)
}
