package framework

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/operatorkit/operatorkit/context/secretscontext"
	"github.com/operatorkit/operatorkit/framework/internal/keyed"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/internal/cut"
)

// The reasons of the events that a framework writes.
const (
	ReasonReconciliationFailed = "ReconciliationFailed"
	ReasonNoResourceSet        = "NoResourceSet"
	ReasonSeveralResourceSets  = "SeveralResourceSets"
	ReasonChangeUndone         = "ChangeUndone"
)

// EventRecorder writes Kubernetes events. The recorders of client-go and controller-runtime
// implement it.
type EventRecorder interface {
	Event(object runtime.Object, eventtype, reason, message string)
}

// AnyEventRecorder is an EventRecorder that also writes events on objects that are not Kubernetes
// objects. It gets these by EventOn, and all others by Event.
type AnyEventRecorder interface {
	EventRecorder
	EventOn(object any, eventtype, reason, message string)
}

// maxEventMessage is the limit of the API server for the message of an event, in bytes.
const maxEventMessage = 1024

// reporter writes events on objects that fail, once for each cause: the same error is not written
// again until it has changed or the object has recovered.
type reporter struct {
	recorder EventRecorder
	guard    func(what string, call func(), fields ...any)
	seed     maphash.Seed
	// causes has the hashes of the messages: the texts of many failing objects would take more
	// memory than the objects.
	causes keyed.Map[uint64]
}

func (r *reporter) failed(key informer.Key, obj any, err error) {
	record := r.recordOn(obj)
	if record == nil {
		return
	}
	message := cut.Text(err.Error(), maxEventMessage)
	cause := maphash.String(r.seed, message)
	if before, known := r.causes.Set(key, cause); !known || before != cause {
		record(corev1.EventTypeWarning, reasonOf(err), message)
	}
}

// failureReports reports the errors of reconciliations by log messages and events.
type failureReports struct {
	*Framework
	unobserved
}

func (f failureReports) ended(e ended) {
	err := e.err
	switch {
	case err == nil:
		f.reporter.recovered(e.key)
		return
	case !e.tell:
		return
	case e.conflicts > 0:
		err = fmt.Errorf("%w (%d times in a row or more: metadata.managedFields of the object says who else writes it)",
			err, reportedConflicts)
	}
	fields := []any{"error", err.Error()}
	if e.reconciliation != nil {
		fields = append(fields, e.reconciliation.logFields()...)
		fields = append(fields, "loop", e.reconciliation.loop)
		if id := e.reconciliation.traceID(); id != "" {
			fields = append(fields, "trace_id", id)
		}
	} else {
		fields = append(fields, "object", keyString(e.key))
	}
	var step *StepError
	if errors.As(err, &step) {
		fields = append(fields, "resource", step.Resource, "step", string(step.Step))
	}
	if stack := stackOf(err); stack != "" {
		fields = append(fields, "stack", stack)
	}
	retry := "at the next change"
	if e.next > 0 {
		retry = e.next.Round(time.Millisecond).String()
	}
	f.log("error", "reconciliation failed", append(fields, "retry", retry)...)
	if e.reconciliation != nil {
		f.reporter.failed(e.key, e.reconciliation.object, err)
	}
}

// Warn writes a warning event on the object that is being reconciled, for a problem of a resource
// that is not an error. Known secret values of the reconciliation are left out. Outside a
// reconciliation of a Framework, for example in a plan, Warn returns false and writes nothing. It
// does not remember its events: the caller must not repeat a warning.
func Warn(ctx context.Context, reason, message string) bool {
	s := scopeOf(ctx)
	if s == nil || s.reconciliation.framework == nil || s.reconciliation.plans {
		return false
	}
	if record := s.reconciliation.framework.reporter.recordOn(s.reconciliation.object); record != nil {
		record(corev1.EventTypeWarning, reason, cut.Text(secretscontext.Scrub(ctx, message), maxEventMessage))
	}
	return true
}

// Warn implements access.Engine.
func (f engine) Warn(obj any, reason, message string) {
	if record := f.reporter.recordOn(obj); record != nil {
		record(corev1.EventTypeWarning, reason, cut.Text(message, maxEventMessage))
	}
}

// recordOn returns a function that writes events on an object, or nil if that is impossible.
func (r *reporter) recordOn(obj any) func(eventtype, reason, message string) {
	if r.recorder == nil || isNil(obj) {
		return nil
	}
	var record func(eventtype, reason, message string)
	if o, ok := obj.(runtime.Object); ok {
		record = func(eventtype, reason, message string) { r.recorder.Event(o, eventtype, reason, message) }
	} else if recorder, ok := r.recorder.(AnyEventRecorder); ok {
		record = func(eventtype, reason, message string) { recorder.EventOn(obj, eventtype, reason, message) }
	} else {
		return nil
	}
	return func(eventtype, reason, message string) {
		r.guard("write an event", func() { record(eventtype, reason, message) }, "reason", reason)
	}
}

// recovered forgets why an object failed.
func (r *reporter) recovered(key informer.Key) { r.causes.Delete(key) }

func reasonOf(err error) string {
	switch {
	case errors.Is(err, ErrNoResourceSet):
		return ReasonNoResourceSet
	case errors.Is(err, errSeveralResourceSets):
		return ReasonSeveralResourceSets
	}
	return ReasonReconciliationFailed
}
