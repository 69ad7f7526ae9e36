package story

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/examples/internal/demo"
	"github.com/operatorkit/operatorkit/examples/quickstart/v1alpha1"
)

func website(namespace, name, title, text string) *v1alpha1.Website {
	return &v1alpha1.Website{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{v1alpha1.VersionLabel: "v1"}},
		Spec:       v1alpha1.WebsiteSpec{Title: title, Text: text},
	}
}

func tell(ctx context.Context, d *demo.Demo) error {
	home := website(d.Namespace, "home", "Home", "Welcome.")
	blog := website(d.Namespace, "blog", "Blog", "Nothing here yet.")
	shop := website(d.Namespace, "shop", "Shop", "Closed today.")
	if err := served(ctx, d); err != nil {
		return err
	}

	d.Step("creating three Websites: home, blog and shop")
	if err := d.Plan(ctx, home); err != nil {
		return err
	}
	for _, site := range []*v1alpha1.Website{home, blog, shop} {
		if err := d.Client.Create(ctx, site); err != nil {
			return err
		}
	}
	for _, site := range []*v1alpha1.Website{home, blog, shop} {
		if err := d.Until(ctx, site.Name+" has its page and its service", pageSays(d, site.Name, site.Spec.Text)); err != nil {
			return err
		}
	}

	d.Step("changing the text of blog")
	changed := website(d.Namespace, "blog", "Blog", "First post!")
	if err := d.Plan(ctx, changed); err != nil {
		return err
	}
	if err := d.Client.Patch(ctx, blog, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"text":"First post!"}}`))); err != nil {
		return err
	}
	if err := d.Until(ctx, "its page says so", pageSays(d, "blog", "First post!")); err != nil {
		return err
	}

	d.Step("moving home to version v2 of the operator's logic")
	moved := website(d.Namespace, "home", "Home", "Welcome.")
	moved.Labels[v1alpha1.VersionLabel] = "v2"
	if err := d.Plan(ctx, moved); err != nil {
		return err
	}
	move := fmt.Sprintf(`{"metadata":{"labels":{%q:"v2"}}}`, v1alpha1.VersionLabel)
	if err := d.Client.Patch(ctx, home, client.RawPatch("application/merge-patch+json", []byte(move))); err != nil {
		return err
	}
	if err := d.Until(ctx, "its page is the one of v2", pageSays(d, "home", "<main><h1>Home")); err != nil {
		return err
	}

	d.Step("deleting shop")
	if err := d.Client.Delete(ctx, shop); err != nil {
		return err
	}
	if err := d.Until(ctx, "it is gone, and so are its page and its service", allGone(d, "shop")); err != nil {
		return err
	}
	if err := guards(ctx, d); err != nil {
		return err
	}
	return upgrades(ctx, d)
}

// served waits until there can be Websites.
func served(ctx context.Context, d *demo.Demo) error {
	return d.Until(ctx, "the operator has brought its custom resource definition along", func(ctx context.Context) (bool, error) {
		err := d.Client.List(ctx, &v1alpha1.WebsiteList{}, client.InNamespace(d.Namespace))
		return err == nil, err
	})
}

// pageSays tells whether the page of a website contains a text, and its service exists.
func pageSays(d *demo.Demo, name, text string) func(context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		page, service := &corev1.ConfigMap{}, &corev1.Service{}
		err := d.Client.Get(ctx, client.ObjectKey{Namespace: d.Namespace, Name: name + "-page"}, page)
		if err == nil {
			err = d.Client.Get(ctx, client.ObjectKey{Namespace: d.Namespace, Name: name}, service)
		}
		return err == nil && strings.Contains(page.Data["index.html"], text), client.IgnoreNotFound(err)
	}
}

// allGone tells whether nothing of a website is left, and that has been told.
func allGone(d *demo.Demo, name string) func(context.Context) (bool, error) {
	left := map[client.Object]string{&v1alpha1.Website{}: name, &corev1.ConfigMap{}: name + "-page", &corev1.Service{}: name}
	return func(ctx context.Context) (bool, error) {
		for obj, name := range left {
			err := d.Client.Get(ctx, client.ObjectKey{Namespace: d.Namespace, Name: name}, obj)
			if !apierrors.IsNotFound(err) {
				return false, err
			}
		}
		return d.Told("-", "website/"+name) && d.Told("-", "configmap/"+name+"-page") && d.Told("-", "service/"+name), nil
	}
}
