package manifest_test

import (
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
)

// widgets is the manifest of a definition, for a kind whose group is the namespace's own.
func (k *kit) widgets() string {
	return fmt.Sprintf(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.%[1]s.example.com}
spec:
  group: %[1]s.example.com
  scope: Namespaced
  names: {kind: Widget, listKind: WidgetList, plural: widgets, singular: widget}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer}}}}}}
`, k.namespace)
}

func (k *kit) widget(name string) string {
	return fmt.Sprintf("apiVersion: %s.example.com/v1\nkind: Widget\nmetadata: {name: %s}\nspec: {size: 1}\n", k.namespace, name)
}

func (k *kit) widgetNamed(name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(schema.GroupVersionKind{Group: k.namespace + ".example.com", Version: "v1", Kind: "Widget"})
	u.SetNamespace(k.namespace)
	u.SetName(name)
	return u
}

func TestDefinitionsComeBeforeTheirObjects(t *testing.T) {
	k := newKit(t)
	definition := "widgets." + k.namespace + ".example.com"
	s := k.service(files{"a.yaml": k.widget("a"), "z.yaml": k.widgets()})
	result := k.compute(s)
	k.wants(result.Changes, "create CustomResourceDefinition "+definition, "create Widget a")
	k.carryOut(s, result)
	k.wants(k.compute(s).Changes)

	// Somebody else makes an object of this kind: it does not go with the definition.
	alien := k.widgetNamed("alien")
	k.create(alien)
	result = k.compute(gone(s))
	k.wants(result.Changes, "delete Widget a", "update CustomResourceDefinition "+definition)
	k.carryOut(gone(s), result)
	if k.compute(gone(s)).Found != nil || !k.exists("alien", k.widgetNamed("alien")) || k.exists("a", k.widgetNamed("a")) {
		t.Error("the service should be gone, but for the definition and what others made of it")
	}
}

func TestKindThatComesLate(t *testing.T) {
	k := newKit(t)
	s := k.service(files{"a.yaml": k.widget("a"), "b.yaml": configMap("b", "1")})
	result := k.compute(s)
	k.wants(result.Changes)
	k.wantsPhase(result, v1alpha1.ServiceStateProvisioning)
	if len(result.Missing) != 1 || result.Missing[0].Kind != "Widget" || !strings.Contains(result.Health.Message, "waits for the kind Widget of "+k.namespace+".example.com/v1") {
		t.Errorf("it waits for %v: %s", result.Missing, result.Health.Message)
	}
	definitions := k.service(files{"crd.yaml": k.widgets()}, named("definitions"))
	k.settle(definitions)
	k.wantsPhase(k.settle(s), v1alpha1.ServiceStateDeployed)
}

func TestInvalidObjectIsToldWithItsFile(t *testing.T) {
	k := newKit(t)
	const service = "apiVersion: v1\nkind: Service\nmetadata: {name: bad}\nspec: {ports: [{port: %d}]}\n"
	err := k.refused(k.service(files{"a.yaml": configMap("a", "1"), "bad.yaml": fmt.Sprintf(service, 99999)}))
	if !strings.Contains(err.Error(), "create Service "+k.namespace+"/bad of bad.yaml: ") || !strings.Contains(err.Error(), "spec.ports[0].port") {
		t.Errorf("the error is %v", err)
	}
	s := k.service(files{"a.yaml": configMap("a", "1"), "bad.yaml": fmt.Sprintf(service, 80)})
	k.faults.On(func(r operatortest.Request) bool { return r.Name == "bad" && !r.DryRun && r.Method == "PATCH" }, operatortest.InternalError()).Times(1)
	if err := k.carrier.CarryOut(t.Context(), k.cluster, s, k.compute(s)); err == nil {
		t.Fatal("it does not fail")
	}
	found := k.compute(s).Found
	if found == nil || found.Fingerprint != "" || found.Version != "" {
		t.Errorf("what was begun is found as %v", found)
	}
	// What replaces it takes away what was begun.
	k.settle(k.service(files{"c.yaml": configMap("c", "1")}))
	if k.exists("a", &corev1.ConfigMap{}) {
		t.Error("what was begun is left")
	}
}

func TestRevertInTheMiddleOfAnUpgrade(t *testing.T) {
	k := newKit(t)
	first := k.service(files{"a.yaml": configMap("a", "1"), "b.yaml": configMap("b", "1")})
	k.settle(first)
	second := k.service(files{"a.yaml": configMap("a", "2"), "b.yaml": configMap("b", "2")})
	k.faults.On(func(r operatortest.Request) bool { return r.Name == "b" && !r.DryRun && r.Method == "PATCH" }, operatortest.InternalError()).Times(1)
	if err := k.carrier.CarryOut(t.Context(), k.cluster, second, k.compute(second)); err == nil {
		t.Fatal("the second write is expected to fail")
	}
	result := k.compute(first)
	k.wants(result.Changes, "update ConfigMap a")
	k.carryOut(first, result)
	if k.configMap("a").Data["text"] != "1" {
		t.Error("it was not reverted")
	}
}

func TestFieldThatCantChange(t *testing.T) {
	k := newKit(t)
	text := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\nimmutable: true\ndata: {x: '%d'}\n"
	k.settle(k.service(files{"a.yaml": fmt.Sprintf(text, 1)}))
	err := k.refused(k.service(files{"a.yaml": fmt.Sprintf(text, 2)}))
	if !strings.Contains(err.Error(), "ConfigMap "+k.namespace+"/a of a.yaml") || !strings.Contains(err.Error(), "delete the object, or give it another name") {
		t.Errorf("the error is %v", err)
	}
}

func TestManyObjects(t *testing.T) {
	k := newKit(t)
	content := files{}
	for i := range 300 {
		content[fmt.Sprintf("%03d.yaml", i)] = configMap(fmt.Sprintf("c-%03d", i), strings.Repeat("x", 1000))
	}
	s := k.service(content)
	k.wantsPhase(k.settle(s), v1alpha1.ServiceStateDeployed)
	k.settle(gone(s))
	if k.exists("c-000", &corev1.ConfigMap{}) {
		t.Error("something is left")
	}
}

func TestAnotherBranchOfAChoiceIsTakenInOneGo(t *testing.T) {
	k := newKit(t)
	before := deployment("web", "registry.example.com/web:1")
	k.settle(k.service(files{"a.yaml": before}))
	next := k.service(files{"a.yaml": strings.Replace(before, "spec:\n", "spec:\n  strategy: {type: Recreate}\n", 1)})
	k.wants(k.compute(next).Changes, "update Deployment web")
	k.settle(next)
	if strategy := fetchAs(k, "web", &appsv1.Deployment{}).Spec.Strategy; strategy.Type != "Recreate" || strategy.RollingUpdate != nil {
		t.Errorf("the strategy is %v", strategy)
	}
	k.settle(k.service(files{"a.yaml": before}))
	if strategy := fetchAs(k, "web", &appsv1.Deployment{}).Spec.Strategy; strategy.Type != "RollingUpdate" {
		t.Errorf("the strategy is %v", strategy)
	}
}

func TestWhatCanNotBeChangedIsReplacedWhereItsKindIsNamed(t *testing.T) {
	k := newKit(t)
	const fixed = "apiVersion: v1\nkind: Secret\nmetadata: {name: fixed}\nimmutable: true\nstringData: {a: %q}\n"
	k.settle(k.service(files{"a.yaml": job("migrate:1"), "b.yaml": fmt.Sprintf(fixed, "1")}))
	content := files{"a.yaml": job("migrate:2"), "b.yaml": fmt.Sprintf(fixed, "2")}
	if err := k.refused(k.service(content)); !strings.Contains(err.Error(), "replaceKinds") || strings.Contains(err.Error(), "Containers") {
		t.Errorf("the error is %v", err)
	}
	next := k.service(content, func(s *carrier.Service) { s.Config.ReplaceKinds = []string{"Job", "Secret"} })
	result := k.compute(next)
	k.wants(result.Changes, "delete Secret fixed", "create Secret fixed", "delete Job migrate", "create Job migrate")
	k.carryOut(next, result)
	k.wants(k.compute(next).Changes)
	if image := fetchAs(k, "migrate", &batchv1.Job{}).Spec.Template.Spec.Containers[0].Image; image != "migrate:2" {
		t.Errorf("the image is %s", image)
	}
}

func TestWhatWouldNotBeCreatedAnewIsNotDeleted(t *testing.T) {
	k := newKit(t)
	with := func(strategy string) *carrier.Service {
		text := strings.Replace(deployment("web", "registry.example.com/web:1"), "spec:\n", "spec:\n  strategy: "+strategy+"\n", 1)
		return k.service(files{"a.yaml": text}, func(s *carrier.Service) { s.Config.ReplaceKinds = []string{"Deployment"} })
	}
	k.settle(with("{type: RollingUpdate}"))
	uid := fetchAs(k, "web", &appsv1.Deployment{}).UID
	err := k.refused(with("{type: Recreate, rollingUpdate: {maxSurge: 1}}"))
	if said := err.Error(); !strings.Contains(said, "it would not be created anew") || !strings.Contains(said, "spec.strategy.rollingUpdate: Forbidden") ||
		strings.Contains(said, "replaceKinds") {
		t.Errorf("the error is %v", err)
	}
	if is := fetchAs(k, "web", &appsv1.Deployment{}).UID; is != uid {
		t.Error("it was made anew")
	}
}
