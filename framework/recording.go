package framework

import (
	"slices"
	"sync"
	"time"

	"github.com/operatorkit/operatorkit/context/finalizerskeptcontext"
	"github.com/operatorkit/operatorkit/context/reconciliationcanceledcontext"
	"github.com/operatorkit/operatorkit/context/requeuecontext"
	"github.com/operatorkit/operatorkit/context/resourcecanceledcontext"
	"github.com/operatorkit/operatorkit/context/updatenecessarycontext"
	"github.com/operatorkit/operatorkit/framework/plan"
)

// recorder records reconciliations, and passes the records to the Observer.
type recorder struct{ *Framework }

// recording is the Record of a reconciliation in progress.
type recording struct {
	// mu is for authors that run steps in their own goroutines, which may even outlive the
	// reconciliation.
	mu sync.Mutex
	// ended is true when it is too late for more.
	ended  bool
	record Record
}

// began implements observer.
func (recorder) began(r *reconciliation) { r.recording = &recording{} }

// change changes the record of the running resource.
func (recorder) change(s *scope, change func(of *ResourceRecord)) {
	r := s.reconciliation.recording
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list(s.reconciliation.set)
	if !r.ended && int(s.place) < len(r.record.Resources) {
		change(&r.record.Resources[s.place])
	}
}

// list records the resources that are to run, once they are known.
func (r *recording) list(set *setPlanner) {
	if set == nil || r.record.Resources != nil {
		return
	}
	r.record.ResourceSet = set.name
	for _, p := range set.planners {
		r.record.Resources = append(r.record.Resources, ResourceRecord{Name: p.name, Skipped: reasonNotReached})
	}
}

// planned records a plan that replaces a reconciliation.
func (r *recording) planned(p *plan.Plan) {
	if p == nil {
		return
	}
	r.record.ResourceSet = p.ResourceSet
	for _, of := range p.Resources {
		r.record.Resources = append(r.record.Resources, ResourceRecord{
			Name: of.Name, Skipped: of.Skipped, Error: of.Error, Changes: withoutMetadata(slices.Clone(of.Changes)),
		})
	}
}

// isWhole reports whether a step is the whole resource of a scope.
func (s *scope) isWhole(info StepInfo) bool {
	return info.Resource == s.resource && (info.Step == StepEnsureCreated || info.Step == StepEnsureDeleted)
}

// stepBegan implements observer.
func (r recorder) stepBegan(s *scope, info StepInfo, _ time.Duration) {
	if s.isWhole(info) {
		r.change(s, func(of *ResourceRecord) { of.Skipped = "" })
	}
}

// held implements observer.
func (r recorder) held(s *scope, reason string) {
	r.change(s, func(of *ResourceRecord) { of.Skipped = reason })
}

// stepEnded implements observer.
func (r recorder) stepEnded(s *scope, e endedStep) {
	r.change(s, func(of *ResourceRecord) {
		if s.isWhole(e.StepInfo) {
			of.complete(s, e)
			return
		}
		step := StepRecord{Step: e.Step, Start: e.start, Duration: e.took, Failed: e.err != nil}
		if e.Resource != s.resource {
			step.Resource = e.Resource
		}
		if e.attempts > 1 {
			step.Attempts = e.attempts
		}
		of.Steps = append(of.Steps, step)
	})
}

// complete records the end of a resource.
func (r *ResourceRecord) complete(s *scope, e endedStep) {
	r.Start, r.Duration = e.start, e.took
	switch {
	case e.err != nil:
		r.Error = e.err.Error()
	case r.Skipped != "":
	case resourcecanceledcontext.IsCanceled(s):
		r.Skipped = reasonResourceCanceled
	case reconciliationcanceledcontext.IsCanceled(s):
		r.Skipped = reasonReconciliationCanceled
	}
}

// complete ends the record, and makes its times relative to its start.
func (r *recording) complete(epoch time.Time, start, now time.Duration) {
	r.ended = true
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

// ended implements observer.
func (r recorder) ended(e ended) {
	record := r.recordOf(e)
	record.Framework, record.Key = r.Name(), e.key
	record.Outcome, record.Reason = e.outcome, e.reason
	if e.err != nil {
		record.Error = e.err.Error()
	}
	if e.next > 0 {
		record.NextTry = time.Now().Add(e.next)
	}
	if e.why != nil {
		record.Queued, record.TriggerCount = wallTime(e.why.Since), e.why.Count
		for _, because := range e.why.Why {
			record.Triggers = append(record.Triggers, because.Trigger)
		}
	}
	if e.reconciliation != nil {
		e.reconciliation.scrubRecord(record)
	}
	r.guard("tell the observer", func() { r.config.Observer.Observe(record) }, "object", keyString(e.key))
}

// recordOf returns the record. It is almost empty without an object to reconcile.
func (r recorder) recordOf(e ended) *Record {
	of := e.reconciliation
	if of == nil {
		return &Record{Object: plan.Object{Namespace: e.key.Namespace, Name: e.key.Name}, Started: time.Now()}
	}
	of.recording.mu.Lock()
	defer of.recording.mu.Unlock()
	of.recording.list(of.set)
	of.recording.complete(r.metrics.epoch, of.started, r.metrics.now())
	of.recording.planned(e.plan)
	record := &of.recording.record
	record.Object, record.Event, record.Loop = objectOf(of.object, e.key), plan.Event(of.event.String()), of.loop
	record.TraceID = of.traceID()
	record.Signals = signalsOf(of)
	return record
}

// signalsOf returns the signals that were set, in words.
func signalsOf(r *reconciliation) []string {
	if !r.IsAnySet() && r.unfinished.Load() == nil {
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
	note(r.unfinished.Load() != nil, "a change is held")
	note(updatenecessarycontext.IsUpdateNecessary(r), "update necessary")
	if after, ok := requeuecontext.After(r); ok {
		note(true, "look again after "+after.String())
	}
	return slices.Clip(signals)
}

// withoutMetadata removes labels and annotations from changes, which only guards need. It changes
// them.
func withoutMetadata(changes []plan.Change) []plan.Change {
	for i := range changes {
		changes[i].Labels, changes[i].Annotations = nil, nil
	}
	return changes
}

// applying implements observer.
func (r recorder) applying(s *scope, action plan.Action, part, current any) {
	changes := withoutMetadata(plan.Describe(action, part, current))
	r.change(s, func(of *ResourceRecord) { of.Changes = append(of.Changes, changes...) })
}
