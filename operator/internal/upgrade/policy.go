package upgrade

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/operatorkit/operatorkit/context/reconciliationcanceledcontext"
	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/plan"
)

// Annotation is the annotation of an object with which a user decides about it: "hold" keeps the
// operator from changing what needs a place, and "now" lets it be changed without one.
const Annotation = "operatorkit.io/upgrade"

const (
	hold = "hold"
	now  = "now"
)

// policy holds the changes of objects of a framework that the upgrade has not admitted.
type policy struct {
	*Controller
	framework string
}

// Admit implements framework.Policy. An object that is held is left exactly as it is, its status
// included: the reconciliation is cancelled.
func (p policy) Admit(ctx context.Context, would framework.Proposal) framework.Verdict {
	if would.Event == plan.DeleteEvent || p.admits(would) {
		return framework.Go()
	}
	limited, err := limitedBy(would)
	switch {
	case err != nil:
		return framework.Deny(fmt.Errorf("find out whether the upgrade holds resource %q: %w", would.Resource, err))
	case limited == "":
		return framework.Go()
	}
	return p.hold(ctx, would, limited)
}

// AdmitFailure is asked before the status of an object reports a failure. An object without a place
// that was ready keeps its status.
func (p policy) AdmitFailure(ctx context.Context, would framework.Proposal, failure error) framework.Verdict {
	if would.Event == plan.DeleteEvent || framework.IsConflict(failure) || p.admits(would) || !p.wasReady(would.Object) {
		return framework.Go()
	}
	return p.hold(ctx, would, "fail: "+textOf(failure))
}

func (p policy) wasReady(obj any) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.isReady(obj)
}

// admits reports whether the object needs no place, or has one.
func (p policy) admits(would framework.Proposal) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case isAnnotated(would.Object, hold):
		return false
	case p.isCurrent() && p.state.Phase == Finished:
		return true
	}
	of := id{p.framework, would.Key}
	o := p.known(of)
	if p.isAdmitted(o, of, would.Object) {
		return true
	}
	o.free = isAnnotated(would.Object, now) || would.First || p.isNew(would.Object) || changedByUser(would.Object)
	return o.free
}

// isNew reports whether an object was created since the upgrade has started. Times of objects are in
// whole seconds.
func (p policy) isNew(obj any) bool {
	return p.isCurrent() && metaOf(obj).GetCreationTimestamp().After(p.state.Since.Truncate(time.Second))
}

// hold notes that an object waits for what would be done, and ends its reconciliation.
func (p policy) hold(ctx context.Context, would framework.Proposal, what string) framework.Verdict {
	p.mu.Lock()
	defer p.mu.Unlock()
	of := id{p.framework, would.Key}
	o := p.known(of)
	p.wait(o, of, would.Object, what)
	o.holding = true
	reconciliationcanceledcontext.SetCanceled(ctx)
	return framework.Hold(fmt.Sprintf("%s: would %s", p.why(would.Object), what))
}

// why says why an object is held.
func (p policy) why(obj any) string {
	text := fmt.Sprintf("held by the upgrade from %s to %s", p.state.From, p.state.To)
	switch {
	case p.state.Phase == "":
		return "held until the state of the upgrade is known"
	case !p.isCurrent():
		return fmt.Sprintf("%s: this is %s", text, p.config.Build)
	case isAnnotated(obj, hold):
		return "held by the annotation " + Annotation
	case p.state.Phase != Running:
		return fmt.Sprintf("%s, which is %s", text, strings.ToLower(string(p.state.Phase)))
	}
	return text
}

func isAnnotated(obj any, value string) bool {
	return metaOf(obj).GetAnnotations()[Annotation] == value
}
