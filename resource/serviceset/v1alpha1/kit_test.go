package v1alpha1_test

import (
	"io/fs"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// start returns a client of a control plane that serves the API, and a namespace.
func start(t *testing.T) (client.Client, string) {
	t.Helper()
	kube := operatortest.Start(t)
	kube.InstallCRDs(t, definitions(t)...)

	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c := operatortest.NewClient(t, kube.RESTConfig(), scheme)
	return client.WithFieldValidation(c, metav1.FieldValidationStrict), kube.Namespace(t)
}

// definitions reads the definitions of the API.
func definitions(t *testing.T) []*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	files, err := fs.Glob(v1alpha1.CRDs, "crd/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	crds := make([]*apiextensionsv1.CustomResourceDefinition, len(files))
	for i, file := range files {
		data, err := fs.ReadFile(v1alpha1.CRDs, file)
		if err != nil {
			t.Fatal(err)
		}
		crds[i] = &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(data, crds[i]); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
	}
	return crds
}

// object reads a document. Its kind is given because the rows of a table share it; a name that is not in the document is
// made by the server.
func object(t *testing.T, kind, namespace, document string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(document), &u.Object); err != nil {
		t.Fatalf("%v in:\n%s", err, document)
	}
	u.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(kind))
	if u.GetName() == "" {
		u.SetGenerateName("test-")
	}
	if kind != v1alpha1.MultiClusterServiceKind && kind != v1alpha1.StateManagementProviderKind {
		u.SetNamespace(namespace)
	}
	return u
}
