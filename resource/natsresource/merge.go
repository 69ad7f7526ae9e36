package natsresource

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operatorkit/operatorkit/informer/natsinformer"
)

// merge returns the entry as it should be: what is desired, with the metadata that the bucket maintains and what others
// put into the lists and maps of the metadata. What was applied before and is no longer desired goes away.
func (r *resource[O, T]) merge(have, want T) T {
	merged := copyOf(want)
	m := merged.EntityMeta()
	*m = have.EntityMeta().DeepCopy()
	given := want.EntityMeta()
	var before applied
	if key, names, _ := appliedTo(m); key == m.Name {
		before = namesIn(names)
	}
	m.OwnerKind, m.OwnerKey = given.OwnerKind, given.OwnerKey
	m.Labels = mergeMaps(m.Labels, before.Labels, given.Labels)
	m.Annotations = mergeMaps(m.Annotations, before.Annotations, given.Annotations)
	m.Finalizers = mergeNames(m.Finalizers, before.Finalizers, given.Finalizers)
	m.Conditions = mergeConditions(m.Conditions, before.Conditions, given.Conditions)
	if r.config.Keep != nil {
		r.config.Keep(have, merged)
	}
	return merged
}

// mergeMaps returns what there is, without what was applied before, and with what is wanted.
func mergeMaps(have map[string]string, before []string, want map[string]string) map[string]string {
	merged := make(map[string]string, len(have)+len(want))
	maps.Copy(merged, have)
	for _, name := range before {
		delete(merged, name)
	}
	maps.Copy(merged, want)
	if len(merged) == 0 {
		return nil
	}
	return merged
}

func mergeNames(have, before, want []string) []string {
	merged := slices.DeleteFunc(slices.Clone(have), func(name string) bool {
		return slices.Contains(before, name) && !slices.Contains(want, name)
	})
	for _, name := range want {
		if !slices.Contains(merged, name) {
			merged = append(merged, name)
		}
	}
	return merged
}

// mergeConditions keeps the time of a transition for as long as the status of its condition stays.
func mergeConditions(have []metav1.Condition, before []string, want []metav1.Condition) []metav1.Condition {
	merged := slices.DeleteFunc(slices.Clone(have), func(c metav1.Condition) bool {
		return slices.Contains(before, c.Type) && meta.FindStatusCondition(want, c.Type) == nil
	})
	for _, c := range want {
		meta.SetStatusCondition(&merged, c)
	}
	return merged
}

// volatile takes away what a bucket maintains, and the name, which every line that shows an entry has already. The times of
// transitions follow from what else changes, and are other ones each time that it is computed.
func volatile(m *natsinformer.Meta) {
	conditions := slices.Clone(m.Conditions)
	for i := range conditions {
		conditions[i].LastTransitionTime = metav1.Time{}
	}
	*m = natsinformer.Meta{
		OwnerKey:          m.OwnerKey,
		OwnerKind:         m.OwnerKind,
		Labels:            m.Labels,
		Annotations:       m.Annotations,
		DeletionTimestamp: m.DeletionTimestamp,
		Finalizers:        m.Finalizers,
		Conditions:        conditions,
	}
}
