package serviceset

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

func TestWhoListsAServiceAndWhoHasItDecideWhatBecomesOfIt(t *testing.T) {
	const we, other, third = "we", "other", "third"
	for _, row := range []struct {
		lists, has, too string
		leaving         bool // the set of the one who has it is being deleted
		want            handover
	}{
		{lists: we, want: own},
		{lists: we, has: we, want: own},
		{lists: we, has: we, leaving: true, want: own},
		{lists: we, has: we, too: other, want: awaiting},
		{lists: we, has: other, want: taking},
		{lists: we, has: other, leaving: true, want: taking},
		{lists: we, has: other, too: third, want: taking},
		{lists: other, want: lending},
		{lists: other, has: we, want: lending},
		{lists: other, has: third, want: lending},
		{lists: other, has: we, too: third, want: lending},
		{lists: other, has: other, want: givenUp},
		{lists: other, has: other, too: we, want: givenUp},
		{lists: other, has: other, too: third, want: givenUp},
		{lists: other, has: other, leaving: true, want: lending},
		{lists: other, has: other, too: we, leaving: true, want: lending},
	} {
		owners := map[string]*Owner{"": nil}
		for _, name := range []string{we, other, third} {
			owners[name] = &Owner{Key: client.ObjectKey{Name: name}, Set: &v1alpha1.ServiceSet{}}
		}
		n := &node{listing: &listing{owner: owners[row.lists]}, holder: owners[row.has], also: owners[row.too]}
		if row.leaving {
			n.holder.Set.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
		}
		if got := n.handover(owners[we]); got != row.want {
			t.Errorf("listed by %q, had by %q and %q (leaving: %t): it is %s, want %s", row.lists, row.has, row.too, row.leaving, got, row.want)
		}
	}
}
