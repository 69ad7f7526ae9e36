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
		wanted[keyOf(&desired[i])] = true
	}
	list := make([]v1alpha1.ServiceWithValues, 0, max(len(filtered), len(stored)))
	keep := func(s *v1alpha1.ServiceWithValues) {
		if wanted[entryKey(s)] {
			list = append(list, *s)
		}
	}
	old, fresh := newEntries(stored), newEntries(filtered)
	for s := fresh.next(); s != nil; s = fresh.next() {
		key := entryKey(s)
		for o := old.before(key); o != nil; o = old.before(key) {
			keep(o)
		}
		old.at(key)
		list = append(list, *s)
	}
	for o := old.next(); o != nil; o = old.next() {
		keep(o)
	}
	return list
}

// entries goes through services by key, each key once: of those with the same key, the first one counts.
type entries struct {
	list  []v1alpha1.ServiceWithValues
	order []int32 // nil if the list is by key as it is
	done  int
}

func newEntries(list []v1alpha1.ServiceWithValues) entries {
	e := entries{list: list}
	if slices.IsSortedFunc(list, func(a, b v1alpha1.ServiceWithValues) int { return compareEntries(&a, &b) }) {
		return e
	}
	e.order = make([]int32, len(list))
	for i := range e.order {
		e.order[i] = int32(i)
	}
	slices.SortStableFunc(e.order, func(a, b int32) int { return compareEntries(&list[a], &list[b]) })
	return e
}

// peek returns the next one, nil at the end.
func (e *entries) peek() *v1alpha1.ServiceWithValues {
	switch {
	case e.done == len(e.list):
		return nil
	case e.order == nil:
		return &e.list[e.done]
	}
	return &e.list[e.order[e.done]]
}

// next returns the next one and goes on, nil at the end.
func (e *entries) next() *v1alpha1.ServiceWithValues {
	s := e.peek()
	if s == nil {
		return nil
	}
	e.done++
	for again := e.peek(); again != nil && entryKey(again) == entryKey(s); again = e.peek() {
		e.done++
	}
	return s
}

// before returns the next one and goes on, nil if it does not come before a key.
func (e *entries) before(key client.ObjectKey) *v1alpha1.ServiceWithValues {
	if s := e.peek(); s == nil || compareKeys(entryKey(s), key) >= 0 {
		return nil
	}
	return e.next()
}

// at returns the next one and goes on, nil if it does not have a key.
func (e *entries) at(key client.ObjectKey) *v1alpha1.ServiceWithValues {
	if s := e.peek(); s == nil || entryKey(s) != key {
		return nil
	}
	return e.next()
}

func compareEntries(a, b *v1alpha1.ServiceWithValues) int {
	return compareKeys(entryKey(a), entryKey(b))
}
