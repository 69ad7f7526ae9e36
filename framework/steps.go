package framework

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/operatorkit/operatorkit/context/deletionallowedcontext"
	"github.com/operatorkit/operatorkit/context/reconciliationcanceledcontext"
	"github.com/operatorkit/operatorkit/context/resourcecanceledcontext"
	"github.com/operatorkit/operatorkit/context/updateallowedcontext"
)

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
// was held back once is not a finished one, also when a later resource allows it.
func deletionAllowed(ctx context.Context) bool {
	if deletionallowedcontext.IsDeletionAllowed(ctx) {
		return true
	}
	if s := scopeOf(ctx); s != nil {
		s.reconciliation.held.Store(true)
	}
	return false
}

// runStep carries out one step through its middlewares, the last of which is the outermost. A panic is an error. The
// error names resource and step.
func runStep(ctx context.Context, middlewares []Middleware, info StepInfo, do func(context.Context) error) error {
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
	return observed(ctx, info, attempts, run)
}

// observed runs a step, reports it to the metrics of the framework that runs the reconciliation, if any, and to its
// recording, and gives the error its resource and step. attempts counts how often the step is tried; nil is once.
func observed(ctx context.Context, info StepInfo, attempts *atomic.Int64, run func(context.Context) error) error {
	scope := scopeOf(ctx)
	if scope == nil || scope.reconciliation.metrics == nil {
		return named(info, recoveredIn(ctx, run))
	}
	m := scope.reconciliation.metrics
	start := m.now()
	err := recoveredIn(ctx, run)
	took := m.now() - start
	m.observe(info, took, err)
	err = named(info, err)
	if recording := scope.reconciliation.recording; recording != nil {
		tried := int64(1)
		if attempts != nil {
			tried = attempts.Load()
		}
		recording.step(scope, info, start, took, int(tried), err)
	}
	return err
}

func named(info StepInfo, err error) error {
	if err == nil {
		return nil
	}
	var already *StepError
	if errors.As(err, &already) {
		return err
	}
	return &StepError{Resource: info.Resource, Step: info.Step, Err: err}
}

// recoveredIn calls run with ctx and turns a panic into a *PanicError.
func recoveredIn(ctx context.Context, run func(context.Context) error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = newPanicError(v)
		}
	}()
	return run(ctx)
}

// Recovered calls f and turns a panic into a *PanicError, as the framework does with whatever it calls: for those who call the code
// of others themselves.
func Recovered(f func() error) error {
	return recoveredIn(context.Background(), func(context.Context) error { return f() })
}
