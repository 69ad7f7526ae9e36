package operator_test

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/operatortest"
)

func TestR11OwnWritesWakeNobodyAndThoseOfOthersDo(t *testing.T) {
	instance := operatortest.Start(t)
	namespace := instance.Namespace(t)
	user := operatortest.NewClient(t, instance.RESTConfig(), nil)
	g := newGardener(t, instance, namespace, "gardener")
	const beds = 20
	for n := range beds {
		if err := user.Create(t.Context(), bed(namespace, fmt.Sprint("bed-", n), map[string]string{fmt.Sprint("rose-", n): "gardener"})); err != nil {
			t.Fatal(err)
		}
	}
	operatortest.Eventually(t, "all have their plant", func() bool { return len(g.owned.Keys()) == beds && g.looks.Load() >= beds })
	// A later change goes through the same watches and the same queue, behind the effects of the
	// earlier ones.
	last := bed(namespace, "last", map[string]string{"oak": "gardener"})
	if err := user.Create(t.Context(), last); err != nil {
		t.Fatal(err)
	}
	exists := func(name string) bool {
		return user.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, &corev1.ConfigMap{}) == nil
	}
	operatortest.Eventually(t, "the last has its plant", func() bool { return exists("oak") })
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"data":{"n":"1"}}`))
	if err := user.Patch(t.Context(), configMap(namespace, "oak"), patch); err != nil {
		t.Fatal(err)
	}
	operatortest.Eventually(t, "the change of another is looked at", func() bool { return g.looks.Load() >= beds+2 })
	if looks := g.looks.Load(); looks != beds+2 {
		t.Errorf("%d looks at %d beds and one change", looks, beds+1)
	}
}

func TestR11WhatIsWrittenIsReadAtOnce(t *testing.T) {
	instance := operatortest.Start(t)
	namespace := instance.Namespace(t)
	d, err := operator.NewDependencies(operator.DependenciesConfig{
		Name: "writer", RESTConfig: instance.RESTConfig(), Scheme: clientgoscheme.Scheme, Logger: quiet(t), Namespaces: []string{namespace},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	untyped := &unstructured.Unstructured{}
	untyped.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	metadata := &metav1.PartialObjectMetadata{}
	metadata.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	sources := map[string]*informer.Kubernetes{}
	for name, object := range map[string]client.Object{"typed": &corev1.ConfigMap{}, "unstructured": untyped, "metadata": metadata} {
		if sources[name], err = d.NewSource(object); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
		go func() { ended <- sources[name].Run(ctx) }()
		t.Cleanup(func() {
			stop()
			must(t, <-ended)
		})
		if err := sources[name].WaitForSync(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	read := func(step string, want *corev1.ConfigMap) {
		t.Helper()
		for name, source := range sources {
			got, exists, err := source.Get(informer.Key{Namespace: namespace, Name: "x"})
			if err != nil || exists != (want != nil) {
				t.Fatalf("after %s the %s source has it: %t, %v", step, name, exists, err)
			}
			if want == nil {
				continue
			}
			if o := got.(client.Object); o.GetResourceVersion() != want.ResourceVersion || o.GetLabels()["step"] != want.Labels["step"] || o.GetManagedFields() != nil {
				t.Errorf("after %s the %s source has version %s with labels %v, want %s and %v", step, name, o.GetResourceVersion(), o.GetLabels(), want.ResourceVersion, want.Labels)
			}
		}
	}
	obj := configMap(namespace, "x")
	obj.Labels = map[string]string{"step": "create"}
	for range 20 {
		obj.ResourceVersion = ""
		must(t, d.Client.Create(t.Context(), obj))
		read("a creation", obj)
		obj.Labels = map[string]string{"step": "update"}
		must(t, d.Client.Update(t.Context(), obj))
		read("an update", obj)
		must(t, d.Client.Patch(t.Context(), obj, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"step":"patch"}}}`))))
		read("a patch", obj)
		alone := metadata.DeepCopy()
		alone.Namespace, alone.Name = namespace, "x"
		must(t, d.Client.Patch(t.Context(), alone, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"step":"metadata"}}}`))))
		obj.ResourceVersion, obj.Labels = alone.ResourceVersion, alone.Labels
		read("a patch of its metadata alone", obj)
		held, err := sources["typed"].AddFinalizer(t.Context(), obj, "example.com/held")
		must(t, err)
		obj = held.(*corev1.ConfigMap)
		read("a finalizer", obj)
		must(t, d.Client.Delete(t.Context(), obj))
		marked, _, _ := sources["metadata"].Get(informer.Key{Namespace: namespace, Name: "x"})
		if marked == nil || marked.(client.Object).GetDeletionTimestamp() == nil {
			t.Fatalf("after a deletion that is held up there is %v", marked)
		}
		must(t, sources["typed"].RemoveFinalizer(t.Context(), obj, "example.com/held"))
		read("the end of its finalizer", nil)
		must(t, d.Client.Create(t.Context(), configMap(namespace, "x")))
		must(t, d.Client.Delete(t.Context(), configMap(namespace, "x")))
		read("a deletion", nil)
		obj = configMap(namespace, "x")
		obj.Labels = map[string]string{"step": "create"}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
