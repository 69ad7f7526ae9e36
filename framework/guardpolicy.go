package framework

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/operatorkit/operatorkit/context/requeuecontext"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/internal/access"
	"github.com/operatorkit/operatorkit/internal/ledger"
)

const (
	// printLength is the length of a fingerprint in hexadecimal digits.
	printLength = 12
	// chargeLength is the length of what is charged. Two changes must not have the same one.
	chargeLength = 24
	// limitPoll is the longest pause of an object that is held by a limit. Resuming a guard does not
	// enqueue objects.
	limitPoll = time.Minute
	// maxGuardReports is how many reports are remembered. One takes about 150 bytes.
	maxGuardReports = 1 << 16
)

// guardPolicy asks the guards of a framework.
type guardPolicy struct{ *Framework }

// isGuarded reports whether guards are asked about the changes of the reconciliation or plan.
func (r *reconciliation) isGuarded() bool {
	return r.framework != nil && len(r.framework.config.Guards) > 0
}

// Admit implements Policy.
func (f guardPolicy) Admit(ctx context.Context, would Proposal) Verdict {
	s := scopeOf(ctx)
	if s.concludes || !would.plain && would.parts == 0 {
		return Go()
	}
	changes, err := would.Changes()
	opaque := would.Opaque || errors.Is(err, ErrOpaque)
	if err != nil && !opaque && !IsPartial(err) {
		return Deny(fmt.Errorf("look at the changes for guards: %w", err))
	}
	found := map[GuardAction][]finding{}
	for _, one := range s.reconciliation.judge(ctx, would.Resource, changes, opaque) {
		found[one.Action] = append(found[one.Action], one)
	}
	if denied := found[GuardDeny]; len(denied) > 0 {
		return Deny(denied[0].denial())
	}
	for _, one := range found[GuardWarn] {
		one.report(ctx, ReasonGuardWarning, one.String())
	}
	var held []string
	for _, one := range found[GuardApprove] {
		held = append(held, one.report(ctx, ReasonWaitsForApproval, one.String()))
	}
	if len(held) > 0 {
		return Hold(strings.Join(held, "; "))
	}
	for _, one := range found[plan.Limited] {
		answer, err := f.ledger.Charge(ctx, one.charge())
		if err != nil {
			one.err = fmt.Errorf("charge its limit: %w", err)
			return Deny(one.denial())
		}
		if !answer.Charged {
			if answer.After > 0 {
				requeuecontext.SetAfter(ctx, min(answer.After, limitPoll))
			}
			return Hold(one.report(ctx, ReasonBeyondLimit, one.beyond(answer)))
		}
	}
	return Go()
}

// finding is the verdict of a guard that matches changes of a resource, or can't be evaluated.
type finding struct {
	plan.GuardVerdict
	guard          *Guard
	reconciliation *reconciliation
	resource       string
	// changes are bare.
	changes []plan.Change
	err     error
}

// judge shows the changes of a resource to the guards. Changes that are approved are not among the
// findings. A panic of a guard is an error, whose text has no known secret values.
func (r *reconciliation) judge(ctx context.Context, resource string, changes []plan.Change, opaque bool) (findings []finding) {
	changes = r.shown(changes)
	if opaque {
		changes = []plan.Change{{Action: plan.Unknown, Object: objectOf(r.object, r.key)}}
	}
	id := r.framework.Identity()
	in := GuardInput{Object: r.object, Operator: id.Operator, Framework: id.Framework, Resource: resource}
	for i := range r.framework.config.Guards {
		found := finding{guard: &r.framework.config.Guards[i], reconciliation: r, resource: resource}
		for _, in.Change = range changes {
			var matches bool
			found.err = recoveredIn(ctx, func(ctx context.Context) (err error) {
				matches, err = found.guard.Match(ctx, in)
				return err
			})
			if found.err != nil {
				found.changes = []plan.Change{in.Change.Bare()}
				break
			}
			if matches {
				found.changes = append(found.changes, in.Change.Bare())
			}
		}
		if len(found.changes) > 0 && !found.decide() {
			findings = append(findings, found)
		}
	}
	return findings
}

