package ring_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/operatorkit/operatorkit/operator/internal/ring"
	"github.com/operatorkit/operatorkit/operator/operatortest"
)

// TestAnAPIServerFiltersBySelectorsOrIgnoresThem shows what a replica gets by lists, streamed lists and watches: exactly what HashOf puts
// into its spans, where the API server filters, and everything where it does not. Who filters again has the same in both cases.
func TestAnAPIServerFiltersBySelectorsOrIgnoresThem(t *testing.T) {
	if testing.Short() {
		t.Skip("left to make test-all: it starts control planes with and without the feature")
	}
	for _, filters := range []bool{true, false} {
		t.Run("ShardedListAndWatch="+strconv.FormatBool(filters), func(t *testing.T) {
			instance := operatortest.Start(t, operatortest.WithConfig(operatortest.Config{
				APIServerFlags: []string{"--feature-gates=ShardedListAndWatch=" + strconv.FormatBool(filters)},
			}))
			core, err := corev1client.NewForConfig(instance.RESTConfig())
			if err != nil {
				t.Fatal(err)
			}
			s := &server{t: t, core: core, filters: filters}
			for range 4 {
				s.namespaces = append(s.namespaces, instance.Namespace(t))
			}
			s.create("first")
			middle := ring.Hash(1) << 63
			spans := [][]ring.Span{
				{{First: 0, Last: middle - 1}}, {{First: middle, Last: ring.MaxHash}}, {{First: 0, Last: middle / 2}, {First: middle, Last: middle + middle/2}},
			}
			for _, namespace := range s.namespaces {
				h := ring.HashOf(namespace)
				spans = append(spans, []ring.Span{{First: h, Last: h}})
			}
			for field, hash := range map[string]func(*corev1.ConfigMap) ring.Hash{
				ring.FieldNamespace: func(o *corev1.ConfigMap) ring.Hash { return ring.HashOf(o.Namespace) },
				ring.FieldUID:       func(o *corev1.ConfigMap) ring.Hash { return ring.HashOf(string(o.UID)) },
			} {
				for i, owned := range spans {
					t.Run(fmt.Sprintf("%s %v", field, owned), func(t *testing.T) {
						s.compare(t, field, hash, owned, fmt.Sprintf("later-%d-%s", i, field[len(field)-3:]))
					})
				}
			}
		})
	}
}

// server is an API server with ConfigMaps.
type server struct {
	t          *testing.T
	core       *corev1client.CoreV1Client
	namespaces []string
	filters    bool
}

const mark = "test=ring"

func (s *server) create(name string) {
	s.t.Helper()
	for _, namespace := range s.namespaces {
		_, err := s.core.ConfigMaps(namespace).Create(context.Background(), &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"test": "ring"}},
		}, metav1.CreateOptions{})
		if err != nil {
			s.t.Fatal(err)
		}
	}
}

// compare looks at what a replica with these spans is sent, before and after objects are made.
func (s *server) compare(t *testing.T, field string, hash func(*corev1.ConfigMap) ring.Hash, owned []ring.Span, later string) {
	all := s.core.ConfigMaps(metav1.NamespaceAll)
	owns := func(o *corev1.ConfigMap) bool {
		return slices.ContainsFunc(owned, func(span ring.Span) bool { return span.Contains(hash(o)) })
	}
	wanted := func() (keys []string) {
		list, err := all.List(t.Context(), metav1.ListOptions{LabelSelector: mark})
		if err != nil {
			t.Fatal(err)
		}
		for i := range list.Items {
			if owns(&list.Items[i]) || !s.filters {
				keys = append(keys, list.Items[i].Namespace+"/"+list.Items[i].Name)
			}
		}
		slices.Sort(keys)
		return keys
	}
	before := wanted()

	options := metav1.ListOptions{LabelSelector: mark, ShardSelector: ring.Selector(field, owned)}
	list, err := all.List(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	var listed []string
	for _, o := range list.Items {
		listed = append(listed, o.Namespace+"/"+o.Name)
	}
	slices.Sort(listed)
	if diff := cmp.Diff(before, listed); diff != "" {
		t.Errorf("a list\n%s", diff)
	}
	if told := list.ShardInfo != nil; told != s.filters {
		t.Errorf("the API server says that it filters: %t", told)
	}

	initial := true
	options.SendInitialEvents, options.AllowWatchBookmarks, options.ResourceVersionMatch = &initial, true, metav1.ResourceVersionMatchNotOlderThan
	w, err := all.Watch(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	streamed := s.take(t, w, len(before))
	if diff := cmp.Diff(before, streamed); diff != "" {
		t.Errorf("a streamed list\n%s", diff)
	}
	s.create(later)
	after := wanted()
	watched := s.take(t, w, len(after)-len(before))
	if diff := cmp.Diff(after, slices.Sorted(slices.Values(append(streamed, watched...)))); diff != "" {
		t.Errorf("a watch\n%s", diff)
	}
}

// take returns the keys of the next n objects of a watch, in order.
func (s *server) take(t *testing.T, w watch.Interface, n int) (keys []string) {
	t.Helper()
	for len(keys) < n {
		select {
		case e, open := <-w.ResultChan():
			if !open {
				t.Fatal("the watch has ended")
			}
			if o, ok := e.Object.(*corev1.ConfigMap); ok && e.Type == watch.Added {
				keys = append(keys, o.Namespace+"/"+o.Name)
			}
		case <-t.Context().Done():
			t.Fatalf("the watch has shown %q, and %d more are missing", keys, n-len(keys))
		}
	}
	slices.Sort(keys)
	return keys
}
