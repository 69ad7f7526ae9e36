package framework

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/operatorkit/operatorkit/context/requeuecontext"
	"github.com/operatorkit/operatorkit/framework/internal/keyed"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/informer"
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
	// maxGuardReports is how many reports about one object are remembered.
	maxGuardReports = 32
)

// guardPolicy asks the guards of a framework.
type guardPolicy struct{ *Framework }

// isGuarded reports whether guards are asked about the changes of the reconciliation or plan.
func (r *reconciliation) isGuarded() bool {
	return r.framework != nil && !r.unguarded && len(r.framework.config.Guards) > 0
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
	findings := s.reconciliation.judge(ctx, would.Resource, changes, opaque)
	for _, found := range findings {
		if found.action() == GuardDeny {
			return Deny(found.denial())
		}
	}
	var held []string
	for _, found := range findings {
		switch found.action() {
		case GuardApprove:
			held = append(held, found.report(ctx, ReasonWaitsForApproval, found.waiting()))
		case GuardWarn:
			found.report(ctx, ReasonGuardWarning, found.warning())
		}
	}
	if len(held) > 0 {
		return Hold(strings.Join(held, "; "))
	}
	for _, found := range findings {
		if found.action() != plan.Limited {
			continue
		}
		answer, err := f.charge(ctx, found)
		if err != nil {
			found.err = fmt.Errorf("charge its limit: %w", err)
			return Deny(found.denial())
		}
		if !answer.Charged {
			if answer.After > 0 {
				requeuecontext.SetAfter(ctx, min(answer.After, limitPoll))
			}
			return Hold(found.report(ctx, ReasonBeyondLimit, found.beyond(answer)))
		}
	}
	return Go()
}

// finding is a guard that matches changes of a resource, or can't be evaluated.
type finding struct {
	*Guard
	reconciliation *reconciliation
	resource       string
	changes        []plan.Change
	err            error
}

// judge shows the changes of a resource to the guards. Changes that are approved are not among the
// findings.
func (r *reconciliation) judge(ctx context.Context, resource string, changes []plan.Change, opaque bool) (findings []finding) {
	changes = r.shown(changes)
	if opaque {
		changes = []plan.Change{{Action: plan.Unknown, Object: objectOf(r.object, r.key)}}
	}
	for i := range r.framework.config.Guards {
		found := finding{Guard: &r.framework.config.Guards[i], reconciliation: r, resource: resource}
		for _, c := range changes {
			if matches, err := found.matches(ctx, c); err != nil {
				found.changes, found.err = []plan.Change{c}, err
				break
			} else if matches {
				found.changes = append(found.changes, c)
			}
		}
		if len(found.changes) > 0 && !found.approved() {
			findings = append(findings, found)
		}
	}
	return findings
}

// matches calls the guard. A panic is an error. The text of an error has no known secret values.
func (f *finding) matches(ctx context.Context, c plan.Change) (matches bool, err error) {
	id := f.reconciliation.framework.Identity()
	in := GuardInput{
		Object: f.reconciliation.object, Change: c,
		Operator: id.Operator, Framework: id.Framework, Resource: f.resource,
	}
	err = recoveredIn(ctx, func(ctx context.Context) (err error) {
		matches, err = f.Match(ctx, in)
		return err
	})
	return matches, err
}

// action is what happens to the changes.
func (f *finding) action() GuardAction {
	switch {
	case f.err != nil:
		return GuardDeny
	case f.Limit != nil:
		return plan.Limited
	}
	return f.Action
}

// approved reports whether the changes are approved, as far as that is possible.
func (f *finding) approved() bool {
	if a := f.action(); a != GuardApprove && a != plan.Limited {
		return false
	}
	m, ok := metaOf(f.reconciliation.object)
	if !ok {
		return false
	}
	print := f.print()
	for approved := range strings.SplitSeq(m.GetAnnotations()[ApprovedAnnotation], ",") {
		if strings.TrimSpace(approved) == print {
			return true
		}
	}
	return false
}

// print returns the fingerprint of the changes for this guard. It does not depend on the versions
// and the metadata of objects.
func (f *finding) print() string {
	bare := make([]plan.Change, 0, len(f.changes))
	for _, c := range f.changes {
		bare = append(bare, c.Bare())
	}
	return f.hash(f.Name, f.resource, bare)[:printLength]
}

