package upgrade

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/operatorkit/operatorkit/context/reconciliationcanceledcontext"
	"github.com/operatorkit/operatorkit/context/requeuecontext"
	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/internal/jitter"
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
	if err != nil {
		return framework.Deny(err)
	}
	if limited == nil {
		return framework.Go()
	}
	return p.holds(ctx, would, strings.Join(limited, "; "))
}

// AdmitFailure is asked before the status of an object reports a failure. An object without a place
// that was ready keeps its status.
func (p policy) AdmitFailure(ctx context.Context, would framework.Proposal, failure error) framework.Verdict {
	if would.Event == plan.DeleteEvent || framework.IsConflict(failure) || p.admits(would) || !p.config.Ready(informer.Copy(would.Object)) {
		return framework.Go()
	}
	return p.holds(ctx, would, "fail: "+textOf(failure))
}

// limitedBy returns what the resource would change, in words. It is nil if that is nothing, or only
// the status of the object itself.
func limitedBy(would framework.Proposal) (words []string, err error) {
	if would.Opaque {
		return []string{fmt.Sprintf("what resource %q does, which can't predict it", would.Resource)}, nil
	}
	changes, err := would.Changes()
	if err != nil {
		return nil, fmt.Errorf("find out whether the upgrade holds resource %q: %w", would.Resource, err)
	}
	limited := affects(changes, would)
	if len(changes) == 0 && would.Certain() {
		return []string{fmt.Sprintf("what resource %q applies", would.Resource)}, nil
	}
	for _, c := range limited {
		words = append(words, describe(c))
	}
	return words, nil
}

// describe names a change and the fields of an update, without values.
func describe(c plan.Change) string {
	text := string(c.Action) + " " + c.Object.String()
	if c.Action == plan.Update && len(c.Fields) > 0 {
		var paths []string
		for _, f := range c.Fields {
			paths = append(paths, f.Path)
		}
		text += " (" + strings.Join(paths, ", ") + ")"
	}
	return text
}

// admits reports whether the object needs no place, or has one.
func (p policy) admits(would framework.Proposal) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	of := id{p.framework, would.Key}
	o := p.object(would)
	state := p.state
	known := state != nil && state.To.ID == p.config.Build.ID
	switch {
	case annotated(would.Object, hold):
		return false
	case known && state.Phase == Finished:
		return true
	}
	progressing := p.admitted[of]
	switch {
	case progressing != nil && progressing.uid != o.UID:
		delete(p.admitted, of)
	case progressing != nil && (progressing.once || known && !state.Has(o) && !progressing.ready.IsZero()):
		// It is changed by its user, or has become ready.
		return true
	}
	switch {
	case known && state.Has(o):
		if p.admitted[of] == nil {
			p.admitted[of] = &progress{uid: o.UID}
		}
		return true
	case annotated(would.Object, now), would.First, known && createdSince(would.Object, state.Since), changedByUser(would.Object):
		p.admitted[of] = &progress{uid: o.UID, once: true}
		return true
	}
	return false
}

func (p policy) object(would framework.Proposal) Object {
	return Object{Framework: p.framework, Namespace: would.Key.Namespace, Name: would.Key.Name, UID: uidOf(would.Object)}
}

// The shortest and the longest time until an object that is held is reconciled again without an
// event, and the time for each object that waits.
const (
	minRetry   = 30 * time.Second
	maxRetry   = 10 * time.Minute
	retryShare = 100 * time.Millisecond
)

// holds notes that an object waits for what would be done, and ends its reconciliation.
func (p policy) holds(ctx context.Context, would framework.Proposal, what string) framework.Verdict {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wait(id{p.framework, would.Key}, would.Object, what)
	p.waiting[id{p.framework, would.Key}].held = true
	retry := jitter.Of(min(max(minRetry, time.Duration(len(p.waiting))*retryShare), maxRetry))
	reconciliationcanceledcontext.SetCanceled(ctx)
	requeuecontext.SetAfter(ctx, retry)
	return framework.Hold(fmt.Sprintf("%s: would %s", p.why(would.Object), what))
}

// why says why an object is held.
func (p policy) why(obj any) string {
	switch state := p.state; {
	case state == nil && p.fault != nil:
		return "held until the state of the upgrade can be read: " + p.fault.Error()
	case state == nil:
		return "held until the state of the upgrade is read"
	case state.To.ID == "":
		return "held until the upgrade to this build has started"
	case state.To.ID != p.config.Build.ID:
		return fmt.Sprintf("held because the operator is being upgraded to %s, and this is %s", state.To, p.config.Build)
	case annotated(obj, hold):
		return "held by the annotation " + Annotation
	case state.Phase != Running:
		return fmt.Sprintf("held by the upgrade from %s to %s, which is %s", state.From, state.To, strings.ToLower(string(state.Phase)))
	default:
		return fmt.Sprintf("held by the upgrade from %s to %s", state.From, state.To)
	}
}

func annotated(obj any, value string) bool {
	m, ok := obj.(informer.Meta)
	return ok && m.GetAnnotations()[Annotation] == value
}

// createdSince reports whether an object was created since the upgrade has started. Times of objects
// are in whole seconds.
func createdSince(obj any, start time.Time) bool {
	m, ok := obj.(informer.Meta)
	return ok && m.GetCreationTimestamp().After(start.Truncate(time.Second))
}
