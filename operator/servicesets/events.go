package servicesets

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/operator/internal/statuses"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// tell writes events on what has changed between the conditions that were stored and those that are stored now: so each is
// told once, whoever reconciles how often.
func tell(recorder framework.EventRecorder, obj client.Object, before, after []metav1.Condition) {
	old, now := statuses.Find(before, v1alpha1.ConditionBlocked), statuses.Find(after, v1alpha1.ConditionBlocked)
	if now.Status == metav1.ConditionTrue && (old.Status != now.Status || old.Reason != now.Reason || old.Message != now.Message) {
		recorder.Event(obj, corev1.EventTypeWarning, now.Reason, now.Message)
	}
	old, now = statuses.Find(before, v1alpha1.ConditionReady), statuses.Find(after, v1alpha1.ConditionReady)
	if now.Status == metav1.ConditionTrue && old.Status != now.Status {
		recorder.Event(obj, corev1.EventTypeNormal, v1alpha1.ConditionReady, now.Message)
	}
}
