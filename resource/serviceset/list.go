package serviceset

import (
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// BuildServicesList returns the services of a ServiceSet by key: those of filtered, and those of stored that are still
// desired and not in filtered, as they are. What is stored and not desired any more is left out at once; [Resolve] minds
// the order in which services are removed. The lists are not changed.
func BuildServicesList(stored, filtered []v1alpha1.ServiceWithValues, desired []v1alpha1.Service) []v1alpha1.ServiceWithValues {
	wanted := make(map[client.ObjectKey]bool, len(desired))
	for i := range desired {
		wanted[keyOf(&desired[i])] = true
	}
	return merge(stored, filtered, func(i int) bool { return wanted[entryKey(&stored[i])] })
}

// merge adds to filtered what is stored and has to be kept. It returns them by key. Of services that are listed twice, the
// first one counts.
func merge(stored, filtered []v1alpha1.ServiceWithValues, keep func(i int) bool) []v1alpha1.ServiceWithValues {
	list := make([]v1alpha1.ServiceWithValues, 0, max(len(filtered), len(stored)))
	old, fresh := byKey(stored), byKey(filtered)
	add := func(s *v1alpha1.ServiceWithValues) {
		if n := len(list); n == 0 || entryKey(&list[n-1]) != entryKey(s) {
			list = append(list, *s)
		}
	}
	for len(old) > 0 || len(fresh) > 0 {
		if len(old) == 0 || len(fresh) > 0 && compareEntries(&filtered[fresh[0]], &stored[old[0]]) <= 0 {
			add(&filtered[fresh[0]])
			fresh = fresh[1:]
			continue
		}
		if keep(int(old[0])) {
			add(&stored[old[0]])
		}
		old = old[1:]
	}
	return list
}

// byKey returns the indices of a list in the order of its keys. Those of the same key stay in their order.
func byKey(list []v1alpha1.ServiceWithValues) []int32 {
	order := make([]int32, len(list))
	for i := range order {
		order[i] = int32(i)
	}
	compare := func(a, b int32) int { return compareEntries(&list[a], &list[b]) }
	if !slices.IsSortedFunc(order, compare) {
		slices.SortStableFunc(order, compare)
	}
	return order
}

func compareEntries(a, b *v1alpha1.ServiceWithValues) int {
	return compareKeys(entryKey(a), entryKey(b))
}
