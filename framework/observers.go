package framework

import (
	"time"

	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/informer"
)

// observer receives what happens in the reconciliations of a framework: metrics, records, events.
// The path of a key reports to observers, and no observer decides anything in it, except fights,
// which is also a policy. The workers call the methods, for different objects at the same time.
// Times are since the epoch of the metrics.
type observer interface {
	// began reports the start of a reconciliation, of which only the data is set: it is not yet a
	// context.
	began(r *reconciliation)
	// stepBegan and stepEnded report a step of a resource. The whole resource is a step, too.
	stepBegan(s *scope, info StepInfo, at time.Duration)
	stepEnded(s *scope, e endedStep)
	// held reports that the gate has held changes of a resource.
	held(s *scope, reason string)
	// applying reports a part of a patch that is about to be applied.
	applying(s *scope, action plan.Action, part, current any)
	// ended reports the end of the reconciliation of a key. There is no reconciliation in the
	// result if there was nothing to reconcile, for example if the object is paused.
	ended(e ended)
}

// endedStep is a step that has ended.
type endedStep struct {
	StepInfo
	start, took time.Duration
	// attempts is the number of tries by middlewares.
	attempts int
	err      error
}

// ended is the end of the reconciliation of a key, and the consequence of the end. There is no
// consequence, the zero decision, if another reconciliation of the key follows at once.
type ended struct {
	result
	decision
	key informer.Key
	// why is why the key was reconciled. It is nil without a queue.
	why *waiting
	// next is the time after which the key is requeued; 0 is at its next change, or at the next
	// start.
	next time.Duration
}

// newObservers returns the observers in the order in which they are called. The metrics are first
// because they measure the time.
func (f *Framework) newObservers() observers {
	all := observers{
		f.metrics, spans{}, workers{}, f.fights, failureReports{Framework: f}, unmatchedReports{Framework: f},
	}
	if f.shadows != nil {
		all = append(all, shadowRequests{shadows: f.shadows})
	}
	if f.config.Observer != nil {
		all = append(all, recorder{f})
	}
	return all
}

// observers passes everything on to all of them.
type observers []observer

// observers returns the observers of the reconciliation that a scope belongs to. Plans, and
// resources without a framework, have none.
func (s *scope) observers() observers {
	if s == nil || s.reconciliation.framework == nil || s.reconciliation.plans {
		return nil
	}
	return s.reconciliation.framework.observers
}

func (all observers) began(r *reconciliation) {
	for _, o := range all {
		o.began(r)
	}
}

func (all observers) stepBegan(s *scope, info StepInfo, at time.Duration) {
	for _, o := range all {
		o.stepBegan(s, info, at)
	}
}

func (all observers) stepEnded(s *scope, e endedStep) {
	for _, o := range all {
		o.stepEnded(s, e)
	}
}

func (all observers) held(s *scope, reason string) {
	for _, o := range all {
		o.held(s, reason)
	}
}

func (all observers) applying(s *scope, action plan.Action, part, current any) {
	for _, o := range all {
		o.applying(s, action, part, current)
	}
}

func (all observers) ended(e ended) {
	for _, o := range all {
		o.ended(e)
	}
}

// unobserved is embedded by observers that don't need everything.
type unobserved struct{}

func (unobserved) began(*reconciliation)                     {}
func (unobserved) stepBegan(*scope, StepInfo, time.Duration) {}
func (unobserved) stepEnded(*scope, endedStep)               {}
func (unobserved) held(*scope, string)                       {}
func (unobserved) applying(*scope, plan.Action, any, any)    {}
func (unobserved) ended(ended)                               {}
