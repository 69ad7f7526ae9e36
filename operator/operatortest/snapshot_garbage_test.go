package operatortest

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// In these tests a finalizer of the test's own keeps what the garbage collector would
// take away, for as long as the test looks at it.
func TestAStateThatTheGarbageCollectorChangesIsPassing(t *testing.T) {
	server := Start(t)
	ownedBy := func(owner types.UID, block bool) metav1.ObjectMeta {
		return metav1.ObjectMeta{
			Name:       "child",
			Finalizers: []string{"test/hold"},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "v1", Kind: "ConfigMap", Name: "owner", UID: owner, BlockOwnerDeletion: &block,
			}},
		}
	}
	for _, test := range []struct {
		name  string
		child func(owner types.UID) metav1.ObjectMeta
		want  string
		drop  bool
	}{
		{
			name:  "an owner that is there",
			child: func(owner types.UID) metav1.ObjectMeta { return ownedBy(owner, false) },
		},
		{
			name:  "an owner that is gone, one of the same name having come after it",
			child: func(types.UID) metav1.ObjectMeta { return ownedBy("11111111-1111-4111-8111-111111111111", false) },
			want:  "Secret child is still there, although its owner ConfigMap owner is gone",
		},
		{
			name:  "an owner that is deleted in the foreground",
			child: func(owner types.UID) metav1.ObjectMeta { return ownedBy(owner, true) },
			want:  "still ", // being deleted; or there without its owner, should the collector be so quick
			drop:  true,
		},
		{
			name: "an owner of a kind that is not known",
			child: func(owner types.UID) metav1.ObjectMeta {
				meta := ownedBy(owner, false)
				meta.OwnerReferences[0].APIVersion = "unknown.example.com/v1"
				return meta
			},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			scenario := Scenario{Config: server.RESTConfig(), Objects: []client.Object{&corev1.ConfigMap{}, &corev1.Secret{}}}.withDefaults()
			s, err := newSweep(scenario)
			if err != nil {
				t.Fatal(err)
			}
			namespace := server.Namespace(t)
			t.Cleanup(s.connections.CloseIdleConnections)
			t.Cleanup(func() {
				if err := s.snapshots.dropFinalizers(context.WithoutCancel(t.Context()), namespace); err != nil {
					t.Error(err)
				}
			})

			owner := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "owner", Namespace: namespace}}
			if err := s.user.Create(t.Context(), owner); err != nil {
				t.Fatal(err)
			}
			child := &corev1.Secret{ObjectMeta: test.child(owner.UID)}
			child.Namespace = namespace
			if err := s.user.Create(t.Context(), child); err != nil {
				t.Fatal(err)
			}
			if test.drop {
				if err := s.user.Delete(t.Context(), owner, client.PropagationPolicy(metav1.DeletePropagationForeground)); err != nil {
					t.Fatal(err)
				}
			}

			state, err := s.snapshots.take(t.Context(), namespace)
			if err != nil {
				t.Fatal(err)
			}
			switch {
			case test.want == "" && state.passing != nil:
				t.Errorf("the state is passing: %v", state.passing)
			case test.want != "" && (state.passing == nil || !strings.Contains(state.passing.Error(), test.want)):
				t.Errorf("the state is passing: %v, want %q", state.passing, test.want)
			}
		})
	}
}

func TestWhatComesWithEachNamespaceIsNotPartOfAState(t *testing.T) {
	server := Start(t)
	s, err := newSweep(Scenario{Config: server.RESTConfig(), Objects: []client.Object{&corev1.ConfigMap{}, &corev1.ServiceAccount{}}}.withDefaults())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.connections.CloseIdleConnections)
	namespace := server.Namespace(t)
	for _, object := range []client.Object{
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "kube-root-ca.crt", Namespace: namespace}},
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default", Namespace: namespace}},
	} {
		if err := s.user.Create(t.Context(), object); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	}
	state, err := s.snapshots.take(t.Context(), namespace)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]any{}, state.objects); diff != "" {
		t.Errorf("state (-want +got):\n%s", diff)
	}
}
