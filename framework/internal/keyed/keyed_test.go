package keyed

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/operatorkit/operatorkit/informer"
)

func TestMapHoldsWhatAModelHolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var m Map[int]
		model := map[informer.Key]int{}
		for range rapid.IntRange(0, 20).Draw(t, "steps") {
			key := informer.Key{Name: rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "key")}
			value, known := model[key]
			var got int
			var was bool
			switch rapid.SampledFrom([]string{"get", "set", "delete", "update"}).Draw(t, "what") {
			case "get":
				got, was = m.Get(key)
			case "set":
				got, was = m.Set(key, value+1)
				model[key] = value + 1
			case "delete":
				got, was = m.Delete(key)
				delete(model, key)
			case "update":
				keep := rapid.Bool().Draw(t, "keep")
				m.Update(key, func(before int, ok bool) (int, bool) {
					got, was = before, ok
					return before + 10, keep
				})
				if delete(model, key); keep {
					model[key] = value + 10
				}
			}
			if got != value || was != known {
				t.Fatalf("%s was %d, %v, want %d, %v", key, got, was, value, known)
			}
		}
		if got := m.Keys(); len(got) != len(model) || slices.ContainsFunc(got, func(key informer.Key) bool { _, ok := model[key]; return !ok }) {
			t.Errorf("the keys are %v, want those of %v", got, model)
		}
		var want []int
		for _, value := range model {
			want = append(want, value)
		}
		slices.Sort(want)
		if diff := cmp.Diff(want, slices.Sorted(m.Values)); diff != "" {
			t.Error(diff)
		}
	})
}
