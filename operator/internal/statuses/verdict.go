package statuses

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// Verdict is what the conditions Ready, Progressing and Blocked say.
type Verdict struct {
	// Ready, Progressing and Blocked tell whether the conditions are True. What is blocked is not ready.
	Ready, Progressing, Blocked bool
	// These are the reasons. That of Ready is the one of a condition Ready that is True.
	ReadyWhy, ProgressingWhy, BlockedWhy string
	// AllWell says how it is when all is ready, Moving what changes by itself, Waiting what waits for what does not, and
	// Stuck what a person has to see to.
	AllWell                string
	Moving, Waiting, Stuck []string
}

// Conditions returns the conditions, without times.
func (v *Verdict) Conditions(generation int64) []metav1.Condition {
	all := slices.Clone(v.Stuck)
	for _, sentence := range slices.Concat(v.Moving, v.Waiting) {
		if !slices.Contains(v.Stuck, sentence) {
			all = append(all, sentence)
		}
	}
	ready := metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v.ReadyWhy, Message: v.AllWell}
	if !v.Ready || v.Blocked {
		ready.Status, ready.Reason, ready.Message = metav1.ConditionFalse, v.Why(), Bounded(all)
	}
	progressing := metav1.Condition{Type: v1alpha1.ConditionProgressing, Status: metav1.ConditionFalse, Reason: v.Why(), Message: Bounded(v.Waiting)}
	if v.Progressing {
		progressing.Status, progressing.Reason, progressing.Message = metav1.ConditionTrue, v.ProgressingWhy, Bounded(slices.Concat(v.Moving, v.Waiting))
	}
	blocked := metav1.Condition{Type: v1alpha1.ConditionBlocked, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonNotBlocked}
	if v.Blocked {
		blocked.Status, blocked.Reason, blocked.Message = metav1.ConditionTrue, v.BlockedWhy, Bounded(v.Stuck)
	}
	conditions := []metav1.Condition{ready, progressing, blocked}
	for i := range conditions {
		conditions[i].ObservedGeneration = generation
	}
	return conditions
}

// Why is the reason that counts most.
func (v *Verdict) Why() string {
	switch {
	case v.Blocked:
		return v.BlockedWhy
	case v.Progressing:
		return v.ProgressingWhy
	case len(v.Waiting) > 0:
		return v1alpha1.ReasonWaiting
	}
	return v.ReadyWhy
}

// Progress tells that something changes by itself. Of several reasons, the one that comes first in the list counts.
func (v *Verdict) Progress(reason, sentence string) {
	v.Moving = append(v.Moving, sentence)
	if !v.Progressing || rank(reason) < rank(v.ProgressingWhy) {
		v.ProgressingWhy = reason
	}
	v.Progressing = true
}

// Block tells that a person has to act. The first reason counts.
func (v *Verdict) Block(reason, sentence string) {
	v.Stuck = append(v.Stuck, sentence)
	if !v.Blocked {
		v.BlockedWhy = reason
	}
	v.Blocked = true
}

// rank orders the reasons of progress.
func rank(reason string) int {
	for i, r := range []string{
		v1alpha1.ReasonStepping, v1alpha1.ReasonInFlight, v1alpha1.ReasonNotReconciled, v1alpha1.ReasonSetNotReady, v1alpha1.ReasonRemoving, v1alpha1.ReasonWaiting,
	} {
		if r == reason {
			return i
		}
	}
	return -1
}

// Count says how many things there are: "1 service", "2 services".
func Count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
