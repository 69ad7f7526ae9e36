package shadows

import (
	"fmt"
	"testing"

	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/informer"
)

func TestPlacesOfAShadowAreBoundedAndGoWithTheirObjects(t *testing.T) {
	r := newResults("v2")
	key := func(n int) informer.Key { return informer.Key{Name: fmt.Sprint(n)} }
	const objects = maxPlaces + 100
	for n := range objects {
		change := plan.Change{Action: plan.Update, Fields: []plan.FieldChange{{Path: "all", New: true}, {Path: fmt.Sprint(n), New: true}}}
		r.keep(key(n), &plan.Comparison{Differences: []plan.Divergence{{Shadow: &change}}})
	}
	if got := len(r.places); got != maxPlaces {
		t.Errorf("%d places are counted, want %d", got, maxPlaces)
	}
	if got := r.places[plan.Place{Path: "all"}]; got != objects {
		t.Errorf("a place of all %d objects is counted %d times", objects, got)
	}
	for n := range objects {
		r.forget(key(n))
	}
	if len(r.places) != 0 || r.details != 0 || r.counts[plan.Differs] != 0 {
		t.Errorf("%d places, %d details and %d objects are left of none", len(r.places), r.details, r.counts[plan.Differs])
	}
}
