package command

import (
	"fmt"
	"io"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/yaml"
)

// manifestScheme knows the kinds of manifests.
func manifestScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(apiextensionsv1.AddToScheme(scheme))
	return scheme
}

// manifest returns an object as it stands in a file: with its kind, and without what only a server sets.
func manifest(of client.Object) (map[string]any, error) {
	kind, err := apiutil.GVKForObject(of, manifestScheme())
	if err != nil {
		return nil, err
	}
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(of)
	if err != nil {
		return nil, err
	}
	object["apiVersion"], object["kind"] = kind.GroupVersion().String(), kind.Kind
	for _, unset := range [][]string{
		{"status"}, {"metadata", "creationTimestamp"}, {"metadata", "generation"}, {"metadata", "managedFields"}, {"metadata", "resourceVersion"}, {"metadata", "uid"},
	} {
		unstructured.RemoveNestedField(object, unset...)
	}
	return object, nil
}

// printManifest prints an object as a document of a YAML stream.
func printManifest(w io.Writer, object map[string]any) error {
	document, err := yaml.Marshal(object)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "---\n%s", document)
	return err
}
