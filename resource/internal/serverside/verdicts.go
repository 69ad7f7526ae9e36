package serverside

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/lru"
)

// Verdicts remembers the live objects that look different from what is desired (1000m and 1, a container that a webhook added), and
// of which an API server said that applying it would change nothing. The one that was not used for the longest time is forgotten
// first, which costs a dry run. It is safe for concurrent use.
type Verdicts struct{ pairs *lru.Cache }

// NewVerdicts returns Verdicts on at most size objects.
func NewVerdicts(size int) Verdicts { return Verdicts{lru.New(size)} }

// AsDesired reports whether a live object is known to be as desired without asking the API server.
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

// Remember keeps the verdict that applying desired would not change the live object.
func (v Verdicts) Remember(live, desired *unstructured.Unstructured) {
	if now, err := PairOf(live.Object, desired.Object); err == nil {
		v.pairs.Add(live.GetUID(), now)
	}
}
