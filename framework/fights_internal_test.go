package framework

import (
	"fmt"
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
func (f *fights) pass(changes []plan.Change, at time.Time) (started []*Fight, held *Fight) {
	key := informer.Key{Name: "home"}
	s := &scope{reconciliation: &reconciliation{key: key}, resource: "pages"}
	f.sweep(at)
	s.proposed = f.split("pages", changes)
	started, held = f.judge(s, run{key: key, resource: "pages"}, at)
	f.apply(s, plan.Update, at)
	return started, held
}

func TestChangesAreForgottenAfterAWhileUnlessTheyAreInAFight(t *testing.T) {
	f, start := newFights(nil), time.Now()
	f.pass(proposal(1), start)
	f.sweep(start.Add(fightWindow + time.Second))
	if got := f.keys(); len(got) != 0 {
		t.Errorf("it still remembers %v", got)
	}
	for n := range fightTimes + 1 {
		f.pass(proposal(1), start.Add(time.Hour+time.Duration(n)*time.Second))
	}
	f.sweep(start.Add(time.Hour + fightWindow + 10*time.Second))
	if got := f.keys(); len(got) != 1 {
		t.Errorf("it remembers %v, want the fight", got)
	}
	f.sweep(start.Add(2 * time.Hour))
	if got := f.keys(); len(got) != 0 {
		t.Errorf("it still remembers %v", got)
	}
}

func TestTheNumberOfRememberedChangesIsLimited(t *testing.T) {
	f, start := newFights(nil), time.Now()
	for n := range 2 * fightTimes {
		if _, held := f.pass(proposal(2*maxKeptChanges), start.Add(time.Duration(n)*time.Second)); held != nil {
			t.Fatal("it is held, although most of its changes are not remembered")
		}
	}
	if n := len(f.objects[informer.Key{Name: "home"}].changes); n != maxKeptChanges {
		t.Errorf("it remembers %d changes, want %d", n, maxKeptChanges)
	}
}

func TestAFirstChangeIsNotRemembered(t *testing.T) {
	f := newFights(nil)
	for n := range 1000 {
		r := run{key: informer.Key{Name: fmt.Sprint(n)}, resource: "pages"}
		if f.recurs(r, time.Now(), fightWindow) {
			t.Errorf("the first change of object %d is described", n)
		}
	}
	if got := len(f.keys()); got != 0 {
		t.Errorf("it remembers %d objects", got)
	}
}
