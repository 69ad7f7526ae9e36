package framework

import (
	"context"

	"github.com/operatorkit/operatorkit/context/deletionallowedcontext"
	"github.com/operatorkit/operatorkit/context/updateallowedcontext"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/informer"
)

// Policy decides whether the changes of a resource are applied. [Framework.Require] adds one. The
// framework has its own: the signals that forbid updates and deletions, the plan that is being
// applied ([Framework.ApplyPlan]), the changes that are undone again and again ([Fight]), guards
// ([Guard]), and the live read of the object ([Confirm]).
type Policy interface {
	// Admit is called once for each resource of a reconciliation, between computing and applying,
	// if the resource would change something or can't predict it. It is not called for a
	// [Concluder]. Admit is called for different objects at the same time, and a worker waits for
	// it.
	Admit(ctx context.Context, p Proposal) Verdict
}

// Proposal describes what a resource is about to do.
type Proposal struct {
	// Object is the object that is reconciled. It must not be changed.
	Object any
	// Key is the key of the object.
	Key informer.Key
	// First is true if this reconciliation has added the finalizer of the framework: the framework
	// has done nothing for the object before.
	First bool
	// Resource is the name of the resource.
	Resource string
	// Event says whether the object is being deleted.
	Event plan.Event
	// Opaque is true for a resource that can't predict its changes.
	Opaque bool

	// plain is true for a resource without patches.
	plain bool
	// parts are the parts of the patch that no policy has held so far.
	parts parts
	// describe returns the changes of parts.
	describe func(would parts) ([]plan.Change, error)
}

// Changes returns what would change, in the form of plans. It is computed on request, and sends
// requests if the resource is a [Planner]. It is nil if the resource is opaque.
func (p Proposal) Changes() ([]plan.Change, error) {
	if p.Opaque {
		return nil, nil
	}
	return p.describe(p.parts)
}

// Certain reports whether the resource would change something for certain. A resource that can't
// predict its changes may change nothing, and neither may a [Planner], which is not asked here.
func (p Proposal) Certain() bool { return !p.plain }

// Verdict is the decision of a [Policy]. The zero value is that of [Go].
type Verdict struct {
	held   parts
	reason string
	err    error
}

// Go lets the resource apply its changes.
func Go() Verdict { return Verdict{} }

// Hold makes the resource change nothing in this reconciliation. The other resources continue. The
// object is retried with backoff, or after the time that a resource requests, and a deletion is not
// finished. Records show the reason.
func Hold(reason string) Verdict { return Verdict{held: allParts, reason: reason} }

// Deny fails the resource, and with it the reconciliation, before any of its changes is applied.
func Deny(err error) Verdict { return Verdict{err: err} }

// Require adds a policy. Policies are asked in the order in which they were added. It is called
// before Run.
func (f *Framework) Require(p Policy) { f.required = append(f.required, p) }

// gate asks every policy about the changes of a resource, and returns the parts of its patch that
// are held. The object is unfinished then, unless only updates are held, as a signal does. Outside a
// reconciliation only the signals are asked.
func gate(ctx context.Context, p Proposal) (held parts, err error) {
	s := scopeOf(ctx)
	if s == nil {
		return bySignals(ctx, p.Event, p.parts).held, nil
	}
	p.Object, p.Key, p.First = s.reconciliation.object, s.reconciliation.key, s.reconciliation.first
	for _, policy := range s.reconciliation.policies() {
		v := policy.Admit(ctx, p)
		if v.reason != "" {
			s.observers().held(s, v.reason)
		}
		if v.held&^updatePart != 0 {
			s.reconciliation.unfinished.CompareAndSwap(nil, &v.reason)
		}
		held |= v.held
		p.parts &^= v.held
		if v.err != nil || held == allParts {
			return held, v.err
		}
	}
	return held, nil
}

// policies returns the policies of a reconciliation in the order in which they are asked.
func (r *reconciliation) policies() []Policy {
	policies := append(make([]Policy, 0, 5), signalPolicy{})
	if r.approval != nil {
		policies = append(policies, r.approval)
	}
	if r.framework != nil {
		for _, p := range r.framework.required {
			policies = append(policies, requiredPolicy{p})
		}
		if r.approval == nil {
			policies = append(policies, r.framework.fights)
		}
	}
	if r.isGuarded() {
		// They come late, so that nothing is charged to their limits that others hold.
		policies = append(policies, guardPolicy{r.framework})
	}
	if r.framework != nil && r.framework.live != nil {
		policies = append(policies, livePolicy{})
	}
	return policies
}

// signalPolicy holds the parts that a signal forbids.
type signalPolicy struct{}

func (signalPolicy) Admit(ctx context.Context, would Proposal) Verdict {
	if would.plain {
		return Go()
	}
	return bySignals(ctx, would.Event, would.parts)
}

// bySignals holds the parts of a patch that a signal forbids.
func bySignals(ctx context.Context, e plan.Event, would parts) (v Verdict) {
	if would&updatePart != 0 && !updateallowedcontext.IsUpdateAllowed(ctx) {
		v.held, v.reason = updatePart, reasonNoUpdates
	}
	if would&deletePart != 0 && e == plan.DeleteEvent && !deletionallowedcontext.IsDeletionAllowed(ctx) {
		v.held, v.reason = v.held|deletePart, reasonNoDeletion
	}
	return v
}

// requiredPolicy is a policy that was added by Require.
type requiredPolicy struct{ Policy }

func (p requiredPolicy) Admit(ctx context.Context, would Proposal) (v Verdict) {
	if !would.plain && would.parts == 0 {
		return Go()
	}
	admit := p.Policy.Admit
	if s := scopeOf(ctx); s.concludes {
		of, asked := p.Policy.(failurePolicy)
		if !asked || s.reconciliation.failure == nil {
			return Go()
		}
		admit = func(ctx context.Context, would Proposal) Verdict {
			return of.AdmitFailure(ctx, would, s.reconciliation.failure)
		}
	}
	err := recoveredIn(ctx, func(ctx context.Context) error {
		v = admit(ctx, would)
		return nil
	})
	if err != nil {
		return Deny(err)
	}
	return v
}

// failurePolicy is a Policy of this module that is also asked before a Concluder reports a failure.
type failurePolicy interface {
	AdmitFailure(ctx context.Context, would Proposal, failure error) Verdict
}

// livePolicy does a live read of the object before anything is deleted for it. See Confirm.
type livePolicy struct{}

func (livePolicy) Admit(ctx context.Context, would Proposal) Verdict {
	plainDeletion := would.plain && would.Event == plan.DeleteEvent && !scopeOf(ctx).concludes
	if would.parts&deletePart == 0 && !plainDeletion {
		return Go()
	}
	switch on, err := confirm(ctx); {
	case err != nil:
		return Deny(err)
	case !on:
		return Hold(reasonOutdated)
	}
	return Go()
}

// parts are some of the three parts of a patch.
type parts uint8

const (
	createPart parts = 1 << iota
	updatePart
	deletePart

	allParts = createPart | updatePart | deletePart
)