// hash identifies something of the object that is reconciled.
func (f *finding) hash(of ...any) string {
	of = append(of, f.reconciliation.framework.Name(), f.reconciliation.key)
	data, err := json.Marshal(of)
	if err != nil { // an author's Planner returned a value that is not a JSON value
		data = fmt.Appendf(nil, "%v", of)
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// about names the changes.
func (f *finding) about() string {
	c := f.changes[0]
	text := fmt.Sprintf("%s %s", c.Action, c.Object)
	if n := len(f.changes) - 1; n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	return text
}

func (f *finding) withMessage(text string) string {
	return strings.TrimSuffix(text+": "+f.Message, ": ")
}

// denial is the error of the resource.
func (f *finding) denial() error {
	about := fmt.Sprintf("guard %q denies: %s for %s", f.Name, f.about(), describe(f.reconciliation.object, f.reconciliation.key))
	if f.err != nil {
		return deniedError{about + ": it can't be evaluated", f.err}
	}
	return deniedError{text: f.withMessage(about)}
}

// deniedError is the error of a resource whose changes a guard denied.
type deniedError struct {
	text string
	// cause is set if the guard can't be evaluated.
	cause error
}

// Error implements error.
func (e deniedError) Error() string {
	if e.cause == nil {
		return e.text
	}
	return e.text + ": " + e.cause.Error()
}

// Unwrap returns ErrDenied, and the cause if there is one.
func (e deniedError) Unwrap() []error {
	if e.cause == nil {
		return []error{ErrDenied}
	}
	return []error{ErrDenied, e.cause}
}

func (f *finding) waiting() string {
	return f.withMessage(fmt.Sprintf("guard %q waits for approval of: %s; annotate with %s=%s",
		f.Name, f.about(), ApprovedAnnotation, f.print()))
}

func (f *finding) warning() string {
	return f.withMessage(fmt.Sprintf("guard %q warns of: %s", f.Name, f.about()))
}

func (f *finding) beyond(answer ledger.Answer) string {
	text := fmt.Sprintf("guard %q lets %d through in %s, and holds what is beyond: %s",
		f.Name, answer.Allowed, f.Limit.Per, f.about())
	if answer.After == 0 {
		text += "; this is more at once than it ever lets through"
	}
	return f.withMessage(text + fmt.Sprintf("; to approve it, annotate with %s=%s", ApprovedAnnotation, f.print()))
}

// report writes a warning event and a log message, once for each fingerprint. It returns the
// message.
func (f *finding) report(ctx context.Context, reason, message string) string {
	r := f.reconciliation
	if r.framework.guardReports.first(r.key, f.Name+" "+f.print()) {
		Warn(ctx, reason, message)
		r.framework.log("warning", message, "guard", f.Name, "object", describe(r.object, r.key), "resource", f.resource)
	}
	return message
}

// guardReports remembers what was reported about objects.
type guardReports struct{ keyed.Map[[]string] }

// first reports whether something is reported for the first time, as far as it is remembered.
func (r *guardReports) first(key informer.Key, report string) (first bool) {
	r.Update(key, func(before []string, _ bool) ([]string, bool) {
		if first = !slices.Contains(before, report); !first {
			return before, true
		}
		after := append(slices.Clip(before), report)
		return after[max(0, len(after)-maxGuardReports):], true
	})
	return first
}

// verdicts are the findings in the form of plans.
func (r *reconciliation) verdicts(ctx context.Context, resource string, changes []plan.Change, opaque bool) (verdicts []plan.GuardVerdict) {
	for _, found := range r.judge(ctx, resource, changes, opaque) {
		v := plan.GuardVerdict{Guard: found.Name, Action: found.action(), Message: found.Message}
		switch {
		case found.err != nil:
			v.Message = "it can't be evaluated: " + found.err.Error()
		case found.Limit != nil:
			v.Message = found.Limit.String()
			v.Fingerprint = found.print()
		default:
			v.Fingerprint = found.print()
		}
		for _, c := range found.changes {
			v.Change, v.Object = c.Action, c.Object
			verdicts = append(verdicts, v)
		}
	}
	return verdicts
}

// charge charges the changes to the limit of the guard.
func (f guardPolicy) charge(ctx context.Context, found finding) (ledger.Answer, error) {
	c := ledger.Charge{
		Guard: found.Name, Max: found.Limit.Max, Percent: found.Limit.Percent, Per: found.Limit.Per,
		Scope: f.Name(), Of: f.source.Status().Objects,
	}
	if c.Percent > 0 {
		c.IDs = []string{found.hash()[:chargeLength]}
		return f.ledger.Charge(ctx, c)
	}
	for _, change := range found.changes {
		c.IDs = append(c.IDs, found.hash(found.resource, change.Bare())[:chargeLength])
	}
	return f.ledger.Charge(ctx, c)
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
