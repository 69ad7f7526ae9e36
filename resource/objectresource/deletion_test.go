package objectresource_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/context/finalizerskeptcontext"
	"github.com/operatorkit/operatorkit/context/requeuecontext"
	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/resource/objectresource"
)

// deletionOf processes the deletion of a primary and tells whether its finalizer is kept.
func (k *kit) deletionOf(r *resource, p primary) (kept bool) {
	k.t.Helper()
	ctx := finalizerskeptcontext.NewContext(requeuecontext.NewContext(k.t.Context()))
	if err := framework.ProcessDelete(ctx, p, []framework.Resource{r}); err != nil {
		k.t.Fatal(err)
	}
	kept = finalizerskeptcontext.IsKept(ctx)
	if _, again := requeuecontext.After(ctx); again != kept {
		k.t.Errorf("finalizer kept: %t, but another look asked for: %t", kept, again)
	}
	return kept
}

func TestADeletionDeletesEverythingThatWasCreated(t *testing.T) {
	k := newKit(t)
	p := k.primary("home")
	desired := just(k.data("a", nil), k.data("b", nil), k.secret(nil))
	r := k.resource(func() []client.Object { return desired() })
	k.update(r, p)
	desired = just(k.data("b", nil)) // a new version of the operator desires less, before it ever ran

	before := k.faults.Count()
	for range 2 {
		if k.deletionOf(r, p) {
			t.Error("the finalizer is kept without need")
		}
	}
	if n := k.faults.Count() - before; n != 3 {
		t.Errorf("the deletion took %d writes, want one for each object", n)
	}
	for _, name := range []string{"a", "b"} {
		if _, exists := k.configMap(name); exists {
			t.Errorf("%s is still there", name)
		}
	}
}

func TestDesiredIsNotCalledForAPrimaryThatIsBeingDeleted(t *testing.T) {
	k := newKit(t)
	p := k.primary("home")
	k.update(k.resource(just(k.data("a", nil))), p)
	r := k.resource(nil, func(c *config) {
		c.Desired = func(context.Context, primary) ([]client.Object, error) {
			return nil, errors.New("can't be told any more")
		}
	})
	now := metav1.Now()
	p.DeletionTimestamp = &now
	k.deletionOf(r, p)
	if _, exists := k.configMap("a"); exists {
		t.Error("the object is still there")
	}
	k.wantPlan(k.resource(just(k.data("a", nil))), p)
}

func TestADeletionCanWaitForObjectsToBeGone(t *testing.T) {
	k := newKit(t)
	p := k.primary("home")
	held := k.data("a", nil)
	held.Finalizers = []string{"example.com/hold"}
	r := k.resource(just(held), func(c *config) { c.WaitForDeletion = true })
	k.update(r, p)

	before := k.faults.Count()
	for range 2 {
		if !k.deletionOf(r, p) {
			t.Error("the finalizer goes before the objects")
		}
	}
	if n := k.faults.Count() - before; n != 1 {
		t.Errorf("the object was deleted %d times, want once", n)
	}
	k.patch(k.meta("a"), `{"metadata":{"finalizers":null}}`)
	if k.deletionOf(r, p) {
		t.Error("the finalizer is kept although all objects are gone")
	}
}

func TestADesiredObjectThatIsBeingDeletedIsWaitedFor(t *testing.T) {
	k := newKit(t)
	p := k.primary("home")
	held := k.data("a", map[string]string{"x": "1"})
	held.Finalizers = []string{"example.com/hold"}
	r := k.resource(func() []client.Object { return just(held)() })
	k.update(r, p)
	if err := k.user.Delete(t.Context(), k.meta("a")); err != nil {
		t.Fatal(err)
	}

	held.Data["x"] = "2"
	ctx := requeuecontext.NewContext(t.Context())
	before := k.faults.Count()
	if err := framework.ProcessUpdate(ctx, p, []framework.Resource{r}); err != nil {
		t.Fatal(err)
	}
	if _, again := requeuecontext.After(ctx); !again || k.faults.Count() != before {
		t.Errorf("another look asked for: %t, writes: %d; want one, and no write", again, k.faults.Count()-before)
	}
	k.patch(k.meta("a"), `{"metadata":{"finalizers":null}}`)
	k.update(r, p)
	if a, exists := k.configMap("a"); !exists || a.Data["x"] != "2" {
		t.Errorf("the object was not created anew: %v", a)
	}
}

