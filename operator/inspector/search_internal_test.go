package inspector

import (
	"context"
	"errors"
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

// searched is an inspector of one site, whose source calls listed when a search begins.
func searched(t *testing.T, listed func()) *Inspector {
	t.Helper()
	i := newInspector(t, Config{})
	watching(t, i, framework.Config{Source: &listedKeys{informer.NewPush("sites"), listed}, Observer: i})
	i.Observe(of("home", framework.Succeeded))
	return i
}

type listedKeys struct {
	*informer.Push
	listed func()
}

func (k *listedKeys) Keys() []informer.Key {
	k.listed()
	return nil
}

func asking(words string) query { return query{wanted: wanted{words: words, limit: 1}} }

func TestQueriesThatWaitShareOneSearchThatBeginsAfterAllHaveAsked(t *testing.T) {
	searches := 0
	i := searched(t, func() { searches++ })
	i.searching <- struct{}{}
	b := i.join(asking("home"))
	for _, words := range []string{"home", "other", "home"} {
		if i.join(asking(words)) != b {
			t.Errorf("%q is not searched for together with the others", words)
		}
	}
	<-i.searching
	<-b.done
	if b.err != nil || b.lists[asking("home").wanted].Total != 1 || b.lists[asking("other").wanted].Total != 0 || searches != 1 {
		t.Errorf("got %v and %v in %d searches, want one object in one", b.lists, b.err, searches)
	}
}

func TestWhoAsksWhileASearchGoesOnWaitsForTheNextOne(t *testing.T) {
	begun, release := make(chan struct{}), make(chan struct{})
	i := searched(t, func() {
		begun <- struct{}{}
		<-release
	})
	first := i.join(asking("home"))
	<-begun
	later := i.join(asking("home"))
	if later == first {
		t.Error("it gets what was found before it asked")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := i.list(ctx, asking("home")); !errors.Is(err, context.Canceled) {
		t.Errorf("who leaves gets %v, want %v", err, context.Canceled)
	}
	release <- struct{}{}
	<-begun
	release <- struct{}{}
	<-later.done
}

func TestThoseWhoWaitForASearchThatFailsAreTold(t *testing.T) {
	fails := true
	i := searched(t, func() {
		if fails {
			panic("no")
		}
	})
	if _, err := i.list(t.Context(), asking("home")); err == nil {
		t.Error("a search that panicked has no error")
	}
	fails = false
	if list, err := i.list(t.Context(), asking("home")); err != nil || list.Total != 1 {
		t.Errorf("the next search: %v and %v", list, err)
	}
}

func TestMoreSearchesThanFitTogetherAreAllDone(t *testing.T) {
	i := searched(t, func() {})
	i.searching <- struct{}{}
	var batches []*batch
	for n := range maxTogether + 5 {
		batches = append(batches, i.join(asking(fmt.Sprint(n))))
	}
	<-i.searching
	for n, b := range batches {
		<-b.done
		if _, found := b.lists[asking(fmt.Sprint(n)).wanted]; !found {
			t.Errorf("%d was not searched for", n)
		}
	}
	if sizes := []int{len(batches[0].lists), len(batches[maxTogether].lists)}; !slices.Equal(sizes, []int{maxTogether, 5}) {
		t.Errorf("%v are searched for together", sizes)
	}
}
