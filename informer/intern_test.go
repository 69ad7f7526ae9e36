package informer_test

import (
	"fmt"
	"reflect"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/operator/operatortest"
)

// address is where the bytes of a string are.
func address(s string) string { return fmt.Sprint(unsafe.StringData(s)) }

func TestWhatStoredObjectsHaveInCommonIsStoredOnce(t *testing.T) {
	instance, namespace := namespaceOf(t)
	c := operatortest.NewClient(t, instance.RESTConfig(), nil)
	for _, name := range []string{"x", "y"} {
		obj := named(namespace, name)
		obj.Labels = map[string]string{"app": "website", "tier": "front"}
		obj.OwnerReferences = []metav1.OwnerReference{{APIVersion: "example.com/v1", Kind: "Website", Name: "home", UID: "1", Controller: new(true)}}
		create(t, c, obj)
	}
	for name, object := range forms() {
		t.Run(name, func(t *testing.T) {
			config := configMapConfig(t, c, namespace)
			config.Object = object
			f := follow(t, config)
			f.stop()
			shared := map[string][]string{}
			note := func(what, where string) { shared[what] = append(shared[what], where) }
			for _, e := range f.events {
				if e.Key.Name != "x" && e.Key.Name != "y" {
					continue
				}
				obj := e.Object.(client.Object)
				owner := obj.GetOwnerReferences()[0]
				note("namespace", address(obj.GetNamespace()))
				note("owner's name", address(owner.Name))
				for key, value := range obj.GetLabels() {
					note("label "+key, address(key))
					note("label's value "+value, address(value))
				}
				if name != "unstructured" { // which makes its labels and owners at each call
					note("labels", fmt.Sprint(reflect.ValueOf(obj.GetLabels()).Pointer()))
					note("controller", fmt.Sprint(owner.Controller))
				}
				note("kind", address(obj.GetObjectKind().GroupVersionKind().Kind))
			}
			for what, where := range shared {
				if len(where) != 2 || where[0] != where[1] {
					t.Errorf("%s is at %v", what, where)
				}
			}
		})
	}
}

func TestAnswersShareNothingWithTheStore(t *testing.T) {
	instance, namespace := namespaceOf(t)
	c := operatortest.NewClient(t, instance.RESTConfig(), nil)
	obj := named(namespace, "x")
	obj.Labels = map[string]string{"app": "website"}
	create(t, c, obj)
	f := follow(t, configMapConfig(t, c, namespace))

	live, _, err := f.GetLive(t.Context(), client.ObjectKeyFromObject(obj))
	if err != nil {
		t.Fatal(err)
	}
	patched, err := f.AddFinalizer(t.Context(), stored(t, f, obj), ours)
	if err != nil {
		t.Fatal(err)
	}
	for _, answer := range []any{live, patched, stored(t, f, obj)} {
		answer.(client.Object).GetLabels()["app"] = "spoiled"
	}
	if err := f.RemoveFinalizer(t.Context(), patched, ours); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(obj.Labels, stored(t, f, obj).(client.Object).GetLabels()); diff != "" {
		t.Errorf("stored labels (-want +got):\n%s", diff)
	}
}

// TestTransformNeverSeesWhatIsShared: a transform may change the object it is given.
func TestTransformNeverSeesWhatIsShared(t *testing.T) {
	instance, namespace := namespaceOf(t)
	c := operatortest.NewClient(t, instance.RESTConfig(), nil)
	for _, name := range []string{"x", "y"} {
		obj := named(namespace, name)
		obj.Labels = map[string]string{"app": "website"}
		create(t, c, obj)
	}
	config := configMapConfig(t, c, namespace)
	config.Transform = func(obj any) (any, error) {
		o := obj.(*corev1.ConfigMap)
		if o.Name == "y" {
			o.Labels["only"] = "y"
		}
		return o, nil
	}
	f := follow(t, config)
	got, _, _ := f.Get(informer.Key{Namespace: namespace, Name: "x"})
	if diff := cmp.Diff(map[string]string{"app": "website"}, got.(client.Object).GetLabels()); diff != "" {
		t.Errorf("labels of x (-want +got):\n%s", diff)
	}
	got, _, _ = f.Get(informer.Key{Namespace: namespace, Name: "y"})
	if diff := cmp.Diff(map[string]string{"app": "website", "only": "y"}, got.(client.Object).GetLabels()); diff != "" {
		t.Errorf("labels of y (-want +got):\n%s", diff)
	}
}
