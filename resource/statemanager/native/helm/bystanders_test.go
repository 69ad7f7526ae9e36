package helm_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/helm"
)

func namespaceTemplate(name string, annotations string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: Namespace\nmetadata:\n  name: %s\n  annotations: {%s}\n", name, annotations)
}

func (k *kit) namespaceNamed(name string) *corev1.Namespace {
	k.t.Helper()
	namespace := &corev1.Namespace{}
	if err := k.user.Get(k.t.Context(), client.ObjectKey{Name: name}, namespace); err != nil {
		k.t.Fatalf("the namespace %s: %v", name, err)
	}
	if namespace.DeletionTimestamp != nil {
		k.t.Errorf("the namespace %s is deleted", name)
	}
	return namespace
}

// stays expects that a plan does not delete an object, and says why.
func (k *kit) stays(result *carrier.Result, object, why string) {
	k.t.Helper()
	if deletion := "delete " + object; slices.Contains(summary(result.Changes), deletion) {
		k.t.Errorf("the plan is to %s", deletion)
	}
	if notes := strings.Join(result.Notes, "\n"); !strings.Contains(notes, " stays, because ") || !strings.Contains(notes, why) {
		k.t.Errorf("the notes do not say that it stays because of %q: %q", why, result.Notes)
	}
}

func (k *kit) put(object client.Object) {
	k.t.Helper()
	if err := k.user.Create(k.t.Context(), object); err != nil {
		k.t.Fatal(err)
	}
}

func TestANamespaceOfAChartWithAnythingOfOthersStays(t *testing.T) {
	k := newKit(t, helm.Config{})
	own := k.namespace + "-own"
	chart := func(version string, templates files) files {
		return chartOf("own", version, files{"a.yaml": pageTemplate, "values.yaml": "text: a\n"}).with("templates/b.yaml", templates["b.yaml"])
	}
	with := chart("1.0.0", files{"b.yaml": namespaceTemplate(own, "")})
	k.settle(k.service(with))
	result := k.compute(k.service(nil, gone))
	if !slices.Contains(summary(result.Changes), "delete Namespace "+own) {
		t.Errorf("a namespace with nothing in it stays: %v %q", summary(result.Changes), result.Notes)
	}
	k.put(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: own, Name: "settings"}})
	k.stays(k.compute(k.service(nil, gone)), "Namespace "+own, "ConfigMap settings")
	without := k.service(chart("2.0.0", nil))
	k.stays(k.compute(without), "Namespace "+own, "ConfigMap settings")
	k.settle(without)
	k.namespaceNamed(own)
	k.settle(k.service(with))
	k.eventually(k.service(nil, gone), "the service is gone", func(r *carrier.Result) bool { return r.Found == nil })
	k.namespaceNamed(own)
}

// TestANamespaceOfAChartWithWhatIsKeptInItStays: what has the policy keep would be deleted with its namespace all the same.
func TestANamespaceOfAChartWithWhatIsKeptInItStays(t *testing.T) {
	k := newKit(t, helm.Config{})
	own := k.namespace + "-own"
	k.settle(k.service(chartOf("own", "1.0.0", files{"ns.yaml": namespaceTemplate(own, ""), "kept.yaml": "apiVersion: v1\nkind: ConfigMap\n" +
		"metadata: {name: kept, namespace: " + own + ", annotations: {helm.sh/resource-policy: keep}}\n"})))
	k.stays(k.compute(k.service(nil, gone)), "Namespace "+own, "ConfigMap kept")
	k.eventually(k.service(nil, gone), "the service is gone", func(r *carrier.Result) bool { return r.Found == nil })
	k.namespaceNamed(own)
}

// TestANamespaceThatIsAHookStaysWithAnythingOfOthers: by its policy it would be deleted before it is created again, and with what hooks have left.
func TestANamespaceThatIsAHookStaysWithAnythingOfOthers(t *testing.T) {
	k := newKit(t, helm.Config{})
	own := k.namespace + "-hook"
	chart := func(version string) files {
		return chartOf("own", version, files{"a.yaml": extraTemplate, "ns.yaml": namespaceTemplate(own, `helm.sh/hook: "pre-install,pre-upgrade"`)})
	}
	k.settle(k.service(chart("1.0.0")))
	uid := k.namespaceNamed(own).UID
	k.put(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: own, Name: "settings"}})
	k.stays(k.compute(k.service(chart("2.0.0"))), "Namespace "+own, "ConfigMap settings")
	k.eventually(k.service(chart("2.0.0")), "it is upgraded", func(r *carrier.Result) bool { return r.Health.Phase == "Deployed" })
	if k.namespaceNamed(own).UID != uid {
		t.Error("the namespace was deleted and created again")
	}
	k.eventually(k.service(nil, gone), "the service is gone", func(r *carrier.Result) bool { return r.Found == nil })
	k.namespaceNamed(own)
}

func TestADefinitionAmongTemplatesWithObjectsOfOthersStays(t *testing.T) {
	k := newKit(t, helm.Config{})
	group := k.namespace + ".example.com"
	definition := fmt.Sprintf(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.%[1]s}
spec:
  group: %[1]s
  scope: Namespaced
  names: {kind: Thing, listKind: ThingList, plural: things, singular: thing}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
`, group)
	chart := chartOf("kinds", "1.0.0", files{"a.yaml": extraTemplate}).with("templates/crd.yaml", definition)
	k.settle(k.service(chart))
	result := k.compute(k.service(nil, gone))
	if !slices.Contains(summary(result.Changes), "delete CustomResourceDefinition things."+group) {
		t.Errorf("a definition without objects stays: %v %q", summary(result.Changes), result.Notes)
	}
	thing := &unstructured.Unstructured{}
	thing.SetGroupVersionKind(schema.GroupVersionKind{Group: group, Version: "v1", Kind: "Thing"})
	thing.SetNamespace(k.namespace)
	thing.SetName("theirs")
	operatortest.Eventually(t, "the kind is served", func() error { return k.user.Create(t.Context(), thing) })
	says := "Thing." + group + " " + k.namespace + "/theirs"
	k.stays(k.compute(k.service(nil, gone)), "CustomResourceDefinition things."+group, says)
	without := k.service(chartOf("kinds", "2.0.0", files{"a.yaml": extraTemplate}))
	k.stays(k.compute(without), "CustomResourceDefinition things."+group, says)
	k.settle(without)
	k.eventually(k.service(nil, gone), "the service is gone", func(r *carrier.Result) bool { return r.Found == nil })
	if err := k.user.Get(t.Context(), client.ObjectKeyFromObject(thing), thing); err != nil {
		t.Errorf("the object of somebody else: %v", err)
	}
}
