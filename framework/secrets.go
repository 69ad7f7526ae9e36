package framework

import (
	"context"
	"fmt"
	"slices"

	"github.com/giantswarm/micrologger"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/operatorkit/operatorkit/context/secretscontext"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/informer"
)

// shown returns changes without the known secret values of the reconciliation. It is called after
// all resources have run, because a later one may reveal that an earlier one shows a secret.
func (r *reconciliation) shown(changes []plan.Change) []plan.Change {
	if len(changes) == 0 || r.secrets.Empty() {
		return changes
	}
	return plan.Scrub(changes, r.secrets.Scrub)
}

// scrubPlan removes the secret values from a complete plan. Its errors have none: nothing is
// planned after an error.
func (r *reconciliation) scrubPlan(p *plan.Plan) {
	if r.secrets.Empty() {
		return
	}
	for i := range p.Resources {
		of := &p.Resources[i]
		of.Changes = r.shown(of.Changes)
		of.Notes = slices.Clone(of.Notes) // the given notes are their author's
		for j, note := range of.Notes {
			of.Notes[j] = r.secrets.Scrub(note)
		}
	}
}

// scrubRecord removes the secret values from the record of a reconciliation that has ended.
func (r *reconciliation) scrubRecord(record *Record) {
	if r.secrets.Empty() {
		return
	}
	record.Error = r.secrets.Scrub(record.Error)
	for i := range record.Resources {
		of := &record.Resources[i]
		of.Error, of.Changes = r.secrets.Scrub(of.Error), r.shown(of.Changes)
	}
}

// sharingSecrets returns a child of ctx in which the plan of an object and its reconciliation share
// the known secret values. So a secret that the last resource of the plan revealed is already known
// when the first resource is compared.
func sharingSecrets(ctx context.Context, key informer.Key) context.Context {
	if secretscontext.From(ctx) != nil {
		return ctx
	}
	ctx = secretscontext.NewContext(ctx)
	secretscontext.From(ctx).Open(key.Namespace, key.Name)
	return ctx
}

// plannedChanges are the changes that a plain resource returned.
type plannedChanges []plan.Change

// Changes implements plan.Changer.
func (t plannedChanges) Changes() []plan.Change { return t }

// Logger returns a logger that writes to logger without the known secret values of the
// reconciliation (package secretscontext), also by Log, which takes no context. A logger of package
// operator/logging needs this only for Log. Outside a resource Logger returns logger unchanged.
func Logger(ctx context.Context, logger micrologger.Logger) micrologger.Logger {
	s := scopeOf(ctx)
	if s == nil {
		return logger
	}
	return &scrubbingLogger{base: logger.WithIncreasedCallerDepth(), secrets: s.reconciliation.secrets}
}

// scrubbingLogger removes secret values from its messages.
type scrubbingLogger struct {
	base    micrologger.Logger
	secrets *secretscontext.Vocabulary
	// with are the pairs of With. One of them may turn out to be secret only later.
	with []any
}

// next returns the logger for a message.
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

// Recorder returns a recorder that writes to recorder without the known secret values of the
// reconciliation (package secretscontext) in the messages of events. It is for events that are
// written inside a step; the framework scrubs its own.
func Recorder(ctx context.Context, recorder EventRecorder) EventRecorder {
	if secretscontext.From(ctx) == nil {
		return recorder
	}
	return &scrubbingRecorder{next: recorder, ctx: ctx}
}

// scrubbingRecorder removes secret values from its events.
type scrubbingRecorder struct {
	next EventRecorder
	ctx  context.Context
}

// Event implements EventRecorder.
func (r *scrubbingRecorder) Event(object runtime.Object, eventtype, reason, message string) {
	r.next.Event(object, eventtype, reason, secretscontext.Scrub(r.ctx, message))
}
