package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager/target"
)

func fleetScheme() (*runtime.Scheme, error) {
	all := runtime.NewScheme()
	return all, errors.Join(scheme.AddToScheme(all), apiextensionsv1.AddToScheme(all), v1alpha1.AddToScheme(all))
}

// installKinds creates the definitions of the kinds of service sets, and waits until they are served.
func installKinds(ctx context.Context, c client.Client) error {
	definitions, err := operator.ReadCRDs(v1alpha1.CRDs)
	if err != nil {
		return err
	}
	for _, crd := range definitions {
		if err := c.Create(ctx, crd); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("create the definition %s: %w", crd.Name, err)
		}
		err := until(ctx, func(ctx context.Context) (bool, error) {
			if err := c.Get(ctx, client.ObjectKeyFromObject(crd), crd); err != nil {
				return false, err
			}
			for _, condition := range crd.Status.Conditions {
				if condition.Type == apiextensionsv1.Established && condition.Status == apiextensionsv1.ConditionTrue {
					return true, nil
				}
			}
			return false, nil
		})
		if err != nil {
			return fmt.Errorf("wait until %s is served: %w", crd.Name, err)
		}
	}
	return nil
}

// templateOf names a version of a service.
func templateOf(service, version int) string { return fmt.Sprintf("app-%d-%d", service, version) }

// createTemplates creates the templates of all services: charts first, manifests then, and the one that changes twice.
func (w *fleetWorld) createTemplates(ctx context.Context) error {
	for service := range w.services {
		versions := []int{1}
		if service == w.changing() {
			versions = append(versions, 2)
		}
		for _, version := range versions {
			template := &v1alpha1.ServiceTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: w.system, Name: templateOf(service, version)}}
			if service < w.fleet.charts {
				template.Spec.Helm = &v1alpha1.HelmChart{Repository: w.charts.URL, Chart: chartName, Version: chartVersion}
			} else {
				files := w.files(service, version)
				template.Spec.Version = fmt.Sprintf("%d.0.0", version)
				template.Spec.Resources = &v1alpha1.FileSource{LocalSource: &v1alpha1.LocalSource{Kind: "ConfigMap", Name: files.Name}}
				if err := w.create(ctx, files); err != nil {
					return err
				}
			}
			if err := w.create(ctx, template); err != nil {
				return err
			}
		}
	}
	return nil
}

// createClusters creates all clusters with all their services.
func (w *fleetWorld) createClusters(ctx context.Context) error {
	return inParallel(ctx, min(w.clusters, 10), w.clusters, func(ctx context.Context, i int) error {
		kubeconfig, err := w.identity(ctx, i)
		if err != nil {
			return err
		}
		cd := &v1alpha1.ClusterDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: w.system, Name: nameOf(i)}}
		cd.Spec.ServiceSpec.Provider.Name = w.system
		cd.Spec.ServiceSpec.Services = w.servicesOf(i)
		return w.create(ctx, kubeconfig, cd)
	})
}

// servicesOf are all services of a cluster, in their first versions.
func (w *fleetWorld) servicesOf(i int) []v1alpha1.Service {
	services := make([]v1alpha1.Service, w.services)
	for service := range services {
		services[service] = v1alpha1.Service{
			Name: fmt.Sprintf("app-%d", service), Namespace: w.spaces[i], Template: templateOf(service, 1),
		}
	}
	return services
}

// identity makes somebody who may read everything, and write in the namespace that stands for a cluster. It returns the Secret
// with the kubeconfig.
func (w *fleetWorld) identity(ctx context.Context, i int) (*corev1.Secret, error) {
	space := w.spaces[i]
	subject := []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: space}}
	err := w.create(ctx,
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: w.system}, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"get", "list", "watch"}},
		}},
		&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: space}, Subjects: subject, RoleRef: roleRef(w.system)},
		&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: space, Name: "writer"}, Subjects: subject, RoleRef: roleRef("cluster-admin")},
	)
	if err != nil {
		return nil, err
	}
	config := rest.CopyConfig(w.cluster.config)
	if err := rest.LoadTLSFiles(config); err != nil {
		return nil, err
	}
	k := clientcmdapi.NewConfig()
	k.Clusters[space] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
	k.AuthInfos[space] = &clientcmdapi.AuthInfo{
		ClientCertificateData: config.CertData, ClientKeyData: config.KeyData, Token: config.BearerToken, Impersonate: space,
	}
	k.Contexts[space] = &clientcmdapi.Context{Cluster: space, AuthInfo: space}
	k.CurrentContext = space
	data, err := clientcmd.Write(*k)
	if err != nil {
		return nil, err
	}
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.system, Name: nameOf(i) + target.DefaultSecretSuffix},
		Data:       map[string][]byte{target.DefaultSecretKey: data},
	}, nil
}

func roleRef(name string) rbacv1.RoleRef {
	return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name}
}

// deleteIdentities deletes what is not in a namespace.
func (w *fleetWorld) deleteIdentities(ctx context.Context) error {
	if w.client == nil || w.system == "" {
		return nil
	}
	errs := []error{client.IgnoreNotFound(w.client.Delete(ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: w.system}}))}
	for _, space := range w.spaces {
		binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: space}}
		errs = append(errs, client.IgnoreNotFound(w.client.Delete(ctx, binding)))
	}
	return errors.Join(errs...)
}

// The chart that there is.
const (
	chartName    = "page"
	chartVersion = "1.0.0"
	// chartLabel is on the objects of the chart, with its name.
	chartLabel = "chart"
)

// chartTemplate is the template of a chart with so many ConfigMaps.
const chartTemplate = `{{- range $i := until %d }}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: "{{ $.Release.Name }}-{{ $i }}", labels: {%s: {{ $.Chart.Name }}}}
data: {text: hello}
{{- end }}
`

// chartServer is a repository with one chart, of ConfigMaps.
type chartServer struct{ *httptest.Server }

func serveCharts(objects int) (*chartServer, error) {
	archive, err := packChart(map[string]string{
		"Chart.yaml":          fmt.Sprintf("apiVersion: v2\nname: %s\nversion: %s\n", chartName, chartVersion),
		"templates/page.yaml": fmt.Sprintf(chartTemplate, objects, chartLabel),
	})
	if err != nil {
		return nil, err
	}
	index := fmt.Sprintf("apiVersion: v1\nentries:\n  %[1]s:\n    - {apiVersion: v2, name: %[1]s, version: %[2]s, urls: [page.tgz]}\n", chartName, chartVersion)
	files := map[string][]byte{"/index.yaml": []byte(index), "/page.tgz": archive}
	return &chartServer{httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		data, ok := files[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(data) // a client that is gone does not miss it
	}))}, nil
}

// packChart makes the archive of a chart.
func packChart(files map[string]string) ([]byte, error) {
	var buffer bytes.Buffer
	zipped := gzip.NewWriter(&buffer)
	archive := tar.NewWriter(zipped)
	for name, data := range files {
		header := &tar.Header{Name: chartName + "/" + name, Typeflag: tar.TypeReg, Size: int64(len(data)), Mode: 0o644}
		if err := archive.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := archive.Write([]byte(data)); err != nil {
			return nil, err
		}
	}
	err := errors.Join(archive.Close(), zipped.Close())
	return buffer.Bytes(), err
}
