package carrier

import (
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// JobKind is the kind of Jobs.
var JobKind = schema.GroupKind{Group: batchv1.GroupName, Kind: "Job"}

// Vanished tells whether an object that was put onto a cluster that long ago, and is not there any more, is a Job that has finished and
// was taken away for that: one with ttlSecondsAfterFinished, which is there for longer than that. It is done, and not missing. One that is
// gone sooner was deleted by somebody.
func Vanished(desired *unstructured.Unstructured, since time.Duration) bool {
	if desired.GroupVersionKind().GroupKind() != JobKind {
		return false
	}
	ttl, found, err := unstructured.NestedInt64(desired.Object, "spec", "ttlSecondsAfterFinished")
	return found && err == nil && since >= time.Duration(ttl)*time.Second
}

// AsItEnded returns a Job that has finished, and is being taken away for that, as it was before. All else stays as it is. The health of a
// service does not change while what is done goes.
func AsItEnded(live *unstructured.Unstructured) *unstructured.Unstructured {
	if live.GetDeletionTimestamp() == nil || live.GroupVersionKind().GroupKind() != JobKind {
		return live
	}
	if _, vanishes, _ := unstructured.NestedFieldNoCopy(live.Object, "spec", "ttlSecondsAfterFinished"); !vanishes || !finished(live) {
		return live
	}
	ended := live.DeepCopy()
	ended.SetDeletionTimestamp(nil)
	return ended
}

// finished tells whether a Job has completed or failed.
func finished(job *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(job.Object, "status", "conditions")
	return slices.ContainsFunc(conditions, func(c any) bool {
		condition, _ := c.(map[string]any)
		kind := condition["type"]
		return condition["status"] == "True" && (kind == string(batchv1.JobComplete) || kind == string(batchv1.JobFailed))
	})
}
