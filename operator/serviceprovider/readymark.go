package serviceprovider

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// unsaid is the observed generation that the condition Ready has while the author is called: whoever sets the condition, to whatever,
// replaces it, so that the runtime knows who has said it last. It is neither that of the object nor 0, which are what authors set, and one
// that API servers accept: authors may write the status themselves.
func unsaid(obj API) int64 {
	if earlier := obj.GetGeneration() - 1; earlier > 0 {
		return earlier
	}
	return obj.GetGeneration() + 1
}

// markReady marks the condition Ready. The function that it returns takes the mark away again and tells whether the
// condition was set meanwhile.
func markReady(obj API) (restore func() (told bool)) {
	before := meta.FindStatusCondition(*obj.GetConditions(), ServiceProviderConditionReady)
	if before == nil {
		return func() bool {
			return meta.FindStatusCondition(*obj.GetConditions(), ServiceProviderConditionReady) != nil
		}
	}
	saved, mark := *before, unsaid(obj)
	before.ObservedGeneration = mark
	return func() bool {
		after := meta.FindStatusCondition(*obj.GetConditions(), ServiceProviderConditionReady)
		if after == nil || after.ObservedGeneration != mark {
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
