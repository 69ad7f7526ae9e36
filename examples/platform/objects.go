package platform

import (
	"embed"
	"io/fs"
	"os"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/examples/internal/manifests"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

//go:embed platform.yaml services.yaml policies dashboards
var files embed.FS

// Catalog returns what the platform team publishes in a namespace: the templates with the ways between them, and the
// ConfigMaps with the files of those that are no charts. The host is the address of the registry with the charts.
func Catalog(namespace, host string) ([]client.Object, error) {
	objects, err := read("platform.yaml", map[string]string{"REGISTRY": "oci://" + host})
	if err != nil {
		return nil, err
	}
	for _, folder := range []string{"policies", "dashboards"} {
		data, err := contents(folder)
		if err != nil {
			return nil, err
		}
		objects = append(objects, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: folder}, Data: data})
	}
	for _, obj := range objects {
		obj.SetNamespace(namespace)
	}
	return objects, nil
}

// Services returns the six services for all clusters with the label stage=prod.
func Services() (*v1alpha1.MultiClusterService, error) {
	objects, err := read("services.yaml", nil)
	if err != nil {
		return nil, err
	}
	return objects[0].(*v1alpha1.MultiClusterService), nil
}

// Cluster returns a cluster with the label stage=prod, and the Secret with its kubeconfig.
func Cluster(namespace, name string, kubeconfig []byte) []client.Object {
	return []client.Object{
		&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name + "-kubeconfig"},
			Data:       map[string][]byte{"value": kubeconfig},
		},
		&v1alpha1.ClusterDeployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"stage": "prod"}},
		},
	}
}

// read reads the documents of a file, in which it replaces ${variables}.
func read(name string, variables map[string]string) ([]client.Object, error) {
	data, err := files.ReadFile(name)
	if err != nil {
		return nil, err
	}
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	text := os.Expand(string(data), func(variable string) string { return variables[variable] })
	return manifests.Decode(scheme, name, []byte(text))
}

// contents returns the files of a folder by their names.
func contents(folder string) (map[string]string, error) {
	entries, err := fs.ReadDir(files, folder)
	if err != nil {
		return nil, err
	}
	data := map[string]string{}
	for _, entry := range entries {
		text, err := fs.ReadFile(files, folder+"/"+entry.Name())
		if err != nil {
			return nil, err
		}
		data[entry.Name()] = string(text)
	}
	return data, nil
}
