package serverside

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/lru"
)

// Verdicts remembers of which live objects an API server said that applying what they should be would change nothing, although they look
// different from here (1000m and 1, a container that a webhook added). The one that was not used for the longest time is forgotten first,
// which costs a dry run. It is safe for concurrent use.
type Verdicts struct{ pairs *lru.Cache }

// NewVerdicts returns Verdicts on so many objects.
func NewVerdicts(size int) Verdicts { return Verdicts{lru.New(size)} }

// AsDesired tells whether a live object is as it should be, as far as that can be told without asking the API server.
func (v Verdicts) AsDesired(live, desired *unstructured.Unstructured) bool {
	if Covers(live.Object, desired.Object) {
		return true
	}
	last, ok := v.pairs.Get(live.GetUID())
	if !ok {
		return false
	}
	now, err := PairOf(live.Object, desired.Object)
	return err == nil && last == now
}

// Remember keeps that applying what an object should be would change nothing.
func (v Verdicts) Remember(live, desired *unstructured.Unstructured) {
	if now, err := PairOf(live.Object, desired.Object); err == nil {
		v.pairs.Add(live.GetUID(), now)
	}
}
