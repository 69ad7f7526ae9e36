package inspector

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/informer"
)

// TestWhatIsLookedUpIsWhatIsRemembered compares the two ways to find histories with the objects that a list in order of time would keep.
func TestWhatIsLookedUpIsWhatIsRemembered(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(1, 6).Draw(t, "limit")
		m := newMemory(Config{RecordsPerObject: 2, Objects: limit, Memory: 1 << 30})
		var calm, failing []string // the one that was reconciled longest ago first
		for range rapid.IntRange(1, 60).Draw(t, "records") {
			name := fmt.Sprint("object-", rapid.IntRange(0, 9).Draw(t, "object"))
			outcome := rapid.SampledFrom([]framework.Outcome{framework.Succeeded, framework.Failed}).Draw(t, "outcome")
			m.add(&framework.Record{Framework: "f", Key: informer.Key{Name: name}, Event: plan.UpdateEvent, Outcome: outcome})

			is := func(other string) bool { return other == name }
			calm, failing = slices.DeleteFunc(calm, is), slices.DeleteFunc(failing, is)
			if outcome == framework.Failed {
				failing = append(failing, name)
			} else {
				calm = append(calm, name)
			}
			if len(calm)+len(failing) > limit {
				if len(calm) > 0 {
					calm = calm[1:]
				} else {
					failing = failing[1:]
				}
			}

			var known []string
			for place, h := range m.histories() {
				known = append(known, h.id.key.Name)
				if h.place != place || m.history(h.id) != h {
					t.Fatalf("%s has place %d, and is at %d", h.id.key.Name, h.place, place)
				}
			}
			want := slices.Concat(calm, failing)
			slices.Sort(want)
			slices.Sort(known)
			if !slices.Equal(known, want) || len(m.objects) != len(want) {
				t.Fatalf("%q are remembered, and %d by their IDs, want %q", known, len(m.objects), want)
			}
		}
	})
}
