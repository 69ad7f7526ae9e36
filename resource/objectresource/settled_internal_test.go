package objectresource

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/giantswarm/micrologger"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/resource/internal/serverside"
)

// numbered is one of many config maps.
func numbered(n int) Key {
	return Key{GVK: corev1.SchemeGroupVersion.WithKind("ConfigMap"), Namespace: "default", Name: fmt.Sprint(n)}
}

func TestSettledObjectsThatNobodyLooksAtAnyMoreAreForgotten(t *testing.T) {
	s := newSettled()
	used := numbered(0)
	s.remember(used, serverside.Pair{1})
	for n := range maxSettled + 10 {
		s.remember(numbered(n+1), serverside.Pair{2})
		if !s.is(used, serverside.Pair{1}) {
			t.Fatalf("after %d others, one that is looked at is forgotten", n+1)
		}
	}
	if got := s.pairs.Len(); got != maxSettled {
		t.Errorf("%d objects are remembered, want %d", got, maxSettled)
	}
	if s.is(numbered(1), serverside.Pair{2}) {
		t.Error("the one that nobody looked at for the longest time is remembered")
	}
}

// conflicting is a client for which every object is newer.
type conflicting struct{ client.Client }

func (conflicting) Delete(context.Context, client.Object, ...client.DeleteOption) error {
	return apierrors.NewConflict(schema.GroupResource{Resource: "configmaps"}, "one", errors.New("it is newer"))
}

func TestConflictingObjectsThatNobodyLooksAtAnyMoreAreForgotten(t *testing.T) {
	logger, err := micrologger.New(micrologger.Config{IOWriter: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(&rest.Config{}, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	made, err := New(Config[*corev1.ConfigMap]{
		Name: "children", Client: conflicting{c}, Logger: logger, Kinds: []client.Object{&corev1.ConfigMap{}},
		Desired: func(context.Context, *corev1.ConfigMap) ([]client.Object, error) { return nil, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	r := made.TypedCRUDResourceOps.(*resource[*corev1.ConfigMap])
	for n := range maxConflicting + 10 {
		key := numbered(n)
		if err := r.remove(t.Context(), deletion(item{key: key, content: key.empty()}), metav1.DeletePropagationBackground); !apierrors.IsConflict(err) {
			t.Fatalf("got %v, want a conflict", err)
		}
	}
	if got := r.conflicts.Len(); got != maxConflicting {
		t.Errorf("%d objects are remembered, want %d", got, maxConflicting)
	}
}
