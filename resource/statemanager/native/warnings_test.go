package native_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/resource/statemanager/target"
)

func TestWarningsOfAPIServersGoToTheLogger(t *testing.T) {
	w := newPlatform(t)
	w.useEast()
	key := client.ObjectKey{Namespace: w.namespace, Name: "test"}
	cluster, err := w.clusters.Acquire(target.Key{Namespace: w.namespace, Name: "east"}, key)
	if err != nil {
		t.Fatal(err)
	}
	namespace := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": w.namespace}, "spec": map[string]any{"unheard": true},
	}}
	for range 2 {
		_ = cluster.Client().Create(t.Context(), namespace.DeepCopy(), client.FieldValidation(metav1.FieldValidationWarn)) // the second time it is there
	}
	says(t, w.log.String(), "the API server warns: unknown field", "unheard", "cluster "+w.namespace+"/east")
	if n := strings.Count(w.log.String(), "unheard"); n != 1 {
		t.Errorf("it is told %d times", n)
	}
}