// decide completes the verdict. It reports whether the changes are approved, as far as that is
// possible. The fingerprint does not depend on the versions and the metadata of objects.
func (f *finding) decide() (approved bool) {
	f.GuardVerdict = f.guard.Verdict(f.err)
	f.Fingerprint = f.hash(f.guard.Name, f.resource, f.changes)[:printLength]
	for _, c := range f.changes {
		f.Changes = append(f.Changes, plan.Change{Action: c.Action, Object: c.Object})
	}
	m, ok := metaOf(f.reconciliation.object)
	if !ok || f.Action != GuardApprove && f.Action != plan.Limited {
		return false
	}
	prints := strings.Split(m.GetAnnotations()[ApprovedAnnotation], ",")
	return slices.ContainsFunc(prints, func(print string) bool { return strings.TrimSpace(print) == f.Fingerprint })
}

// hash identifies something of the object that is reconciled.
func (f *finding) hash(of ...any) string {
	sum := digest(append(of, f.reconciliation.framework.Name(), f.reconciliation.key))
	return hex.EncodeToString(sum[:])
}

// denial is the error of the resource.
func (f *finding) denial() error {
	denied := fmt.Errorf("guard %q %w: %s for %s",
		f.Guard, ErrDenied, f.About(), describe(f.reconciliation.object, f.reconciliation.key))
	switch {
	case f.err != nil:
		return fmt.Errorf("%w: it can't be evaluated: %w", denied, f.err)
	case f.Message != "":
		return fmt.Errorf("%w: %s", denied, f.Message)
	}
	return denied
}

func (f *finding) beyond(answer ledger.Answer) string {
	text := fmt.Sprintf("guard %q lets %d through in %s, and holds what is beyond: %s",
		f.Guard, answer.Allowed, f.guard.Limit.Per, f.About())
	if answer.After == 0 {
		text += "; this is more at once than it ever lets through"
	}
	text += fmt.Sprintf("; to approve it, annotate with %s=%s: %s", ApprovedAnnotation, f.Fingerprint, f.guard.Message)
	return strings.TrimSuffix(text, ": ")
}

// report writes a warning event and a log message, once for each fingerprint. It returns the
// message.
func (f *finding) report(ctx context.Context, reason, message string) string {
	r := f.reconciliation
	if _, reported := r.framework.guardReports.Get(f.Fingerprint); !reported {
		r.framework.guardReports.Add(f.Fingerprint, true)
		Warn(ctx, reason, message)
		r.framework.log("warning", message, "guard", f.Guard, "object", describe(r.object, r.key), "resource", f.resource)
	}
	return message
}

// charge is what is charged to the limit. A percentage is of objects, and counts each once.
func (f *finding) charge() ledger.Charge {
	of, limit := f.reconciliation.framework, f.guard.Limit
	c := ledger.Charge{
		Guard: f.Guard, Max: limit.Max, Percent: limit.Percent, Per: limit.Per,
		Scope: of.Name(), Of: of.source.Status().Objects,
	}
	if c.Percent > 0 {
		c.IDs = []string{f.hash()[:chargeLength]}
		return c
	}
	for _, change := range f.changes {
		c.IDs = append(c.IDs, f.hash(f.resource, change)[:chargeLength])
	}
	return c
}

// memoryLedger counts in this process.
type memoryLedger struct {
	mu   sync.Mutex
	book ledger.Book
}

// Charge implements access.Ledger.
func (l *memoryLedger) Charge(_ context.Context, c ledger.Charge) (ledger.Answer, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	answer, _ := l.book.Charge(c, time.Now())
	return answer, nil
}

// HasLimits implements access.Engine.
func (f engine) HasLimits() bool {
	return !f.config.PlanOnly && slices.ContainsFunc(f.config.Guards, func(g Guard) bool { return g.Limit != nil })
}

// ChargeBy implements access.Engine.
func (f engine) ChargeBy(l access.Ledger) { f.ledger = l }
