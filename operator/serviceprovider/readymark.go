package serviceprovider

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// unsaid is the observed generation of the condition Ready while the author is called: whoever sets the condition, to whatever,
// replaces it, so that the runtime knows who has said it last.
const unsaid = -1

// markReady marks the condition Ready. The function that it returns takes the mark away again and tells whether the
// condition was set meanwhile.
func markReady(obj API) (restore func() (told bool)) {
	before := meta.FindStatusCondition(*obj.GetConditions(), ServiceProviderConditionReady)
	if before == nil {
		return func() bool {
			return meta.FindStatusCondition(*obj.GetConditions(), ServiceProviderConditionReady) != nil
		}
	}
	saved := *before
	before.ObservedGeneration = unsaid
	return func() bool {
		after := meta.FindStatusCondition(*obj.GetConditions(), ServiceProviderConditionReady)
		if after == nil || after.ObservedGeneration != unsaid {
			return after != nil
		}
		after.ObservedGeneration = saved.ObservedGeneration
		if *after == saved {
			return false
		}
		after.ObservedGeneration = obj.GetGeneration()
		return true
	}
}

func isReady(obj API) bool {
	return meta.IsStatusConditionPresentAndEqual(*obj.GetConditions(), ServiceProviderConditionReady, metav1.ConditionTrue)
}
