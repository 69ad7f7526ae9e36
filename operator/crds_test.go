package operator_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/operatortest"
)

// gardens is the definition of a resource that has the given fields, all of them texts.
func gardens(fields ...string) *apiextensionsv1.CustomResourceDefinition {
	properties := map[string]apiextensionsv1.JSONSchemaProps{}
	for _, f := range fields {
		properties[f] = apiextensionsv1.JSONSchemaProps{Type: "string"}
	}
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "gardens.operator.test.operatorkit.io"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "operator.test.operatorkit.io",
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "gardens", Singular: "garden", Kind: "Garden", ListKind: "GardenList"},
			Scope: apiextensionsv1.NamespaceScoped,
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": {Type: "object", Properties: properties}},
				}},
			}},
		},
	}
}

func garden(namespace string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "operator.test.operatorkit.io/v1", "kind": "Garden",
		"metadata": map[string]any{"namespace": namespace, "name": "eden"},
		"spec":     map[string]any{"tree": "apple"},
	}}
}

func TestDefinitionsAreEnsuredAndUpdatedInPlaceSoThatTheirObjectsStay(t *testing.T) {
	instance := operatortest.Start(t)
	namespace := instance.Namespace(t)
	c := operatortest.NewClient(t, instance.RESTConfig(), nil)

	// start runs an operator with a definition until its source, which needs the definition, is
	// synced.
	start := func(crd *apiextensionsv1.CustomResourceDefinition) *running {
		source, err := informer.NewKubernetes(informer.KubernetesConfig{
			Client: c, Object: garden(""), Namespaces: []string{namespace}, Logger: quiet(t),
		})
		if err != nil {
			t.Fatal(err)
		}
		o := newOperator(t, operator.Config{
			RESTConfig: instance.RESTConfig(), CRDs: []*apiextensionsv1.CustomResourceDefinition{crd},
			Frameworks:    []*framework.Framework{newFramework(t, "gardens", source, nil)},
			ListenAddress: "127.0.0.1:0",
		})
		r := run(t, o)
		operatortest.Eventually(t, "readiness", func() bool {
			status, _ := get(t, o, "/readyz")
			return status == 200
		})
		return r
	}

	first := start(gardens("tree"))
	before := garden(namespace)
	if err := c.Create(t.Context(), before); err != nil {
		t.Fatal(err)
	}
	if err := first.stop(); err != nil {
		t.Fatal(err)
	}

	second := start(gardens("tree", "river"))
	operatortest.Eventually(t, "the new field", func() error {
		after := garden(namespace)
		if err := c.Get(t.Context(), informer.Key{Namespace: namespace, Name: "eden"}, after); err != nil {
			return err
		}
		if diff := cmp.Diff(before.GetUID(), after.GetUID()); diff != "" {
			t.Fatalf("the object was made anew\n%s", diff)
		}
		if err := unstructured.SetNestedField(after.Object, "tigris", "spec", "river"); err != nil {
			t.Fatal(err)
		}
		if err := c.Update(t.Context(), after); err != nil {
			return err
		}
		if river, _, _ := unstructured.NestedString(after.Object, "spec", "river"); river != "tigris" {
			return fmt.Errorf("it holds %q", river)
		}
		return nil
	})
	if err := second.stop(); err != nil {
		t.Fatal(err)
	}
}

func TestDefinitionThatCannotBeServedEndsRunWithItsName(t *testing.T) {
	instance := operatortest.Start(t)
	user := instance.RESTConfig()
	user.Impersonate.UserName = "gardener"
	wrong := gardens("tree")
	wrong.Name = "wrong.operator.test.operatorkit.io"
	source := &watched{Push: pushed(t, "objects")}
	o := newOperator(t, operator.Config{
		RESTConfig: instance.RESTConfig(), CRDs: []*apiextensionsv1.CustomResourceDefinition{wrong},
		Frameworks: []*framework.Framework{newFramework(t, "f", source, nil)},
	})
	if err := run(t, o).wait(); err == nil || !strings.Contains(err.Error(), wrong.Name) {
		t.Errorf("want an error with the definition's name, got %v", err)
	}
	if source.ran.Load() {
		t.Error("the source was run without its definition")
	}

	// A fault that may be fixed meanwhile is retried forever: the replica is not ready, and
	// stopping is clean.
	missing := gardens("tree")
	missing.Name, missing.Spec.Group = "gardens.missing.operatorkit.io", "missing.operatorkit.io"
	unprivileged := newOperator(t, operator.Config{
		RESTConfig: user, CRDs: []*apiextensionsv1.CustomResourceDefinition{missing},
		Frameworks: []*framework.Framework{newFramework(t, "f", source, nil)}, ListenAddress: "127.0.0.1:0",
	})
	r := run(t, unprivileged)
	status, body := get(t, unprivileged, "/readyz")
	if want := "definition gardens.missing.operatorkit.io is not served yet\n"; status != 503 || body != want {
		t.Errorf("readyz: %d %q, want 503 %q", status, body, want)
	}
	if err := r.stop(); err != nil {
		t.Errorf("want a clean stop, got %v", err)
	}
}

