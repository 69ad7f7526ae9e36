package framework

import (
	"reflect"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/operatorkit/operatorkit/context/finalizerskeptcontext"
	"github.com/operatorkit/operatorkit/context/reconciliationcanceledcontext"
	"github.com/operatorkit/operatorkit/context/requeuecontext"
	"github.com/operatorkit/operatorkit/context/resourcecanceledcontext"
	"github.com/operatorkit/operatorkit/context/updatenecessarycontext"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/internal/panics"
)

// These are the reasons why an object is ignored, and why a resource does not run completely.
const (
	reasonGone          = "there is no such object"
	reasonPaused        = "it is paused by an annotation"
	reasonNoResourceSet = "no resource set handles it"
	reasonNotOurs       = "it is being deleted and does not have the finalizer of this framework"
	reasonProcessed     = "its deletion has been processed"
	reasonUnselected    = "the source does not select it any more"
	reasonMissing       = "the source lacks it, although it is there and selected"
	reasonBack          = "the source lacked it, and has it again"
	reasonElsewhere     = "another replica reconciles it"
	reasonBehind        = "the source has yet to tell of what another process may have acted on"
	reasonOutdated      = "it has changed since, of which the source has yet to tell"
	reasonReplaced      = "it is gone, or another object has its name, which the source has yet to tell"
	reasonSucceeded     = "another object has its name, to which may belong what is there"

	reasonNotReached             = "not reached"
	reasonResourceCanceled       = "the resource is cancelled"
	reasonReconciliationCanceled = "the reconciliation is cancelled"
	reasonNoUpdates              = "updates are not allowed"
	reasonNoDeletion             = "the deletion is not allowed"
)

// recording is a Record while the reconciliation runs. All methods may be called on nil, and do
// nothing then. Times are since the epoch of the framework's metrics until it ends.
type recording struct {
	// mu is for authors that run steps in their own goroutines, which may even outlive the
	// reconciliation.
	mu sync.Mutex
	// of is the running reconciliation, and nil once it has ended.
	of     *reconciliation
	record Record
}

// begin records the resources that will run.
func (r *recording) begin(set *ResourceSet) {
	if r == nil {
		return
	}
	r.record.ResourceSet = set.name
	for _, p := range set.planners {
		r.record.Resources = append(r.record.Resources, ResourceRecord{Name: p.name, Skipped: reasonNotReached})
	}
}

// planned records a plan that replaces a reconciliation.
func (r *recording) planned(p *plan.Plan) {
	if r == nil {
		return
	}
	r.record.ResourceSet = p.ResourceSet
	for _, of := range p.Resources {
		r.record.Resources = append(r.record.Resources, ResourceRecord{
			Name: of.Name, Skipped: of.Skipped, Error: of.Error, Changes: slices.Clone(of.Changes),
		})
	}
}

// lock returns the record of a resource, which is the caller's until unlock. It is nil when it is
// too late.
func (r *recording) lock(s *scope) *ResourceRecord {
	r.mu.Lock()
	if r.of != s.reconciliation || int(s.place) >= len(r.record.Resources) {
		return nil
	}
	return &r.record.Resources[s.place]
}

func (r *recording) unlock() { r.mu.Unlock() }

// reached records that a resource starts.
func (r *recording) reached(s *scope) {
	if r == nil {
		return
	}
	defer r.unlock()
	if of := r.lock(s); of != nil {
		of.Skipped = ""
	}
}

// left records the end of a resource.
func (r *recording) left(s *scope) {
	if r == nil {
		return
	}
	why := ""
	switch {
	case resourcecanceledcontext.IsCanceled(s):
		why = reasonResourceCanceled
	case reconciliationcanceledcontext.IsCanceled(s):
		why = reasonReconciliationCanceled
	default:
		return
	}
	defer r.unlock()
	if of := r.lock(s); of != nil && of.Error == "" && of.Skipped == "" {
		of.Skipped = why
	}
}

// skipped records why a part of a patch is not applied.
func (r *recording) skipped(s *scope, why string) {
	if r == nil {
		return
	}
	defer r.unlock()
	if of := r.lock(s); of != nil {
		of.Skipped = why
	}
}

// step records a step that has ended. The outermost step of a resource is recorded as the resource
// itself.
func (r *recording) step(s *scope, info StepInfo, start, took time.Duration, attempts int, err error) {
	defer r.unlock()
	of := r.lock(s)
	if of == nil {
		return
	}
	if info.Resource == s.resource && (info.Step == StepEnsureCreated || info.Step == StepEnsureDeleted) {
		of.Start, of.Duration = start, took
		if err != nil {
			of.Error = err.Error()
		}
		return
	}
	step := StepRecord{Step: info.Step, Start: start, Duration: took, Failed: err != nil}
	if info.Resource != s.resource {
		step.Resource = info.Resource
	}
	if attempts > 1 {
		step.Attempts = attempts
	}
	of.Steps = append(of.Steps, step)
}

// end converts the times of the record to wall time.
func (r *recording) end(epoch time.Time, start, now time.Duration) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.of = nil
	r.record.Started, r.record.Duration = wallTime(epoch.Add(start)), now-start
	for i := range r.record.Resources {
		of := &r.record.Resources[i]
		if of.Skipped == reasonNotReached {
			continue
		}
		of.Start -= start
		for j := range of.Steps {
			of.Steps[j].Start -= start
		}
	}
}

