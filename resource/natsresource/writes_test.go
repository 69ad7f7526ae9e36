package natsresource

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/informer/natsinformer"
)

// stored is an entity as a source that decodes what it reads shows it.
type stored struct {
	natsinformer.Meta
	revision uint64
}

func (s *stored) Revision() uint64 { return s.revision }

func TestAWriteIsRememberedUntilItComesBack(t *testing.T) {
	home := owner{kind: "Gateway", key: "home", by: "routes"}
	came := func(w *writes, e informer.EventType, revision uint64) {
		w.seen(informer.Event{Type: e, Key: informer.Key{Name: "a"}, Object: &stored{revision: revision}})
	}
	for name, tc := range map[string]struct {
		do   func(w *writes)
		want int
	}{
		"under way": {func(w *writes) { w.begin("a", home) }, 1},
		"written":   {func(w *writes) { w.begin("a", home); w.end("a", 7, false) }, 1},
		"written, and come back": {func(w *writes) {
			w.begin("a", home)
			w.end("a", 7, false)
			came(w, informer.Added, 7)
		}, 0},
		"come back before the acknowledgement": {func(w *writes) {
			w.begin("a", home)
			came(w, informer.Added, 7)
			w.end("a", 7, false)
		}, 0},
		"written after something older came": {func(w *writes) {
			w.begin("a", home)
			came(w, informer.Updated, 6)
			w.end("a", 7, false)
		}, 1},
		"written again before the first came back": {func(w *writes) {
			w.begin("a", home)
			w.end("a", 7, false)
			w.begin("a", home)
			came(w, informer.Updated, 7)
			w.end("a", 8, false)
		}, 1},
		"refused": {func(w *writes) { w.begin("a", home); w.end("a", 0, false) }, 0},
		"refused after one that was written": {func(w *writes) {
			w.begin("a", home)
			w.end("a", 7, false)
			w.begin("a", home)
			w.end("a", 0, false)
		}, 1},
		"purged, and the last state comes": {func(w *writes) {
			w.begin("a", home)
			w.end("a", 7, true)
			came(w, informer.Updated, 7)
		}, 1},
		"purged, and come back": {func(w *writes) {
			w.begin("a", home)
			w.end("a", 7, true)
			came(w, informer.Deleted, 7)
		}, 0},
		"purged, and come back without a revision": {func(w *writes) {
			w.begin("a", home)
			w.end("a", 7, true)
			came(w, informer.Deleted, 0)
		}, 0},
		"purged, and come back without a revision before the acknowledgement": {func(w *writes) {
			w.begin("a", home)
			came(w, informer.Deleted, 0)
			w.end("a", 7, true)
		}, 0},
		"purged, and created anew by somebody": {func(w *writes) {
			w.begin("a", home)
			w.end("a", 7, true)
			came(w, informer.Added, 9)
		}, 0},
		"written for another owner since": {func(w *writes) {
			w.begin("a", home)
			w.end("a", 7, true)
			w.begin("a", owner{kind: "Gateway", key: "shop"})
			w.end("a", 9, false)
			came(w, informer.Added, 9)
		}, 0},
	} {
		w := newWrites()
		tc.do(w)
		got := [2]int{len(w.byKey), len(w.owners)}
		if diff := cmp.Diff([2]int{tc.want, tc.want}, got); diff != "" {
			t.Errorf("%s: keys and owners that are remembered (-want +got):\n%s", name, diff)
		}
	}
}
