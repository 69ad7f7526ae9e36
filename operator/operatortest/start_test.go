package operatortest_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operatorkit/operatorkit/operator/operatortest"
)

func TestTestsShareAControlPlaneEachInItsNamespace(t *testing.T) {
	first, second := operatortest.Start(t), operatortest.Start(t)
	if first.Kubeconfig() != second.Kubeconfig() {
		t.Errorf("two control planes: %s and %s", first.Kubeconfig(), second.Kubeconfig())
	}
	one, other := first.Namespace(t), second.Namespace(t)
	if one == other {
		t.Fatalf("both have namespace %s", one)
	}
	client := newClient(t, first.RESTConfig())
	createConfigMap(t, client, one, "settings")
	_, err := client.CoreV1().ConfigMaps(other).Get(t.Context(), "settings", metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("the ConfigMap of %s is in %s, too: %v", one, other, err)
	}
}

func TestNamespaceIsDeletedWhenItsTestEnds(t *testing.T) {
	t.Parallel()
	kube := operatortest.Start(t)
	client := newClient(t, kube.RESTConfig())
	var name string
	t.Run("a test", func(t *testing.T) {
		name = kube.Namespace(t)
		createConfigMap(t, client, name, "settings")
	})
	namespace, err := client.CoreV1().Namespaces().Get(t.Context(), name, metav1.GetOptions{})
	if err == nil && namespace.Status.Phase != corev1.NamespaceTerminating {
		t.Errorf("namespace %s is %s", name, namespace.Status.Phase)
	}
	operatortest.Eventually(t, "namespace "+name+" is gone", func() bool {
		_, err := client.CoreV1().Namespaces().Get(t.Context(), name, metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
}

func TestASharedControlPlaneIsNobodysToEnd(t *testing.T) {
	kube := operatortest.Start(t)
	for name, end := range map[string]func() error{
		"Stop":          func() error { return kube.Stop(t.Context()) },
		"Restart":       func() error { return kube.Restart(t.Context()) },
		"KillAPIServer": kube.KillAPIServer,
		"KillEtcd":      kube.KillEtcd,
	} {
		if err := end(); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
