package slots_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/operatorkit/operatorkit/operator/internal/slots"
)

// TestNoTwoReplicasMayWriteInASlot lets replicas join, work, leave, crash and stall, while watches
// lag, requests are delayed, and answers are lost.
func TestNoTwoReplicasMayWriteInASlot(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld()
		w.join("1").list()
		for range rapid.IntRange(30, 200).Draw(t, "steps") {
			w.doSomething(t)
			if conflict := w.conflict(); conflict != "" {
				t.Fatal(conflict)
			}
		}
		for name, n := range w.nodes {
			if _, exists := w.replicas[name]; !exists || n.self.Leaving {
				delete(w.nodes, name) // It ends on its own.
				if exists {
					w.write(event{slot: -1, name: name, gone: true})
				}
			}
		}
		w.join("2")
		for _, n := range w.nodes {
			n.self.Version = "2"
		}
		if !w.settle() {
			t.Fatal("slots move for ever")
		}
		if conflict := w.conflict(); conflict != "" {
			t.Fatal(conflict)
		}
		checkBalanced(t, w)
	})
}

// doSomething is one step of a history. Mostly a replica continues normally.
func (w *world) doSomething(t *rapid.T) {
	if len(w.nodes) < 2 {
		w.join(rapid.SampledFrom([]string{"1", "2"}).Draw(t, "version"))
	}
	n := w.nodes[rapid.SampledFrom(slices.Sorted(maps.Keys(w.nodes))).Draw(t, "replica")]
	fates := func() fate { return answered }
	if rapid.IntRange(0, 2).Draw(t, "trouble") == 0 {
		all := fate(rapid.IntRange(0, 3).Draw(t, "fate"))
		fates = func() fate { return all }
	}
	switch step := rapid.IntRange(0, 39).Draw(t, "step"); {
	case step < 12:
		n.renew(rapid.IntRange(0, 3).Draw(t, "reply") > 0)
		n.hear(rapid.SampledFrom([]int{10, 1000}).Draw(t, "events"))
		n.act(fates)
	case step < 18:
		n.list()
		n.act(fates)
	case step < 22:
		n.act(fates)
	case step < 24:
		n.hear(1000)
		n.follow()
	case step < 26:
		w.now += rapid.IntRange(1, 8).Draw(t, "time")
	case step < 28:
		n.expire()
	case step < 30:
		for slot := range slots.Count {
			n.begin(slot, slot%2 == 0)
		}
	case step < 32:
		for len(n.works) > 0 {
			n.end()
		}
	case step < 35:
		for _, send := range w.late {
			send()
		}
		w.late = nil
	case step < 37 && len(w.nodes) < 5:
		w.join(rapid.SampledFrom([]string{"1", "2"}).Draw(t, "version"))
	case step == 37:
		n.self.Leaving = true
	case step == 38 && len(n.works) == 0:
		n.holder.Have(slots.Part{})
		delete(w.nodes, n.name)
		w.write(event{slot: -1, name: n.name, gone: true})
	case step == 39:
		delete(w.nodes, n.name) // It crashes.
	}
}

// checkBalanced fails the test unless each slot has a replica, and the replicas have equal shares
// of each class.
func checkBalanced(t interface{ Fatalf(string, ...any) }, w *world) {
	least, most, all := slots.Count, 0, 0
	for _, n := range w.nodes {
		if n.lost {
			continue // It ends: it did not renew its Lease in time.
		}
		owned := n.holder.Part().Owned.Len()
		least, most, all = min(least, owned), max(most, owned), all+owned
	}
	if all != slots.Count || most-least > 2 {
		t.Fatalf("%d slots have a replica, the shares are from %d to %d", all, least, most)
	}
}

// grow adds replicas up to this number, each after the previous one has its part.
func (w *world) grow(t *testing.T, replicas int, version string) {
	t.Helper()
	for len(w.nodes) < replicas {
		w.join(version)
	}
	w.settled(t)
}

func (w *world) settled(t *testing.T) {
	t.Helper()
	if !w.settle() {
		t.Fatal("slots move for ever")
	}
}

func (w *world) owners() (owners [slots.Count]string) {
	for name, n := range w.nodes {
		for _, slot := range slotsOf(n.holder.Part().Owned) {
			owners[slot] = name
		}
	}
	return owners
}

func moved(before, now [slots.Count]string) (n int) {
	for slot := range before {
		if before[slot] != now[slot] {
			n++
		}
	}
	return n
}

func TestAsFewSlotsMoveAsThereMust(t *testing.T) {
	w := newWorld()
	w.grow(t, 1, "1")
	for _, step := range []struct{ replicas, most int }{{2, 130}, {3, 88}, {4, 67}, {10, 160}} {
		before := w.owners()
		w.grow(t, step.replicas, "1")
		checkBalanced(t, w)
		if n := moved(before, w.owners()); n > step.most {
			t.Errorf("%d slots have moved for %d replicas, want %d at most", n, step.replicas, step.most)
		}
	}
	before, lost := w.owners(), 0
	for _, name := range slices.Sorted(maps.Keys(w.nodes))[:3] {
		lost += w.nodes[name].holder.Part().Owned.Len()
		delete(w.nodes, name)
	}
	w.settled(t)
	checkBalanced(t, w)
	if n := moved(before, w.owners()); n > lost+10 {
		t.Errorf("%d slots have moved, and %d had lost their replica", n, lost)
	}
}