// Another replica leads during the whole test.
func TestR17DefinitionsAreEnsuredByEveryReplica(t *testing.T) {
	r := newReplicas(t)
	if err := r.client.Create(t.Context(), &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: "test"}}); err != nil {
		t.Fatal(err)
	}
	r.steal("somebody")
	crd := gardens("tree")
	crd.Name, crd.Spec.Group = "gardens.standby.operatorkit.io", "standby.operatorkit.io"
	o := newOperator(t, operator.Config{
		RESTConfig: r.instance.RESTConfig(), CRDs: []*apiextensionsv1.CustomResourceDefinition{crd}, LeaderElection: r.election("a", nil),
		Frameworks: []*framework.Framework{newFramework(t, "f", pushed(t, "objects"), nil)}, ListenAddress: "127.0.0.1:0",
	})
	running := run(t, o)
	operatortest.Eventually(t, "it is ready, which it is when its definitions are served", func() bool {
		status, _ := get(t, o, "/readyz")
		return status == 200
	})
	served := &metav1.PartialObjectMetadata{}
	served.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	if err := r.client.Get(t.Context(), client.ObjectKey{Name: crd.Name}, served); err != nil {
		t.Error(err)
	}
	if got := r.holder(); got != "somebody" {
		t.Errorf("the lease is held by %q", got)
	}
	if err := running.stop(); err != nil {
		t.Error(err)
	}
}

const gardenFile = `
# A comment before the document.
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: gardens.example.com
spec:
  group: example.com
  scope: Namespaced
  names: {plural: gardens, kind: Garden}
  versions: []
---
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: trees.example.com
`

func TestReadCRDsReadsAllDocumentsOfAllYAMLFiles(t *testing.T) {
	crds, err := operator.ReadCRDs(fstest.MapFS{
		"crds/b.yaml": {Data: []byte(gardenFile)}, "crds/a.yaml": {Data: []byte(strings.ReplaceAll(gardenFile, "example.com", "example.org"))},
		"crds/README.md": {Data: []byte("# not YAML")},
	})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, crd := range crds {
		names = append(names, crd.Name)
	}
	want := []string{"gardens.example.org", "trees.example.org", "gardens.example.com", "trees.example.com"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Error(diff)
	}
}

func TestReadCRDsNamesTheFileWithAFault(t *testing.T) {
	tests := []struct{ name, data, want string }{
		{"another kind", "apiVersion: v1\nkind: Secret\n", "crds/x.yaml: it holds a Secret of v1: only a CustomResourceDefinition of apiextensions.k8s.io/v1 can be read"},
		{"an unknown field", "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nspecs: {}\n", `crds/x.yaml: error unmarshaling JSON: while decoding JSON: json: unknown field "specs"`},
		{"not YAML", "{", "crds/x.yaml: "},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := operator.ReadCRDs(fstest.MapFS{"crds/x.yaml": {Data: []byte(tt.data)}})
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("want an error with %q, got %v", tt.want, err)
			}
		})
	}
}

func TestAnOperatorThatOnlyChecksDefinitionsWaitsForSomebodyToApplyThem(t *testing.T) {
	instance := operatortest.Start(t)
	crd := gardens("tree")
	crd.Name, crd.Spec.Group = "gardens.checked.operatorkit.io", "checked.operatorkit.io"
	start := func(mode operator.CRDMode) (*operator.Operator, *running) {
		o := newOperator(t, operator.Config{
			RESTConfig: instance.RESTConfig(), CRDs: []*apiextensionsv1.CustomResourceDefinition{crd}, CRDMode: mode,
			Frameworks:    []*framework.Framework{newFramework(t, "f", &watched{Push: pushed(t, "objects")}, nil)},
			ListenAddress: "127.0.0.1:0",
		})
		return o, run(t, o)
	}
	checking, r := start(operator.CheckCRDs)
	if status, body := get(t, checking, "/readyz"); status != 503 || !strings.Contains(body, crd.Name) {
		t.Errorf("without its definition: readyz: %d %q", status, body)
	}
	ignoring, other := start(operator.IgnoreCRDs)
	for _, o := range []*operator.Operator{ignoring, checking} {
		if o == checking {
			instance.InstallCRDs(t, crd)
		}
		operatortest.Eventually(t, "readiness", func() bool {
			status, _ := get(t, o, "/readyz")
			return status == 200
		})
	}
	for _, r := range []*running{r, other} {
		if err := r.stop(); err != nil {
			t.Error(err)
		}
	}

	_, err := operator.New(operator.Config{CRDMode: "never"})
	if !framework.IsInvalidConfig(err) || !strings.Contains(err.Error(), `CRDMode must be one of ["ensure" "check" "off"], is "never"`) {
		t.Errorf("got error %v", err)
	}
}
