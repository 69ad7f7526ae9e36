package statemanager

import "github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"

// Precedes decides who begins with a service that two sets list: the one of the higher priority, then the older one, then the one whose
// name comes first.
func Precedes(a, b *v1alpha1.ServiceSet) bool {
	if p, q := priorityOf(a), priorityOf(b); p != q {
		return p > q
	}
	if !a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return a.CreationTimestamp.Before(&b.CreationTimestamp)
	}
	return a.Name < b.Name
}

func priorityOf(set *v1alpha1.ServiceSet) int32 {
	config, err := ConfigOf(set)
	if err != nil {
		return v1alpha1.DefaultPriority
	}
	return config.Priority
}
