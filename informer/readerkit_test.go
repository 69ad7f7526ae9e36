package informer_test

import (
	"fmt"
	"testing"

	"github.com/giantswarm/micrologger"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/informer"
)

// fed returns a source that holds these objects and nothing else.
func fed(t testing.TB, config informer.KubernetesConfig, objs ...client.Object) *informer.Kubernetes {
	t.Helper()
	source := newFed(t, config)
	for _, namespace := range config.Namespaces {
		source.Fed().Replace(namespace, nil)
	}
	if len(config.Namespaces) == 0 {
		source.Fed().Replace("", nil)
	}
	for _, obj := range objs {
		source.Fed().Set(item(obj))
	}
	return source
}

// newFed returns a source of ConfigMaps to which tests feed objects.
func newFed(t testing.TB, config informer.KubernetesConfig) *informer.Kubernetes {
	t.Helper()
	c, err := client.NewWithWatch(&rest.Config{}, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	logger, err := micrologger.New(micrologger.Config{IOWriter: t.Output()})
	if err != nil {
		t.Fatal(err)
	}
	config.Client, config.Logger = c, logger
	if config.Object == nil {
		config.Object = &corev1.ConfigMap{}
	}
	source, err := informer.NewKubernetes(config)
	if err != nil {
		t.Fatal(err)
	}
	return source
}

func item(obj client.Object) informer.Item {
	return informer.Item{Key: client.ObjectKeyFromObject(obj), Object: obj}
}

func key(namespace, name string) client.ObjectKey {
	return client.ObjectKey{Namespace: namespace, Name: name}
}

func labelled(namespace, name, tier string) *corev1.ConfigMap {
	obj := named(namespace, name)
	obj.Labels = map[string]string{"tier": tier}
	return obj
}

// crowd returns objects in namespaces.
func crowd(namespaces, each int) []client.Object {
	var objs []client.Object
	for n := range namespaces {
		for i := range each {
			objs = append(objs, named(fmt.Sprintf("namespace-%d", n), fmt.Sprintf("x-%d", i)))
		}
	}
	return objs
}

func partialConfigMap() client.Object { return forms()["metadata only"] }

func untypedConfigMap() client.Object { return forms()["unstructured"] }

// listOf returns an empty list of objects in the form of obj.
func listOf(obj client.Object) client.ObjectList {
	gvk := corev1.SchemeGroupVersion.WithKind("ConfigMapList")
	switch obj.(type) {
	case *unstructured.Unstructured:
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(gvk)
		return list
	case *metav1.PartialObjectMetadata:
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(gvk)
		return list
	}
	return &corev1.ConfigMapList{}
}

// elements returns the objects of a list, not copies.
func elements(t testing.TB, list client.ObjectList) []client.Object {
	t.Helper()
	var objs []client.Object
	err := meta.EachListItem(list, func(o runtime.Object) error {
		objs = append(objs, o.(client.Object))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return objs
}

func first(t testing.TB, list client.ObjectList) client.Object {
	t.Helper()
	return elements(t, list)[0]
}

func names(t testing.TB, list client.ObjectList) []string {
	t.Helper()
	found := []string{}
	for _, o := range elements(t, list) {
		found = append(found, o.GetNamespace()+"/"+o.GetName())
	}
	return found
}

// disguised is a ConfigMap of another Go type.
type disguised struct{ *corev1.ConfigMap }

// unknownList is a list of a type that no scheme knows.
type unknownList struct{ corev1.ConfigMapList }
