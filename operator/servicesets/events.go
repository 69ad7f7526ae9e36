package servicesets

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// maxEventMessage is how long the message of an event may be, in bytes.
const maxEventMessage = 1024

// tell writes events on what has changed between the conditions that were stored and those that are stored now: so each is
// told once, whoever reconciles how often.
func (r *statusResource[O, S]) tell(obj O, before, after []metav1.Condition) {
	old, now := find(before, v1alpha1.ConditionBlocked), find(after, v1alpha1.ConditionBlocked)
	if now.Status == metav1.ConditionTrue && (old.Status != now.Status || old.Reason != now.Reason || old.Message != now.Message) {
		r.recorder.Event(obj, corev1.EventTypeWarning, now.Reason, clip(now.Message, maxEventMessage))
	}
	old, now = find(before, v1alpha1.ConditionReady), find(after, v1alpha1.ConditionReady)
	if now.Status == metav1.ConditionTrue && old.Status != now.Status {
		r.recorder.Event(obj, corev1.EventTypeNormal, v1alpha1.ConditionReady, clip(now.Message, maxEventMessage))
	}
}

// find returns a condition, or an empty one.
func find(conditions []metav1.Condition, conditionType string) metav1.Condition {
	if c := meta.FindStatusCondition(conditions, conditionType); c != nil {
		return *c
	}
	return metav1.Condition{}
}
