package framework

import (
	"fmt"
	"hash/maphash"
	"testing"
	"time"

	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/informer"
)

// proposal is a change of so many fields of a page.
func proposal(fields int) []plan.Change {
	c := plan.Change{Action: plan.Update, Object: plan.Object{Kind: "Page", Name: "home"}}
	for n := range fields {
		c.Fields = append(c.Fields, plan.FieldChange{Path: fmt.Sprint("data.", n), New: "value"})
	}
	return []plan.Change{c}
}

// pass has a resource propose and apply the changes at that time.
func (f *fights) pass(changes []plan.Change, at time.Time) (started []*fight, held *Fight) {
	key := informer.Key{Name: "home"}
	s := &scope{reconciliation: &reconciliation{key: key}, resource: "pages"}
	f.sweep(at)
	started, held = f.judge(s, objectState{}, changedResource{proposed: f.split(changes), last: at})
	o, _ := f.objects.Get(key)
	o.resource("pages").applied(plan.Update, at)
	return started, held
}

func TestChangesAreForgottenAfterAWhileUnlessTheyAreInAFight(t *testing.T) {
	f, start := &fights{seed: maphash.MakeSeed()}, time.Now()
	f.pass(proposal(1), start)
	f.sweep(start.Add(fightWindow + time.Second))
	if got := f.objects.Keys(); len(got) != 0 {
		t.Errorf("it still remembers %v", got)
	}
	for n := range fightTimes + 1 {
		f.pass(proposal(1), start.Add(time.Hour+time.Duration(n)*time.Second))
	}
	f.sweep(start.Add(time.Hour + fightWindow + 10*time.Second))
	if got := f.objects.Keys(); len(got) != 1 {
		t.Errorf("it remembers %v, want the fight", got)
	}
	f.sweep(start.Add(2 * time.Hour))
	if got := f.objects.Keys(); len(got) != 0 {
		t.Errorf("it still remembers %v", got)
	}
}

func TestTheNumberOfRememberedChangesIsLimited(t *testing.T) {
	f, start := &fights{seed: maphash.MakeSeed()}, time.Now()
	for n := range 2 * fightTimes {
		if _, held := f.pass(proposal(2*maxKeptChanges), start.Add(time.Duration(n)*time.Second)); held != nil {
			t.Fatal("it is held, although most of its changes are not remembered")
		}
	}
	o, _ := f.objects.Get(informer.Key{Name: "home"})
	if n := len(o.resource("pages").changes); n != maxKeptChanges {
		t.Errorf("it remembers %d changes, want %d", n, maxKeptChanges)
	}
}

func TestAFirstChangeIsNotRemembered(t *testing.T) {
	f := &fights{seed: maphash.MakeSeed()}
	for n := range 1000 {
		s := &scope{reconciliation: &reconciliation{key: informer.Key{Name: fmt.Sprint(n)}}, resource: "pages"}
		if f.described(s, Proposal{}, objectState{}, time.Now()) {
			t.Errorf("the first change of object %d is described", n)
		}
	}
	if got := len(f.objects.Keys()); got != 0 {
		t.Errorf("it remembers %d objects", got)
	}
}
