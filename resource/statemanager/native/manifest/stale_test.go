package manifest_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// lagging reads config maps as they were, or as if they were not there yet.
type lagging struct {
	client.Reader
	was map[string]*unstructured.Unstructured
}

func (l lagging) Get(_ context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	old, ok := l.was[key.Name]
	if !ok {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, key.Name)
	}
	obj.(*unstructured.Unstructured).Object = old.DeepCopy().Object
	return nil
}

func TestWatchThatLagsIsNoDrift(t *testing.T) {
	k := newKit(t)
	k.settle(k.service(files{"a.yaml": configMap("a", "1"), "b.yaml": configMap("b", "1")}))
	old := &unstructured.Unstructured{}
	old.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	old = fetchAs(k, "a", old)
	s := k.service(files{"a.yaml": configMap("a", "2"), "b.yaml": configMap("b", "1")}, mode(v1alpha1.SyncModeContinuousWithDriftDetection))
	k.settle(s)
	result, err := k.carrier.Compute(t.Context(), k.cluster, lagging{was: map[string]*unstructured.Unstructured{"a": old}}, s)
	if err != nil {
		t.Fatal(err)
	}
	k.wants(result.Drift)
	k.wants(result.Changes)
	k.wantsPhase(result, v1alpha1.ServiceStateDeployed)
}
