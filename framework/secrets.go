package framework

import (
	"context"
	"fmt"
	"slices"

	"github.com/giantswarm/micrologger"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/operatorkit/operatorkit/context/secretscontext"
	"github.com/operatorkit/operatorkit/framework/plan"
)

// described describes a part of a patch without the secret values that are known in the reconciliation.
func described(ctx context.Context, action plan.Action, part, current any) []plan.Change {
	changes := plan.Describe(action, part, current)
	if secrets := secretscontext.From(ctx); !secrets.Empty() {
		return plan.Scrub(changes, secrets.Scrub)
	}
	return changes
}

// plannedChanges are the changes that a plain resource tells itself.
type plannedChanges []plan.Change

// Changes implements plan.Changer.
func (t plannedChanges) Changes() []plan.Change { return t }

// notesOf returns the notes of a desired state without the secret values that are known.
func notesOf(ctx context.Context, desired any) []string {
	notes := plan.Notes(desired)
	if secrets := secretscontext.From(ctx); !secrets.Empty() {
		shown := make([]string, 0, len(notes))
		for _, note := range notes {
			shown = append(shown, secrets.Scrub(note))
		}
		return shown
	}
	return notes
}

// Logger returns logger without the secret values that are known in the reconciliation (package secretscontext): they are not in what
// it writes. The logger of package operator/logging does so by itself. Outside of a resource Logger returns logger as it is.
func Logger(ctx context.Context, logger micrologger.Logger) micrologger.Logger {
	s := scopeOf(ctx)
	if s == nil {
		return logger
	}
	return &scrubbingLogger{base: logger.WithIncreasedCallerDepth(), secrets: s.reconciliation.extras().secrets}
}

// scrubbingLogger leaves secret values out of what it passes on.
type scrubbingLogger struct {
	base    micrologger.Logger
	secrets *secretscontext.Vocabulary
	// with are the pairs of With. What is secret of them may become known after it.
	with []any
}

// next returns where to write a message.
func (l *scrubbingLogger) next() micrologger.Logger {
	if len(l.with) == 0 {
		return l.base
	}
	return l.base.With(l.secrets.ScrubPairs(l.with)...)
}

// Debug implements micrologger.Logger.
func (l *scrubbingLogger) Debug(ctx context.Context, message string) {
	l.next().Debug(ctx, l.secrets.Scrub(message))
}

// Debugf implements micrologger.Logger.
func (l *scrubbingLogger) Debugf(ctx context.Context, format string, params ...any) {
	l.next().Debug(ctx, l.secrets.Scrub(fmt.Sprintf(format, params...)))
}

// Error implements micrologger.Logger.
func (l *scrubbingLogger) Error(ctx context.Context, err error, message string) {
	l.next().Error(ctx, l.secrets.Shown(err), l.secrets.Scrub(message))
}

// Errorf implements micrologger.Logger.
func (l *scrubbingLogger) Errorf(ctx context.Context, err error, format string, params ...any) {
	l.next().Error(ctx, l.secrets.Shown(err), l.secrets.Scrub(fmt.Sprintf(format, params...)))
}

// Log implements micrologger.Logger.
func (l *scrubbingLogger) Log(keyVals ...any) { l.next().Log(l.secrets.ScrubPairs(keyVals)...) }

// LogCtx implements micrologger.Logger.
func (l *scrubbingLogger) LogCtx(ctx context.Context, keyVals ...any) {
	l.next().LogCtx(ctx, l.secrets.ScrubPairs(keyVals)...)
}

// With implements micrologger.Logger.
func (l *scrubbingLogger) With(keyVals ...any) micrologger.Logger {
	return &scrubbingLogger{l.base, l.secrets, append(slices.Clip(l.with), keyVals...)}
}

// WithIncreasedCallerDepth implements micrologger.Logger.
func (l *scrubbingLogger) WithIncreasedCallerDepth() micrologger.Logger {
	return &scrubbingLogger{l.base.WithIncreasedCallerDepth(), l.secrets, l.with}
}

// Recorder returns recorder without the secret values that are known in the reconciliation (package secretscontext): they are not in the
// messages of its events. It is for events that are written inside a step; those of the framework are scrubbed by themselves.
func Recorder(ctx context.Context, recorder EventRecorder) EventRecorder {
	if secretscontext.From(ctx) == nil {
		return recorder
	}
	return &scrubbingRecorder{next: recorder, ctx: ctx}
}

// scrubbingRecorder leaves secret values out of what it passes on.
type scrubbingRecorder struct {
	next EventRecorder
	ctx  context.Context
}

// Event implements EventRecorder.
func (r *scrubbingRecorder) Event(object runtime.Object, eventtype, reason, message string) {
	r.next.Event(object, eventtype, reason, secretscontext.Scrub(r.ctx, message))
}
