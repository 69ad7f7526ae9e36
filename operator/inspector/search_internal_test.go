package inspector

import (
	"fmt"
	"io"
	"slices"
	"testing"

	"github.com/giantswarm/micrologger"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer"
)

func TestPagesOfAListAreThoseOfAllThatIsFoundInOrder(t *testing.T) {
	var exist, fail, want []string
	for n := range 300 {
		// Keys are in an order of their own already.
		name := fmt.Sprintf("site-%03d", n)
		if n%3 > 0 {
			exist = append(exist, name)
		}
		if n%2 > 0 {
			fail = append(fail, name)
		}
		if n%3 > 0 || n%2 > 0 {
			want = append(want, name)
		}
	}
	slices.Reverse(fail)
	i := withSites(t, exist, fail)
	for _, limit := range []int{1, 7, 1000} {
		var got []string
		for offset := 0; offset == 0 || offset < len(want); offset += limit {
			list, err := i.list(t.Context(), query{wanted: wanted{offset: offset, limit: limit}})
			if err != nil || list.Total != len(want) {
				t.Fatalf("%d objects are found and %v, want %d", list.Total, err, len(want))
			}
			for _, o := range list.Objects {
				got = append(got, o.Name)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("by %d, the list is %v", limit, got)
		}
	}
}

// withSites returns an inspector of sites that exist, and of those that fail.
func withSites(t *testing.T, exist, fail []string) *Inspector {
	t.Helper()
	logger, err := micrologger.New(micrologger.Config{IOWriter: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	i, err := New(Config{Name: "o", Logger: logger})
	if err != nil {
		t.Fatal(err)
	}
	source := informer.NewPush("sites")
	f, err := framework.New(framework.Config{Name: "sites", Source: source, Logger: logger, Observer: i, Resources: []framework.Resource{idle{}}})
	if err != nil {
		t.Fatal(err)
	}
	i.Watch(f)
	for _, name := range fail {
		i.Observe(&framework.Record{Framework: "sites", Key: informer.Key{Name: name}, Outcome: framework.Failed, Error: "no"})
	}
	for _, name := range exist {
		if err := source.Update(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
			t.Fatal(err)
		}
	}
	return i
}

// idle is a resource that does nothing.
type idle struct{ framework.Resource }

func (idle) Name() string { return "idle" }
