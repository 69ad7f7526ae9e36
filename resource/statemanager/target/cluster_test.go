package target_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/resource/statemanager/target"
)

func TestAClusterIsReachedByTheKubeconfigOfItsDeployment(t *testing.T) {
	w := newWorld(t, nil)
	cluster := w.connected(w.deploy("prod", administrator(t, w.kube, "first")))

	obj := configMap(w.namespace, "made", user)
	if err := cluster.Client().Create(t.Context(), obj); err != nil {
		t.Fatal(err)
	}
	if err := w.client.Get(t.Context(), client.ObjectKeyFromObject(obj), &corev1.ConfigMap{}); err != nil {
		t.Errorf("the object is not on the cluster: %v", err)
	}
	if v, ok := cluster.Version(); !ok || v.Major != "1" {
		t.Errorf("Version = %v, %t", v, ok)
	}
	c := cluster.Condition()
	if c.Type != target.ConditionReachable || c.Status != metav1.ConditionTrue || c.Reason != string(target.Connected) || c.LastTransitionTime.IsZero() {
		t.Errorf("condition = %+v", c)
	}
}
