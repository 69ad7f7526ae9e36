package informer_test

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/operator/operatortest"
)

// panicking is a transport that panics in its first patch.
type panicking struct {
	http.RoundTripper
	once *sync.Once
}

func (p panicking) WrappedRoundTripper() http.RoundTripper { return p.RoundTripper }

func (p panicking) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodPatch {
		p.once.Do(func() { panic("in a transport") })
	}
	return p.RoundTripper.RoundTrip(r)
}

func TestR4AWriteInWhichATransportPanicsKeepsNoLaterChangeFromItsAuthor(t *testing.T) {
	instance, namespace := namespaceOf(t)
	writes, user := &informer.Writes{}, operatortest.NewClient(t, instance.RESTConfig(), nil)
	source := follow(t, configMapConfig(t, writes.Client(operatortest.NewClient(t, instance.RESTConfig(), nil)), namespace))
	writing := instance.RESTConfig()
	writing.Wrap(func(next http.RoundTripper) http.RoundTripper { return panicking{next, &sync.Once{}} })
	writing.Wrap(writes.Transport)
	writer := operatortest.NewClient(t, writing, nil)

	author := &informer.Author{Framework: "f", Key: informer.Key{Name: "primary"}}
	var mu sync.Mutex
	var woken []string
	source.Subscribe(func(e informer.Event) {
		e.Wake("f", author.Key, func() {
			mu.Lock()
			defer mu.Unlock()
			woken = append(woken, e.Object.(client.Object).GetLabels()["test"])
		})
	})
	wakes := func(value string) func() bool {
		return func() bool {
			mu.Lock()
			defer mu.Unlock()
			return slices.Contains(woken, value)
		}
	}

	obj := named(namespace, "x")
	create(t, user, obj)
	source.await(informer.Added, "x")
	ctx := context.WithValue(t.Context(), informer.AuthorKey, author)
	write := func() (panicked bool) {
		defer func() { panicked = recover() != nil }()
		written := obj.DeepCopy()
		written.Labels = map[string]string{"test": "own"}
		if err := writer.Patch(ctx, written, client.MergeFromWithOptions(obj, client.MergeFromWithOptimisticLock{})); err != nil {
			t.Error(err)
		}
		return false
	}
	if !write() || write() {
		t.Fatal("the first write has to panic, and the next one to be carried out")
	}
	label(t, user, obj, "later")
	operatortest.Eventually(t, "the change of somebody else wakes who wrote before", wakes("later"))
	if wakes("own")() {
		t.Error("the own write has woken")
	}
}
