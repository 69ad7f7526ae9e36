package framework

import (
	"time"

	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/informer"
)

// Observer receives every reconciliation, to show people what an operator does.
type Observer interface {
	// Observe receives the record of a reconciliation that has ended. The record is the observer's
	// afterwards, but the content of its changes must not be modified. The workers call it: for
	// different objects at the same time, for one object in order. It must be quick, because the
	// worker waits, and must not panic.
	Observe(record *Record)
}

// Outcome is how a reconciliation ended.
type Outcome string

// The outcomes are the values of the label result of the metrics.
const (
	// Succeeded: done until the object changes.
	Succeeded Outcome = "success"
	// Failed: there was an error.
	Failed Outcome = "error"
	// Canceled: a resource cancelled the reconciliation.
	Canceled Outcome = "canceled"
	// Waiting: not finished yet, without an error: a deletion that waits, or a change that a Policy
	// holds.
	Waiting Outcome = "waiting"
	// Planned: the object is only planned, and its changes have been reported.
	Planned Outcome = "planned"
	// Ignored: there was nothing to reconcile. Record.Reason says why.
	Ignored Outcome = "ignored"
)

// Record describes one reconciliation. Its JSON form is stable: fields are added, but none is
// removed or given another meaning. Values of Secrets, and others that are marked as sensitive, are
// not in it.
type Record struct {
	// Framework is the name of the framework.
	Framework string `json:"framework"`
	// Key is the object's key in the primary source.
	Key informer.Key `json:"-"`
	// Object is the reconciled object. It has only the name if the object did not exist or could
	// not be read.
	Object plan.Object `json:"object"`
	// Event is empty without an object to reconcile.
	Event plan.Event `json:"event,omitempty"`
	// ResourceSet is the name of the resource set, if it has one.
	ResourceSet string `json:"resourceSet,omitempty"`
	// Loop is the number of the reconciliation, as in logs. It is 0 without an object to reconcile.
	Loop uint64 `json:"loop,omitempty"`
	// TraceID identifies the trace, in hexadecimal. It is empty if the reconciliation is not traced
	// (Config.TracerProvider), or was not sampled.
	TraceID string `json:"traceID,omitempty"`
	// Triggers are the first few causes of the reconciliation. TriggerCount is the number of all
	// causes.
	Triggers     []Trigger `json:"triggers,omitempty"`
	TriggerCount int       `json:"triggerCount,omitempty"`
	// Queued is the time since when the object had been waiting for a worker.
	Queued time.Time `json:"queued"`
	// Started is the start of the reconciliation, and Duration is its length.
	Started  time.Time     `json:"started"`
	Duration time.Duration `json:"durationNanoseconds"`
	// Outcome is how it ended.
	Outcome Outcome `json:"outcome"`
	// Reason says in words why there was nothing to reconcile.
	Reason string `json:"reason,omitempty"`
	// Error is the text of the error.
	Error string `json:"error,omitempty"`
	// NextTry is when the object is requeued without a change of it; zero is never.
	NextTry time.Time `json:"nextTry,omitzero"`
	// Signals are the control-flow signals of the reconciliation that were set, in words.
	Signals []string `json:"signals,omitempty"`
	// Resources are the resources of the set, in order, including resources that were not reached.
	Resources []ResourceRecord `json:"resources,omitempty"`
}

// ResourceRecord describes the run of one resource in a reconciliation.
type ResourceRecord struct {
	// Name is the name of the resource.
	Name string `json:"name"`
	// Start is relative to the start of the reconciliation. Duration counts from Start.
	Start    time.Duration `json:"startNanoseconds"`
	Duration time.Duration `json:"durationNanoseconds"`
	// Skipped says why the resource did not run, or not completely, if that is not an error.
	Skipped string `json:"skipped,omitempty"`
	// Error is the text of the error.
	Error string `json:"error,omitempty"`
	// Steps are the steps of a CRUD resource. A plain resource has none.
	Steps []StepRecord `json:"steps,omitempty"`
	// Changes are the changes that a CRUD resource started to apply, in order, or, if the outcome
	// is Planned, would apply. After an error, the last part of the patch may have been applied
	// only in part.
	Changes []plan.Change `json:"changes,omitempty"`
}

// StepRecord describes one step of a resource.
type StepRecord struct {
	// Resource is set if the step belongs to another resource, which the resource called itself.
	Resource string `json:"resource,omitempty"`
	// Step is the step that was executed.
	Step Step `json:"step"`
	// Start is relative to the start of the reconciliation. Duration counts from Start.
	Start    time.Duration `json:"startNanoseconds"`
	Duration time.Duration `json:"durationNanoseconds"`
	// Attempts is the number of tries, if wrappers of the step tried it more than once.
	Attempts int `json:"attempts,omitempty"`
	// Failed is true if the step ended with an error. The error is in the record of the resource.
	Failed bool `json:"failed,omitempty"`
}
