package framework

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/operatorkit/operatorkit/informer"
)

func TestTheLastDeletionsThatWereProcessedAreRemembered(t *testing.T) {
	d := &doneDeletions{}
	begun := time.Now()
	d.add(informer.Key{Name: "without a UID"}, "")
	for i := range 3 * maxDone {
		d.add(informer.Key{Name: fmt.Sprint(i)}, types.UID(fmt.Sprint(i)))
	}
	next := 3*maxDone - 1
	d.since(begun, func(one Deletion) {
		if want := fmt.Sprint(next); one.Key.Name != want || string(one.UID) != want {
			t.Fatalf("got %+v, want %s", one, want)
		}
		next--
	})
	if remembered := 3*maxDone - 1 - next; remembered < maxDone/2 || remembered > maxDone {
		t.Errorf("%d are remembered", remembered)
	}
	d.since(time.Now().Add(time.Hour), func(one Deletion) { t.Errorf("%+v was processed in an hour", one) })
	var nothing *doneDeletions
	nothing.add(informer.Key{Name: "a"}, "a")
}
