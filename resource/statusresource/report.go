package statusresource

import (
	"cmp"
	"context"
	"errors"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operatorkit/operatorkit/context/secretscontext"
	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/internal/cut"
)

// Types of conditions, as kstatus has them.
const (
	// ConditionReady is True when the newest generation was carried out, and Set has nothing to say against it.
	ConditionReady = "Ready"
	// ConditionReconciling is True while the object is on its way, by itself.
	ConditionReconciling = "Reconciling"
	// ConditionStalled is True when it does not go on by itself.
	ConditionStalled = "Stalled"
)

// Reasons of these conditions.
const (
	// ReasonReconciled says that the reconciliation succeeded.
	ReasonReconciled = "Reconciled"
	// ReasonRetrying says that it failed and is tried again.
	ReasonRetrying = "Retrying"
	// ReasonFailed says that it failed, and that the next change is waited for.
	ReasonFailed = "Failed"
	// ReasonDeleting says that the deletion is not finished yet.
	ReasonDeleting = "Deleting"
	// ReasonHeld says that a policy holds changes (framework.Policy). The message is its reason.
	ReasonHeld = "Held"
)

// MaxMessage is how long the message of a condition is at most, in bytes. What is longer is cut.
const MaxMessage = 4096

// Report is what a status says of a reconciliation. It is for one goroutine.
type Report struct {
	// Conclusion is how the reconciliation went.
	framework.Conclusion

	reconciling, stalled *because
	others               []metav1.Condition
}

// because is why a condition is as it is.
type because struct{ reason, message string }

// Reconciling says that the object is not ready yet, and will be by itself. The reason is one word in camel case. After an error, that
// is told instead.
func (r *Report) Reconciling(reason, message string) { r.reconciling = &because{reason, message} }

// Stalled says that the object does not get ready before somebody acts. It counts more than Reconciling.
func (r *Report) Stalled(reason, message string) { r.stalled = &because{reason, message} }

// Condition sets another condition, of which only the type, the status, the reason and the message are looked at.
func (r *Report) Condition(c metav1.Condition) { r.others = append(r.others, c) }

// conditions are those of the report, and the types of those that are not there.
func (r *Report) conditions(ctx context.Context, prefix string, generation int64) (set []metav1.Condition, absent []string) {
	reconciling, stalled := r.reconciling, r.stalled
	var failure *because
	switch {
	case r.Outcome == framework.Failed && framework.IsPermanent(r.Err):
		failure = &because{ReasonFailed, failureText(r.Err)}
		stalled = cmp.Or(stalled, failure)
	case r.Outcome == framework.Failed:
		failure = &because{ReasonRetrying, failureText(r.Err)}
		reconciling = failure
	case r.Outcome == framework.Waiting && r.Held != "":
		reconciling = cmp.Or(reconciling, &because{ReasonHeld, r.Held})
	case r.Outcome == framework.Waiting:
		reconciling = cmp.Or(reconciling, &because{ReasonDeleting, "the deletion is not finished yet"})
	}
	if stalled != nil {
		reconciling = nil
	}
	why := cmp.Or(failure, stalled, reconciling)
	ready := metav1.Condition{Type: ConditionReady, Status: metav1.ConditionTrue, Reason: ReasonReconciled}
	if why != nil {
		ready.Status, ready.Reason, ready.Message = metav1.ConditionFalse, why.reason, why.message
	}
	set = []metav1.Condition{ready}
	for _, c := range []struct {
		kind string
		why  *because
	}{{ConditionReconciling, reconciling}, {ConditionStalled, stalled}} {
		if c.why == nil {
			absent = append(absent, prefix+c.kind)
			continue
		}
		set = append(set, metav1.Condition{Type: c.kind, Status: metav1.ConditionTrue, Reason: c.why.reason, Message: c.why.message})
	}
	for i := range set {
		set[i].Type = prefix + set[i].Type
	}
	set = slices.Concat(set, r.others)
	for i := range set {
		set[i].ObservedGeneration, set[i].Message = generation, cut.Text(secretscontext.Scrub(ctx, set[i].Message), MaxMessage)
		set[i].LastTransitionTime = metav1.Time{}
	}
	return set, absent
}

// failureText says which resource failed, and how. Which object it was is known.
func failureText(err error) string {
	var step *framework.StepError
	if errors.As(err, &step) {
		return step.Error()
	}
	return err.Error()
}
