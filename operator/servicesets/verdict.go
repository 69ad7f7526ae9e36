package servicesets

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// maxMessage is how long the messages of conditions are at most, in bytes.
const maxMessage = 4096

// verdict is what the conditions Ready, Progressing and Blocked say.
type verdict struct {
	// ready, progressing and blocked tell whether the conditions are True.
	ready, progressing, blocked bool
	// why are reasons. That of ready is the one of a condition Ready that is True.
	readyWhy, progressingWhy, blockedWhy string
	// allWell says how it is when all is ready, moving what changes by itself, waiting what waits for what does not, and
	// stuck what a person has to see to.
	allWell                string
	moving, waiting, stuck []string
}

// conditions returns the conditions, without times.
func (v *verdict) conditions(generation int64) []metav1.Condition {
	all := slices.Clone(v.stuck)
	for _, sentence := range slices.Concat(v.moving, v.waiting) {
		if !slices.Contains(v.stuck, sentence) {
			all = append(all, sentence)
		}
	}
	ready := metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v.readyWhy, Message: v.allWell}
	if !v.ready {
		ready.Status, ready.Reason, ready.Message = metav1.ConditionFalse, v.why(), bounded(all)
	}
	progressing := metav1.Condition{Type: v1alpha1.ConditionProgressing, Status: metav1.ConditionFalse, Reason: v.why(), Message: bounded(v.waiting)}
	if v.progressing {
		progressing.Status, progressing.Reason, progressing.Message = metav1.ConditionTrue, v.progressingWhy, bounded(slices.Concat(v.moving, v.waiting))
	}
	blocked := metav1.Condition{Type: v1alpha1.ConditionBlocked, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonNotBlocked}
	if v.blocked {
		blocked.Status, blocked.Reason, blocked.Message = metav1.ConditionTrue, v.blockedWhy, bounded(v.stuck)
	}
	conditions := []metav1.Condition{ready, progressing, blocked}
	for i := range conditions {
		conditions[i].ObservedGeneration = generation
	}
	return conditions
}

// why is the reason that counts most.
func (v *verdict) why() string {
	switch {
	case v.blocked:
		return v.blockedWhy
	case v.progressing:
		return v.progressingWhy
	case len(v.waiting) > 0:
		return v1alpha1.ReasonWaiting
	}
	return v.readyWhy
}

// progress tells that something changes by itself. Of several reasons, the one that comes first in the list counts.
func (v *verdict) progress(reason, sentence string) {
	v.moving = append(v.moving, sentence)
	if !v.progressing || rank(reason) < rank(v.progressingWhy) {
		v.progressingWhy = reason
	}
	v.progressing = true
}

// block tells that a person has to act. The first reason counts.
func (v *verdict) block(reason, sentence string) {
	v.stuck = append(v.stuck, sentence)
	if !v.blocked {
		v.blockedWhy = reason
	}
	v.blocked = true
}

// rank orders the reasons of progress.
func rank(reason string) int {
	for i, r := range []string{
		v1alpha1.ReasonStepping, v1alpha1.ReasonInFlight, v1alpha1.ReasonNotReconciled, v1alpha1.ReasonRemoving, v1alpha1.ReasonWaiting,
	} {
		if r == reason {
			return i
		}
	}
	return -1
}

// setConditions puts conditions into a list, and keeps the times of those whose status is the same.
func setConditions(list []metav1.Condition, conditions []metav1.Condition) []metav1.Condition {
	for _, c := range conditions {
		meta.SetStatusCondition(&list, c)
	}
	return list
}

// bounded joins sentences, as far as they fit.
func bounded(sentences []string) string {
	var b strings.Builder
	for i, s := range sentences {
		s = clip(s, maxMessage/2)
		rest := fmt.Sprintf("; and %d more", len(sentences)-i)
		if b.Len()+len(s)+len(rest) > maxMessage {
			b.WriteString(rest)
			break
		}
		if i > 0 {
			b.WriteString("; ")
		}
		b.WriteString(s)
	}
	return b.String()
}

// clip cuts a text to a length in bytes.
func clip(text string, length int) string {
	if len(text) <= length {
		return text
	}
	return strings.ToValidUTF8(text[:length-len("…")], "") + "…"
}

// count says how many things there are: "1 service", "2 services".
func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
