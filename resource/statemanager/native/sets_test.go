package native_test

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// put creates an object of the management cluster, or puts it in the place of the one that is there.
func (w *world) put(obj client.Object) {
	w.t.Helper()
	obj.SetResourceVersion("")
	err := w.client.Create(w.t.Context(), obj)
	if apierrors.IsAlreadyExists(err) {
		err = w.client.Update(w.t.Context(), obj)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// template puts a ServiceTemplate.
func (w *world) template(name string, spec v1alpha1.ServiceTemplateSpec) {
	w.t.Helper()
	w.put(&v1alpha1.ServiceTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}, Spec: spec})
}

// configMap puts a ConfigMap, and secret a Secret.
func (w *world) configMap(name string, data map[string]string) {
	w.t.Helper()
	w.put(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}, Data: data})
}

func (w *world) secret(name string, data map[string]string) {
	w.t.Helper()
	w.put(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}, StringData: data})
}

// service is an entry of a set.
func (w *world) service(name, template string, dependsOn ...string) v1alpha1.ServiceWithValues {
	return v1alpha1.ServiceWithValues{Namespace: w.namespace, Name: name, Template: template, Version: "1", DependsOn: w.dependsOn(dependsOn...)}
}

func (w *world) dependsOn(names ...string) (on []v1alpha1.ServiceDependsOn) {
	for _, name := range names {
		on = append(on, v1alpha1.ServiceDependsOn{Namespace: w.namespace, Name: name})
	}
	return on
}

// set creates a ServiceSet for a cluster, with a finalizer as the framework's.
func (w *world) set(name, cluster string, services ...v1alpha1.ServiceWithValues) {
	w.t.Helper()
	w.put(&v1alpha1.ServiceSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name, Finalizers: []string{"test.operatorkit.io/keep"}},
		Spec:       v1alpha1.ServiceSetSpec{Cluster: cluster, MultiClusterService: name, Services: services},
	})
	w.t.Cleanup(func() {
		key := client.ObjectKey{Namespace: w.namespace, Name: name}
		w.manager.Release(key)
		set := &v1alpha1.ServiceSet{}
		if w.client.Get(context.Background(), key, set) == nil {
			set.Finalizers = nil
			_ = w.client.Update(context.Background(), set)
		}
	})
}

// change changes a set.
func (w *world) change(name string, how func(*v1alpha1.ServiceSet)) {
	w.t.Helper()
	set := w.get(name)
	how(set)
	if err := w.client.Update(w.t.Context(), set); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) get(name string) *v1alpha1.ServiceSet {
	w.t.Helper()
	set := &v1alpha1.ServiceSet{}
	if err := w.client.Get(w.t.Context(), client.ObjectKey{Namespace: w.namespace, Name: name}, set); err != nil {
		w.t.Fatal(err)
	}
	return set
}