// observe passes the record of a reconciliation that has ended to the observer. next is the time
// after which the object is requeued; 0 is never.
func (f *Framework) observe(key informer.Key, res result, why *waiting, next time.Duration) {
	if f.config.Observer == nil {
		return
	}
	record := f.recordOf(key, res)
	record.Framework, record.Key = f.Name(), key
	record.Outcome, record.Reason = res.outcome, res.reason
	if res.err != nil {
		record.Error = res.err.Error()
	}
	if next > 0 {
		record.NextTry = time.Now().Add(next)
	}
	if why != nil {
		record.Queued, record.TriggerCount = wallTime(why.Since), why.Count
		for _, because := range why.Why {
			record.Triggers = append(record.Triggers, because.Trigger)
		}
	}
	if res.reconciliation != nil {
		res.reconciliation.scrubRecord(record)
	}
	if err := panics.Recovered(func() error { f.config.Observer.Observe(record); return nil }); err != nil {
		f.panicked("tell the observer", err, "object", keyString(key))
	}
}

// recordOf returns the record. It is almost empty without an object to reconcile.
func (f *Framework) recordOf(key informer.Key, res result) *Record {
	r := res.reconciliation
	if r == nil || r.recording == nil {
		return &Record{Object: plan.Object{Namespace: key.Namespace, Name: key.Name}, Started: time.Now()}
	}
	record := &r.recording.record
	record.Object, record.Event, record.Loop = objectOf(r.object, key), plan.Event(r.event.String()), r.loop
	record.TraceID = r.traceID()
	record.Signals = signalsOf(r)
	return record
}

// signalsOf returns the signals that were set, in words.
func signalsOf(r *reconciliation) []string {
	if !r.IsAnySet() && !r.unfinished.Load() {
		return nil
	}
	var signals []string
	note := func(set bool, words string) {
		if set {
			signals = append(signals, words)
		}
	}
	note(reconciliationcanceledcontext.IsCanceled(r), "reconciliation cancelled")
	note(finalizerskeptcontext.IsKept(r), "finalizers kept")
	note(r.unfinished.Load(), "a change is held")
	note(updatenecessarycontext.IsUpdateNecessary(r), "update necessary")
	if after, ok := requeuecontext.After(r); ok {
		note(true, "look again after "+after.String())
	}
	return slices.Clip(signals)
}

// maxUndescribed is the maximum size in bytes of a part of a patch that is kept undescribed. The
// description of a larger one is smaller, after it was cut.
const maxUndescribed = 32 << 10

// undescribed is a part of a patch that is not described yet, or that was described because it
// could not be copied.
type undescribed struct {
	action        plan.Action
	part, current any
	// size is the approximate number of bytes of these.
	size    int
	changes []plan.Change
}

// recordChanges records a part that a CRUD resource is about to apply. It keeps a copy, because
// applying may change the part.
func recordChanges(s *scope, action plan.Action, part, current any) {
	if s == nil || s.reconciliation.recording == nil {
		return
	}
	u, ok := copyPart(action, part, current)
	if !ok {
		u = undescribed{changes: plan.Describe(action, part, current)}
	}
	r := s.reconciliation.recording
	defer r.unlock()
	switch of := r.lock(s); {
	case of == nil:
	case !ok && len(of.parts) == 0:
		of.Changes = append(of.Changes, u.changes...)
	default:
		of.parts = append(of.parts, u)
	}
}

// describe describes all parts.
func (r *ResourceRecord) describe() {
	for _, u := range r.parts {
		if u.part != nil {
			u.changes = plan.Describe(u.action, u.part, u.current)
		}
		r.Changes = append(r.Changes, u.changes...)
	}
	r.parts = nil
}

// copyPart copies a part of a patch, and the current state if the description needs it. It copies
// only objects of known size.
func copyPart(action plan.Action, part, current any) (undescribed, bool) {
	u := undescribed{action: action}
	if part == nil || !u.copyAny(&u.part, part) {
		return u, false
	}
	if action == plan.Update && current != nil && !u.copyAny(&u.current, current) {
		return u, false
	}
	return u, true
}

// copyAny copies an object, or a list of objects, and reports whether it did.
func (u *undescribed) copyAny(into *any, v any) bool {
	if object, ok := v.(sized); ok {
		return u.copyObject(into, object)
	}
	list := reflect.ValueOf(v)
	if list.Kind() != reflect.Slice || list.Type().NumMethod() > 0 {
		return false
	}
	copies := make([]any, list.Len())
	for i := range copies {
		object, ok := list.Index(i).Interface().(sized)
		if !ok || !u.copyObject(&copies[i], object) {
			return false
		}
	}
	*into = copies
	return true
}

func (u *undescribed) copyObject(into *any, object sized) bool {
	if isNil(object) {
		*into = object
		return true
	}
	u.size += object.Size()
	if u.size > maxUndescribed {
		return false
	}
	// The copy of a type that embeds another one may have the embedded type, which describes itself
	// differently.
	copied := object.DeepCopyObject()
	*into = copied
	return reflect.TypeOf(copied) == reflect.TypeOf(object)
}

// sized is implemented by the objects of Kubernetes' own types.
type sized interface {
	runtime.Object
	Size() int
}
