package operatortest_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
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
		held := createConfigMap(t, client, name, "held")
		held.Finalizers = []string{"test.operatorkit.io/nobody-takes-it-off"}
		if _, err := client.CoreV1().ConfigMaps(name).Update(t.Context(), held, metav1.UpdateOptions{}); err != nil {
			t.Error(err)
		}
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

// TestANamespaceIsEmptiedOfKindsThatComeAndGo is for the namespace controller, which asks only for kinds of which there is something: also
// for those that it has just got to know, and for those that were gone meanwhile.
func TestANamespaceIsEmptiedOfKindsThatComeAndGo(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("left to make test-all: it waits long, on a control plane of its own")
	}
	kube := operatortest.Start(t, operatortest.Dedicated())
	client, gadgets := newClient(t, kube.RESTConfig()), gadgetClient(t, kube.RESTConfig(), "v1")
	extensions, err := apiextensions.NewForConfig(kube.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	definitions := extensions.ApiextensionsV1().CustomResourceDefinitions()
	for range 2 {
		kube.InstallCRDs(t, definition("gadgets", "Gadget", "v1"))
		name := kube.Namespace(t)
		createConfigMap(t, client, name, "settings")
		if _, err := gadgets.Namespace(name).Create(t.Context(), gadget("v1"), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := client.CoreV1().Namespaces().Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		operatortest.Eventually(t, "namespace "+name+" is gone", func() bool {
			_, err := client.CoreV1().Namespaces().Get(t.Context(), name, metav1.GetOptions{})
			return apierrors.IsNotFound(err)
		})
		left, err := gadgets.Namespace(name).List(t.Context(), metav1.ListOptions{})
		if err != nil || len(left.Items) > 0 {
			t.Errorf("in namespace %s, which is gone, there are still %v, %v", name, left.Items, err)
		}
		if !configMapGone(t, client, name, "settings") {
			t.Errorf("in namespace %s, which is gone, there is still a ConfigMap", name)
		}
		if err := definitions.Delete(t.Context(), "gadgets.test.operatorkit.io", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		operatortest.Eventually(t, "the definition is gone", func() bool {
			_, err := definitions.Get(t.Context(), "gadgets.test.operatorkit.io", metav1.GetOptions{})
			return apierrors.IsNotFound(err)
		})
	}
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
