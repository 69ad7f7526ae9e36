package objectresource

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

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
