package logging

import (
	"context"

	"github.com/giantswarm/micrologger"
)

// The keys of micrologger's stream that have a meaning of their own.
const (
	keyLevel   = "level"
	keyMessage = "message"
	keyStack   = "stack"
	keyCaller  = "caller"
	keyTime    = "time"
)

// filtered lets only messages of a severity through.
type filtered struct {
	next      micrologger.Logger
	threshold severity
	// preset is the severity that With gave to all messages, or unknown.
	preset severity
}

func (f *filtered) passes(s severity) bool { return s >= f.threshold }

// Debug implements micrologger.Logger.
func (f *filtered) Debug(ctx context.Context, message string) {
	if f.passes(debug) {
		f.next.Debug(ctx, message)
	}
}

// Debugf implements micrologger.Logger.
func (f *filtered) Debugf(ctx context.Context, format string, params ...any) {
	if f.passes(debug) {
		f.next.Debugf(ctx, format, params...)
	}
}

// Error implements micrologger.Logger.
func (f *filtered) Error(ctx context.Context, err error, message string) {
	f.next.Error(ctx, err, message)
}

// Errorf implements micrologger.Logger.
func (f *filtered) Errorf(ctx context.Context, err error, format string, params ...any) {
	f.next.Errorf(ctx, err, format, params...)
}

// Log implements micrologger.Logger.
func (f *filtered) Log(keyVals ...any) {
	if f.passes(presetOr(f.preset, keyVals)) {
		f.next.Log(keyVals...)
	}
}

// LogCtx implements micrologger.Logger.
func (f *filtered) LogCtx(ctx context.Context, keyVals ...any) {
	if f.passes(presetOr(f.preset, keyVals)) {
		f.next.LogCtx(ctx, keyVals...)
	}
}

// With implements micrologger.Logger.
func (f *filtered) With(keyVals ...any) micrologger.Logger {
	return &filtered{next: f.next.With(keyVals...), threshold: f.threshold, preset: presetOr(f.preset, keyVals)}
}

// WithIncreasedCallerDepth implements micrologger.Logger.
func (f *filtered) WithIncreasedCallerDepth() micrologger.Logger {
	return &filtered{next: f.next.WithIncreasedCallerDepth(), threshold: f.threshold, preset: f.preset}
}

// enabled tells whether a logger writes messages of a severity; a foreign one is taken to write all.
func enabled(logger micrologger.Logger, s severity) bool {
	f, ok := logger.(*filtered)
	return !ok || f.passes(s)
}
