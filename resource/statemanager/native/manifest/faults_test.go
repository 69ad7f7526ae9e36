package manifest_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/manifest"
)

func TestADefinitionWhoseNamesAreTakenIsToldBeforeItsObjects(t *testing.T) {
	k := newKit(t)
	k.settle(k.service(files{"a.yaml": k.widgets()}, named("first")))
	var err error
	if k.carrier, err = manifest.New(manifest.Config{DefinitionTimeout: 8 * time.Second}); err != nil {
		t.Fatal(err)
	}
	// Another plural for the same kind.
	gadgets := strings.NewReplacer("widgets", "gadgets", "singular: widget", "singular: gadget").Replace(k.widgets())
	s := k.service(files{"a.yaml": gadgets, "b.yaml": configMap("b", "1")})
	err = k.carrier.CarryOut(t.Context(), k.cluster, s, k.compute(s))
	if err == nil || framework.IsPermanent(err) || !strings.Contains(err.Error(), "gadgets."+k.namespace+".example.com of a.yaml is not established") {
		t.Errorf("the error is %v", err)
	}
	if k.exists("b", &corev1.ConfigMap{}) {
		t.Error("what comes after the definition is there")
	}
	operatortest.Eventually(t, "the health says what is wrong with the definition", func() error {
		health := k.settle(s).Health
		if health.Phase != v1alpha1.ServiceStateFailed || !strings.Contains(health.Message, "gadgets."+k.namespace+".example.com: ") ||
			!strings.Contains(health.Message, "is already in use") {
			return fmt.Errorf("the service is %s: %s", health.Phase, health.Message)
		}
		return nil
	})
	k.settle(gone(s))
}

func TestNamespaceThatGoesWhileSomethingIsPutThereIsToldAndWaitedFor(t *testing.T) {
	k := newKit(t)
	ending := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: k.namespace + "-ending", Finalizers: []string{"example.com/hold"}}}
	k.create(ending)
	s := k.service(files{"a.yaml": configMap("a", "1")})
	s.Key.Namespace = ending.Name
	result := k.compute(s)
	if err := k.user.Delete(t.Context(), ending); err != nil {
		t.Fatal(err)
	}
	err := k.carrier.CarryOut(t.Context(), k.cluster, s, result)
	if err == nil || framework.IsPermanent(err) || !strings.Contains(err.Error(), "write the inventory of service "+ending.Name+"/web: ") ||
		!strings.Contains(err.Error(), "namespace "+ending.Name+" because it is being terminated") {
		t.Errorf("the error is %v", err)
	}
	result = k.compute(s)
	k.wants(result.Changes)
	if !strings.Contains(result.Health.Message, "the namespace "+ending.Name+" is being deleted") {
		t.Errorf("the message is %q", result.Health.Message)
	}
	k.patch(ending, `{"metadata":{"finalizers":null}}`)
}

func TestFailedUpgradeIsToldAndGoesOnWhereItEnded(t *testing.T) {
	k := newKit(t)
	k.settle(k.service(files{"a.yaml": configMap("a", "1"), "z.yaml": configMap("z", "1")}))
	s := k.service(files{"a.yaml": configMap("a", "2"), "b.yaml": configMap("b", "2"), "c.yaml": configMap("c", "2")})
	k.faults.On(func(r operatortest.Request) bool { return r.Name == "b" && !r.DryRun && r.Method == http.MethodPatch },
		operatortest.InternalError()).Times(1)
	err := k.carrier.CarryOut(t.Context(), k.cluster, s, k.compute(s))
	if err == nil || framework.IsPermanent(err) || !strings.Contains(err.Error(), "create ConfigMap "+k.namespace+"/b of b.yaml: ") {
		t.Errorf("the error is %v", err)
	}
	if k.configMap("a").Data["text"] != "2" || !k.exists("z", &corev1.ConfigMap{}) {
		t.Error("what was done before should be there still, and what is taken away last too")
	}
	result := k.compute(s)
	if result.Found == nil || result.Found.Fingerprint != "" {
		t.Errorf("what was begun is found as %v", result.Found)
	}
	k.wants(result.Changes, "create ConfigMap b", "create ConfigMap c", "delete ConfigMap z")
	k.wantsPhase(k.settle(s), v1alpha1.ServiceStateDeployed)
}

func TestObjectThatCanNotBeDeletedIsToldAndTriedAgain(t *testing.T) {
	k := newKit(t)
	s := k.service(files{"a.yaml": configMap("a", "1"), "b.yaml": configMap("b", "1")})
	k.settle(s)
	k.faults.On(func(r operatortest.Request) bool { return r.Name == "a" && r.Method == http.MethodDelete }, operatortest.InternalError()).Times(1)
	err := k.carrier.CarryOut(t.Context(), k.cluster, gone(s), k.compute(gone(s)))
	if err == nil || framework.IsPermanent(err) || !strings.Contains(err.Error(), "delete ConfigMap "+k.namespace+"/a: ") {
		t.Errorf("the error is %v", err)
	}
	if !k.exists(manifest.InventoryPrefix+"web", &corev1.Secret{}) {
		t.Error("the inventory is gone before what is in it")
	}
	k.settle(gone(s))
	if err := k.user.Get(t.Context(), client.ObjectKey{Namespace: k.namespace, Name: "a"}, &corev1.ConfigMap{}); err == nil {
		t.Error("it is there still")
	}
}
