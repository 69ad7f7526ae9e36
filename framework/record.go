package framework

import (
	"time"

	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/informer"
)

// Observer is told of every reconciliation, to show people what an operator does.
type Observer interface {
	// Observe receives the record of a reconciliation that has ended. The record is the observer's afterwards, but what
	// its changes hold must not be modified. It is called by the workers: for different
	// objects at the same time, for one object in order. It must be quick, because the worker waits, and must not panic.
	Observe(record *Record)
}

// Outcome is how a reconciliation ended.
type Outcome string

// The outcomes. They are what the label result of the metrics says.
const (
	// Succeeded: done until the object changes.
	Succeeded Outcome = "success"
	// Failed: there was an error.
	Failed Outcome = "error"
	// Canceled: a resource cancelled the reconciliation.
	Canceled Outcome = "canceled"
	// Waiting: not finished yet, without an error: a deletion that waits, or a change that a Policy holds.
	Waiting Outcome = "waiting"
	// Planned: the object is only planned for, and what would change has been told.
	Planned Outcome = "planned"
	// Ignored: there was nothing to reconcile. Record.Reason says why.
	Ignored Outcome = "ignored"
)

// Record is what happened in one reconciliation. Its JSON form is stable: fields are added, but none is removed or given
// another meaning. Values of Secrets, and others that are marked as sensitive, are not in it.
type Record struct {
	// Framework is the name of the framework.
	Framework string `json:"framework"`
	// Key is the object's key in the primary source.
	Key informer.Key `json:"-"`
	// Object is the object that was reconciled. Of one that was not there, or could not be read, only the name is known.
	Object plan.Object `json:"object"`
	// Event is empty when there was no object to reconcile.
	Event plan.Event `json:"event,omitempty"`
	// ResourceSet is the name of the resource set, if it has one.
	ResourceSet string `json:"resourceSet,omitempty"`
	// Loop is the number of the reconciliation, as logs have it. It is 0 when there was no object to reconcile.
	Loop uint64 `json:"loop,omitempty"`
	// TraceID is by which its trace is found, in hexadecimal. It is empty when it is not traced (Config.TracerProvider), or was not sampled.
	TraceID string `json:"traceID,omitempty"`
	// Triggers are why the object was looked at: the first few causes. TriggerCount is how many there were.
	Triggers     []Trigger `json:"triggers,omitempty"`
	TriggerCount int       `json:"triggerCount,omitempty"`
	// Queued is since when the object had been waiting for a worker.
	Queued time.Time `json:"queued"`
	// Started is when the reconciliation began, and Duration is how long it took.
	Started  time.Time     `json:"started"`
	Duration time.Duration `json:"durationNanoseconds"`
	// Outcome is how it ended.
	Outcome Outcome `json:"outcome"`
	// Reason says in words why there was nothing to reconcile.
	Reason string `json:"reason,omitempty"`
	// Error is what went wrong.
	Error string `json:"error,omitempty"`
	// NextTry is when the object is looked at again without a change of it; zero is never.
	NextTry time.Time `json:"nextTry,omitzero"`
	// Signals are the control-flow signals of the reconciliation that were set, in words.
	Signals []string `json:"signals,omitempty"`
	// Resources are those of the resource set, in order, also those that were not reached.
	Resources []ResourceRecord `json:"resources,omitempty"`
}

// Describe completes the changes of all resources. That is put off until somebody wants to read them, because it takes
// longer than all else that is recorded. It is not safe for concurrent use.
func (r *Record) Describe() {
	for i := range r.Resources {
		r.Resources[i].describe()
	}
}

// Changed tells whether there are any changes, also before Describe.
func (r *ResourceRecord) Changed() bool { return len(r.Changes)+len(r.parts) > 0 }

// Undescribed is about how many bytes are held until Describe.
func (r *ResourceRecord) Undescribed() int {
	size := 0
	for _, p := range r.parts {
		size += p.size
	}
	return size
}

// ResourceRecord is what one resource did in a reconciliation.
type ResourceRecord struct {
	// Name is the name of the resource.
	Name string `json:"name"`
	// Start is counted from the start of the reconciliation, and Duration from Start.
	Start    time.Duration `json:"startNanoseconds"`
	Duration time.Duration `json:"durationNanoseconds"`
	// Skipped says why the resource did not run, or not to its end, when that is not an error.
	Skipped string `json:"skipped,omitempty"`
	// Error is what went wrong.
	Error string `json:"error,omitempty"`
	// Steps are those of a CRUD resource. A plain resource has none.
	Steps []StepRecord `json:"steps,omitempty"`
	// Changes are those that a CRUD resource began to apply, in order, or would apply when the outcome is Planned. When
	// there is an error, the last part of the patch may have been carried out in part. They are complete only after
	// Record.Describe.
	Changes []plan.Change `json:"changes,omitempty"`

	// parts are what is described only when somebody wants to know.
	parts []undescribed
}

// StepRecord is one step of a resource.
type StepRecord struct {
	// Resource is set when the step is that of another resource, which the resource called itself.
	Resource string `json:"resource,omitempty"`
	// Step is what was done.
	Step Step `json:"step"`
	// Start is counted from the start of the reconciliation, and Duration from Start.
	Start    time.Duration `json:"startNanoseconds"`
	Duration time.Duration `json:"durationNanoseconds"`
	// Attempts is how often the step was tried, when wrappers of it tried it more than once.
	Attempts int `json:"attempts,omitempty"`
	// Failed tells whether the step ended with an error, which is that of the resource.
	Failed bool `json:"failed,omitempty"`
}
