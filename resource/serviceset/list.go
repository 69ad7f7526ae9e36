package serviceset

import (
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// BuildServicesList returns the services of a ServiceSet by key: those of filtered, and those of stored that are still
// desired and not in filtered, as they are. What is stored and not desired any more is left out at once; [Resolve] minds
// the order in which services are removed. Of services that are listed twice, the first one counts. The lists are not
// changed.
func BuildServicesList(stored, filtered []v1alpha1.ServiceWithValues, desired []v1alpha1.Service) []v1alpha1.ServiceWithValues {
	wanted := make(map[client.ObjectKey]bool, len(desired))
	for i := range desired {
		wanted[desired[i].Key()] = true
	}
	entries := byKey(filtered)
	for key, s := range byKey(stored) {
		if wanted[key] && entries[key] == nil {
			entries[key] = s
		}
	}
	list := make([]v1alpha1.ServiceWithValues, 0, len(entries))
	for _, s := range entries {
		list = append(list, *s)
	}
	sortEntries(list)
	return list
}

// byKey returns the entries of a list by key: of those with the same key, the first one.
func byKey(list []v1alpha1.ServiceWithValues) map[client.ObjectKey]*v1alpha1.ServiceWithValues {
	entries := make(map[client.ObjectKey]*v1alpha1.ServiceWithValues, len(list))
	for i := range list {
		if key := list[i].Key(); entries[key] == nil {
			entries[key] = &list[i]
		}
	}
	return entries
}

func sortEntries(list []v1alpha1.ServiceWithValues) {
	slices.SortFunc(list, func(a, b v1alpha1.ServiceWithValues) int { return v1alpha1.CompareKeys(a.Key(), b.Key()) })
}
