package logging

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/giantswarm/micrologger"

	"github.com/operatorkit/operatorkit/context/secretscontext"
)

// The keys of micrologger's stream that have a meaning of their own.
const (
	keyLevel   = "level"
	keyMessage = "message"
	keyStack   = "stack"
	keyCaller  = "caller"
	keyTime    = "time"
	// keyLeft is how many messages like this one were left out before it.
	keyLeft = "suppressed"
)

// filtered lets only messages of a severity through, of those what their context does not know to be secret, and of those that are
// repeated too fast only some. What is too long it cuts.
type filtered struct {
	next micrologger.Logger
	// base is next without the pairs of With, which may have in them what a context knows to be secret.
	base micrologger.Logger
	with []any
	// threshold is the least severity, of this logger and of all that derive from it.
	threshold *atomic.Int32
	// preset is the severity that With gave to all messages, or unknown.
	preset  severity
	sampler *sampler
}

func (f *filtered) passes(s severity) bool { return s >= severity(f.threshold.Load()) }

// to returns where to write a message, and nil if it is not to be written.
func (f *filtered) to(ctx context.Context, s severity, text string) micrologger.Logger {
	if !f.passes(s) {
		return nil
	}
	left, ok := 0, true
	if text != "" {
		left, ok = f.sampler.take(s, text)
	}
	if !ok {
		return nil
	}
	next := f.next
	if secrets := secretscontext.From(ctx); len(f.with) > 0 && !secrets.Empty() {
		next = f.base.With(shortPairs(secrets.ScrubPairs(f.with))...)
	}
	if left > 0 {
		return next.With(keyLeft, left)
	}
	return next
}

// Debug implements micrologger.Logger.
func (f *filtered) Debug(ctx context.Context, message string) {
	if to := f.to(ctx, debug, message); to != nil {
		to.Debug(ctx, short(secretscontext.Scrub(ctx, message)))
	}
}

// Debugf implements micrologger.Logger. Messages of one format are the same, whatever their parameters.
func (f *filtered) Debugf(ctx context.Context, format string, params ...any) {
	if to := f.to(ctx, debug, format); to != nil {
		to.Debug(ctx, short(secretscontext.Scrub(ctx, fmt.Sprintf(format, params...))))
	}
}

// Error implements micrologger.Logger.
func (f *filtered) Error(ctx context.Context, err error, message string) {
	if to := f.to(ctx, failure, message); to != nil {
		to.Error(ctx, shortError(secretscontext.From(ctx).Shown(err)), short(secretscontext.Scrub(ctx, message)))
	}
}

// Errorf implements micrologger.Logger. Messages of one format are the same, whatever their parameters.
func (f *filtered) Errorf(ctx context.Context, err error, format string, params ...any) {
	if to := f.to(ctx, failure, format); to != nil {
		to.Error(ctx, shortError(secretscontext.From(ctx).Shown(err)), short(secretscontext.Scrub(ctx, fmt.Sprintf(format, params...))))
	}
}

// Log implements micrologger.Logger.
func (f *filtered) Log(keyVals ...any) {
	if to := f.to(context.Background(), presetOr(f.preset, keyVals), textOf(keyVals)); to != nil {
		to.Log(shortPairs(keyVals)...)
	}
}

// LogCtx implements micrologger.Logger.
func (f *filtered) LogCtx(ctx context.Context, keyVals ...any) {
	if to := f.to(ctx, presetOr(f.preset, keyVals), textOf(keyVals)); to != nil {
		to.LogCtx(ctx, shortPairs(secretscontext.From(ctx).ScrubPairs(keyVals))...)
	}
}

// With implements micrologger.Logger.
func (f *filtered) With(keyVals ...any) micrologger.Logger {
	derived := *f
	derived.next, derived.preset = f.next.With(shortPairs(keyVals)...), presetOr(f.preset, keyVals)
	derived.with = append(slices.Clip(f.with), keyVals...)
	return &derived
}

// WithIncreasedCallerDepth implements micrologger.Logger.
func (f *filtered) WithIncreasedCallerDepth() micrologger.Logger {
	derived := *f
	derived.next, derived.base = f.next.WithIncreasedCallerDepth(), f.base.WithIncreasedCallerDepth()
	return &derived
}

// enabled tells whether a logger writes messages of a severity; a foreign one is taken to write all.
func enabled(logger micrologger.Logger, s severity) bool {
	f, ok := logger.(*filtered)
	return !ok || f.passes(s)
}

// textOf returns the message among the pairs, and nothing if it has none that is a text.
func textOf(keyVals []any) string {
	for i := 1; i < len(keyVals); i += 2 {
		if keyVals[i-1] == keyMessage {
			text, _ := keyVals[i].(string)
			return text
		}
	}
	return ""
}
