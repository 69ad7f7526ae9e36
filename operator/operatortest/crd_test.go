package operatortest_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operatorkit/operatorkit/operator/operatortest"
)

func TestInstalledDefinitionsCanBeUsedAtOnceAndInstalledAgain(t *testing.T) {
	t.Parallel()
	kube := operatortest.Start(t, operatortest.Dedicated())
	namespace := kube.Namespace(t)
	kube.InstallCRDs(t, definition("gadgets", "Gadget", "v1"), definition("widgets", "Widget", "v1"))
	if _, err := gadgetClient(t, kube.RESTConfig(), "v1").Namespace(namespace).Create(t.Context(), gadget("v1"), metav1.CreateOptions{}); err != nil {
		t.Errorf("create an object of a kind just installed: %v", err)
	}

	changed := definition("gadgets", "Gadget", "v1", "v2")
	kube.InstallCRDs(t, changed)
	if _, err := gadgetClient(t, kube.RESTConfig(), "v2").Namespace(namespace).Get(t.Context(), "one", metav1.GetOptions{}); err != nil {
		t.Errorf("get an object in a version just added: %v", err)
	}
	if changed.ResourceVersion != "" {
		t.Error("the argument was changed")
	}
}