func TestDependentsAreDeletedInTheBackgroundUnlessToldOtherwise(t *testing.T) {
	for _, tc := range []struct {
		given, want metav1.DeletionPropagation
	}{
		{given: "", want: metav1.DeletePropagationBackground},
		{given: metav1.DeletePropagationForeground, want: metav1.DeletePropagationForeground},
		{given: metav1.DeletePropagationOrphan, want: metav1.DeletePropagationOrphan},
	} {
		t.Run(string(tc.want), func(t *testing.T) {
			k := newKit(t)
			p := k.primary("home")
			r := k.resource(just(k.data("a", nil)), func(c *config) { c.Propagation = tc.given })
			k.update(r, p)
			a, _ := k.configMap("a")
			k.deletionOf(r, p)

			writes := k.faults.Writes()
			var got metav1.DeleteOptions
			if err := json.Unmarshal(writes[len(writes)-1].Body, &got); err != nil {
				t.Fatal(err)
			}
			got.TypeMeta = metav1.TypeMeta{}
			want := metav1.DeleteOptions{PropagationPolicy: &tc.want, Preconditions: &metav1.Preconditions{UID: &a.UID, ResourceVersion: &a.ResourceVersion}}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestObjectsOfOtherNamespacesAndOfNone(t *testing.T) {
	k := newKit(t)
	p := k.primary("home")
	server := operatortest.Start(t)
	elsewhere := server.Namespace(t)
	other := k.data("a", nil)
	other.Namespace = elsewhere
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: k.namespace + "-role"}}
	everywhere := func(c *config) { c.Namespaces = func(primary) []string { return []string{metav1.NamespaceAll} } }
	r := k.resource(just(other, role), everywhere)
	k.update(r, p)
	k.wantQuiet(r, p)

	for _, o := range []client.Object{other, role} {
		got, exists := read(k, o.DeepCopyObject().(client.Object))
		if !exists || len(got.GetOwnerReferences()) != 0 || got.GetLabels()[objectresource.OwnerLabel] == "" {
			t.Errorf("%T: exists %t, owner references %v: want the label alone", o, exists, got.GetOwnerReferences())
		}
	}
	k.deletionOf(r, p)
	for _, o := range []client.Object{other, role} {
		if _, exists := read(k, o.DeepCopyObject().(client.Object)); exists {
			t.Errorf("the %T is still there", o)
		}
	}
}

func TestAPrimaryWithoutANamespaceOwnsObjectsAnywhere(t *testing.T) {
	k := newKit(t)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: k.namespace}}
	if _, exists := read(k, namespace); !exists {
		t.Fatal("the namespace is gone")
	}
	r, err := objectresource.New(objectresource.Config[*corev1.Namespace]{
		Name: "children", Client: k.client, Logger: k.logger(), Kinds: []client.Object{&corev1.ConfigMap{}},
		Desired: func(context.Context, *corev1.Namespace) ([]client.Object, error) {
			return just(k.data("a", nil))(), nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := framework.ProcessUpdate(t.Context(), namespace, []framework.Resource{r}); err != nil {
		t.Fatal(err)
	}
	a, _ := k.configMap("a")
	if !metav1.IsControlledBy(a, namespace) {
		t.Errorf("owner references are %v, want the primary", a.OwnerReferences)
	}
	keys := objectresource.OwnerMap(corev1.SchemeGroupVersion.WithKind("Namespace").GroupKind())(t.Context(), a)
	if diff := cmp.Diff([]client.ObjectKey{{Name: k.namespace}}, keys); diff != "" {
		t.Error(diff)
	}
	if err := framework.ProcessDelete(t.Context(), namespace, []framework.Resource{r}); err != nil {
		t.Fatal(err)
	}
	if _, exists := k.configMap("a"); exists {
		t.Error("the object is still there")
	}
}
