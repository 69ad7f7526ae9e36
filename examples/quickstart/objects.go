package quickstart

import (
	"fmt"
	"html/template"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/examples/quickstart/v1alpha1"
)

// pages are the templates of the two versions.
var pages = map[string]*template.Template{
	"v1": template.Must(template.New("v1").Parse(`<!doctype html>
<title>{{.Title}}</title>
<h1>{{.Title}}</h1>
<p>{{.Text}}</p>
`)),
	"v2": template.Must(template.New("v2").Parse(`<!doctype html>
<html lang="en">
<meta name="color-scheme" content="light dark">
<title>{{.Title}}</title>
<main><h1>{{.Title}}</h1><p>{{.Text}}</p></main>
`)),
}

// children are the page of a website and the service that leads to it.
func children(version string, site *v1alpha1.Website) ([]client.Object, error) {
	page, err := newPage(version, site)
	return []client.Object{page, newService(site)}, err
}

func pageName(site *v1alpha1.Website) string { return site.Name + "-page" }

// newPage renders the page of a website.
func newPage(version string, site *v1alpha1.Website) (*corev1.ConfigMap, error) {
	var page strings.Builder
	if err := pages[version].Execute(&page, site.Spec); err != nil {
		return nil, fmt.Errorf("render the page: %w", err)
	}
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: pageName(site)},
		Data:       map[string]string{"index.html": page.String()},
	}, nil
}

// newService leads to the web servers of a website.
func newService(site *v1alpha1.Website) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: site.Name},
		Spec: corev1.ServiceSpec{
			Selector: map[string]string{"website": site.Name},
			Ports:    []corev1.ServicePort{{Name: "http", Port: 80, TargetPort: intstr.FromString("http")}},
		},
	}
}
