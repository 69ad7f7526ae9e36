package framework

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/operatorkit/operatorkit/informer"
)

func TestTombstonesForgetThatTheDeletionOfAnObjectWasProcessedWithIt(t *testing.T) {
	key := informer.Key{Namespace: "default", Name: "a"}
	object := func(uid types.UID) tombstone {
		return tombstone{obj: &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, UID: uid}}}
	}
	left := func(m *tombstones) (n int) {
		for range m.processed.Values {
			n++
		}
		return n
	}

	// Its deletion is processed after its end was seen, because it was there, or because another one took the finalizer off.
	m := &tombstones{}
	m.add(key, object("1"))
	m.markProcessed(key, object("1").obj)
	m.drop(key, object("1"))
	if n := left(m); n != 0 {
		t.Errorf("%d entries are left of an object that was let go, want none", n)
	}

	// The next object of the name is not the one that is dropped.
	m.add(key, object("1"))
	m.markProcessed(key, object("2").obj)
	m.drop(key, object("1"))
	if n := left(m); n != 1 {
		t.Errorf("%d entries are left of the next object, want its own", n)
	}
}