func TestNamespacesWithSimilarNamesAreBalanced(t *testing.T) {
	w := newWorld()
	var used slots.Set
	for i := range 12 {
		used.Add(slots.Of(fmt.Sprintf("team-%d", i+1), "object"))
	}
	for range 3 {
		w.join("1")
	}
	for range 40 {
		for _, n := range w.nodes {
			n.hear(len(w.log))
			n.list()
			n.self.Used = used.And(n.listed)
			n.act(func() fate { return answered })
			n.renew(true)
		}
	}
	for name, n := range w.nodes {
		if got := n.holder.Part().Owned.And(used).Len(); got < used.Len()/3 || got > (used.Len()+2)/3 {
			t.Errorf("%s has %d of %d slots with objects", name, got, used.Len())
		}
	}
	if used.Len() < 11 {
		t.Errorf("12 namespaces are in %d slots", used.Len())
	}
	checkBalanced(t, w)
}

func TestDuringARollingUpdateNewReplicasGetWhatOldOnesLeave(t *testing.T) {
	w := newWorld()
	w.grow(t, 3, "old")
	for _, old := range slices.Sorted(maps.Keys(w.nodes)) {
		before := w.owners()
		created := w.join("new")
		w.settled(t)
		if n := moved(before, w.owners()); n > 0 {
			t.Fatalf("%d slots have moved to the new replica before an old one has left", n)
		}
		left := w.nodes[old].holder.Part().Owned.Len()
		w.nodes[old].self.Leaving = true
		w.settled(t)
		if n := moved(before, w.owners()); n < left || created.holder.Part().Owned.Len() == 0 {
			t.Errorf("%d slots have moved, %s had %d", n, old, left)
		}
		if n := w.nodes[old].holder.Part().Owned.Len(); n > 0 {
			t.Errorf("%s leaves, and has %d slots", old, n)
		}
		delete(w.nodes, old)
		w.write(event{slot: -1, name: old, gone: true})
	}
	w.settled(t)
	checkBalanced(t, w)
}

func TestAReplicaThatCanNotWorkGetsNothingThatAnotherOneHas(t *testing.T) {
	w := newWorld()
	w.grow(t, 1, "1")
	unable := w.join("2")
	unable.self.Able = false
	unable.renew(true)
	w.settled(t)
	if n := unable.holder.Part().Owned.Len(); n > 0 {
		t.Errorf("it has %d slots", n)
	}
	unable.self.Able = true
	w.nodes["replica-01"].self.Version = "2"
	w.settled(t)
	checkBalanced(t, w)
}

func TestASlotWhoseLeaseWasDeletedIsNobodysForAWhile(t *testing.T) {
	r := &slots.Ring{Replicas: map[string]slots.Replica{"a": {Able: true}}}
	for i := range r.Slots {
		r.Slots[i] = slots.Slot{Holder: "a"}
	}
	r.Slots[7] = slots.Slot{Holder: "a", Barred: true}
	if r.Part("a").Owned.Has(7) || r.Part("a").Held.Has(7) || len(r.Writes("a", slots.Set{}, nil)) > 0 || r.Complete() {
		t.Error("somebody works in it, or is about to")
	}
}

func TestAReplicaClaimsNothingMoreBeforeItHasWhatItClaimed(t *testing.T) {
	r := &slots.Ring{Replicas: map[string]slots.Replica{"a": {Able: true}, "b": {Able: true}}}
	for i := range r.Slots {
		r.Slots[i] = slots.Slot{Holder: "a"}
	}
	if got := len(r.Writes("b", slots.Set{}, nil)); got != slots.Count/2 {
		t.Errorf("it claims %d slots, want half of them", got)
	}
	r.Slots[7].Next = "b"
	if got := r.Writes("b", slots.Set{}, nil); len(got) > 0 {
		t.Errorf("it writes %d slots while it lists the objects of slot 7", len(got))
	}
	delete(r.Replicas, "a")
	if got := len(r.Writes("b", slots.Set{}, nil)); got != slots.Count {
		t.Errorf("it takes %d slots of a replica that is gone, want all", got)
	}
}

func TestSetsAreWrittenAndRead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s, got slots.Set
		for _, slot := range rapid.SliceOf(rapid.IntRange(0, slots.Count-1)).Draw(t, "slots") {
			s.Add(slot)
		}
		text, err := s.MarshalText()
		if err != nil || got.UnmarshalText(text) != nil || got != s || len(slotsOf(s)) != s.Len() {
			t.Errorf("%s is read as %v, want %v", text, got, s)
		}
	})
	if err := new(slots.Set).UnmarshalText([]byte("00")); err == nil {
		t.Error("too few digits are read")
	}
}

func TestObjectsAreInTheSlotsOfTheirNamespacesAndWithoutOneOfTheirNames(t *testing.T) {
	if slots.Of("shop", "a") != slots.Of("shop", "b") || slots.Of("", "shop") != slots.Of("shop", "c") {
		t.Error("they are elsewhere")
	}
}

func TestNothingBeginsInASlotThatIsPassedOn(t *testing.T) {
	h := slots.NewHolder(func() {})
	var one slots.Set
	one.Add(1)
	releasing := slots.Part{Releasing: one, Held: one}
	h.Have(slots.Part{Owned: one, Held: one})
	if !h.Begin(1, false) {
		t.Error("nothing begins in an owned slot")
	}
	h.Have(releasing)
	if h.Begin(1, false) || !h.Begin(1, true) {
		t.Error("in a slot that is being released, only what finishes earlier work begins")
	}
	h.End(1)
	if h.Pass(1) {
		t.Error("the slot is passed on while there is work in it")
	}
	h.End(1)
	if !h.Pass(1) || h.Begin(1, true) {
		t.Error("something begins in a slot that is passed on")
	}
	h.Have(releasing) // The write is not observed yet, or its answer was lost.
	if h.Begin(1, true) {
		t.Error("something begins in a slot that may have been passed on")
	}
	h.Have(slots.Part{Owned: one, Held: one}) // The next holder has gone.
	if !h.Begin(1, false) {
		t.Error("nothing begins in a slot that came back")
	}
}
