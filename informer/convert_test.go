package informer_test

import (
	"io"
	"testing"

	"github.com/giantswarm/micrologger"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/operator/operatortest"
)

func TestObjectThatIsNotStoredIsConvertedToTheFormOfTheSource(t *testing.T) {
	c := operatortest.NewClient(t, operatortest.Start(t).RESTConfig(), nil)
	logger, err := micrologger.New(micrologger.Config{IOWriter: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	meta := metav1.ObjectMeta{Namespace: "default", Name: "a", Labels: map[string]string{"color": "red"}}
	kind := metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}
	received := func() *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"k": "v"},
			"metadata": map[string]any{
				"namespace": "default", "name": "a", "labels": map[string]any{"color": "red"},
				"managedFields": []any{map[string]any{"manager": "kubectl"}},
			},
		}}
	}
	trimmed := received()
	unstructured.RemoveNestedField(trimmed.Object, "metadata", "managedFields")
	untyped := &unstructured.Unstructured{}
	untyped.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))

	for name, test := range map[string]struct {
		config informer.KubernetesConfig
		want   client.Object
	}{
		"typed":         {informer.KubernetesConfig{Object: &corev1.ConfigMap{}}, &corev1.ConfigMap{TypeMeta: kind, ObjectMeta: meta, Data: map[string]string{"k": "v"}}},
		"unstructured":  {informer.KubernetesConfig{Object: untyped}, trimmed},
		"metadata only": {informer.KubernetesConfig{Object: &corev1.ConfigMap{}, MetadataOnly: true}, &metav1.PartialObjectMetadata{TypeMeta: kind, ObjectMeta: meta}},
		"transformed": {informer.KubernetesConfig{Object: &corev1.ConfigMap{}, Transform: func(obj any) (any, error) {
			cm := obj.(*corev1.ConfigMap)
			cm.Data, cm.ManagedFields = nil, nil
			return cm, nil
		}}, &corev1.ConfigMap{TypeMeta: kind, ObjectMeta: meta}},
	} {
		t.Run(name, func(t *testing.T) {
			test.config.Client, test.config.Logger = c, logger
			source, err := informer.NewKubernetes(test.config)
			if err != nil {
				t.Fatal(err)
			}
			got, err := source.Convert(received())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("object (-want +got):\n%s", diff)
			}
		})
	}

	for name, test := range map[string]struct {
		namespaces []string
		color      string
		want       bool
	}{
		"all":                 {want: true},
		"its namespace":       {namespaces: []string{"other", "default"}, want: true},
		"another namespace":   {namespaces: []string{"other"}},
		"its label":           {color: "red", want: true},
		"another label":       {color: "blue"},
		"its label elsewhere": {color: "red", namespaces: []string{"other"}},
	} {
		t.Run(name, func(t *testing.T) {
			config := informer.KubernetesConfig{Client: c, Logger: logger, Object: &corev1.ConfigMap{}, Namespaces: test.namespaces}
			if test.color != "" {
				config.LabelSelector = labels.SelectorFromSet(labels.Set{"color": test.color})
			}
			source, err := informer.NewKubernetes(config)
			if err != nil {
				t.Fatal(err)
			}
			if got := source.Selects(received()); got != test.want {
				t.Errorf("Selects() = %t", got)
			}
		})
	}
}

func TestTheAPIServerIsAskedWhetherASourceSelectsAnObject(t *testing.T) {
	instance, namespace := namespaceOf(t)
	c := operatortest.NewClient(t, instance.RESTConfig(), nil)
	obj := named(namespace, "a")
	obj.Labels = map[string]string{"app": "shop"}
	create(t, c, obj)
	dropLabels := func(o any) (any, error) {
		o.(client.Object).SetLabels(nil)
		return o, nil
	}
	for name, test := range map[string]struct {
		change func(*informer.KubernetesConfig)
		want   bool
	}{
		"no selector":       {func(*informer.KubernetesConfig) {}, true},
		"another namespace": {func(k *informer.KubernetesConfig) { k.Namespaces = []string{"default"} }, false},
		"its label":         {func(k *informer.KubernetesConfig) { k.LabelSelector = labels.Set{"app": "shop"}.AsSelector() }, true},
		"a dropped label": {func(k *informer.KubernetesConfig) {
			k.LabelSelector, k.Transform = labels.Set{"app": "shop"}.AsSelector(), dropLabels
		}, true},
		"another label": {func(k *informer.KubernetesConfig) { k.LabelSelector = labels.Set{"app": "bar"}.AsSelector() }, false},
		"its field": {func(k *informer.KubernetesConfig) {
			k.FieldSelector = fields.OneTermEqualSelector("metadata.namespace", namespace)
		}, true},
		"another one's name": {func(k *informer.KubernetesConfig) {
			k.FieldSelector = fields.OneTermEqualSelector("metadata.name", "b")
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			config := configMapConfig(t, c, namespace)
			test.change(&config)
			source, err := informer.NewKubernetes(config)
			if err != nil {
				t.Fatal(err)
			}
			live, exists, err := source.GetLive(t.Context(), client.ObjectKeyFromObject(obj))
			if err != nil || !exists {
				t.Fatalf("GetLive: exists is %t, got error %v", exists, err)
			}
			if got, err := source.SelectsLive(t.Context(), live); got != test.want || err != nil {
				t.Errorf("got %t and error %v, want %t", got, err, test.want)
			}
		})
	}
}
