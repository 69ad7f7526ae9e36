package story

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// holds waits until something is so on every cluster, and says so.
func (w *world) holds(ctx context.Context, what string, fact func(context.Context, *cluster) error) error {
	return w.Until(ctx, what, func(ctx context.Context) (bool, error) {
		var errs []error
		for _, c := range w.clusters {
			errs = append(errs, fact(ctx, c))
		}
		err := errors.Join(errs...)
		return err == nil, err
	})
}

// shows tells whether the releases have these revisions, each given as "name: version status, …", the oldest first.
func (c *cluster) shows(histories ...string) error {
	releases, err := c.releases()
	if err != nil {
		return err
	}
	var errs []error
	for _, want := range histories {
		name, _, _ := strings.Cut(want, ":")
		r, ok := releases[name]
		if !ok {
			errs = append(errs, fmt.Errorf("cluster %s has no release %s", c.name, name))
			continue
		}
		revisions, err := c.history(r.Namespace, name)
		if got := name + ": " + strings.Join(revisions, ", "); err == nil && got != want {
			err = fmt.Errorf("cluster %s has %s, want %s", c.name, got, want)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// layersInOrder tells whether everything was there before what depends on it, and all objects are there.
func layersInOrder(ctx context.Context, c *cluster) error {
	releases, err := c.releases()
	if err != nil {
		return err
	}
	for _, names := range [][2]string{{"certificates", "gateway"}, {"gateway", "shop"}} {
		first, then := releases[names[0]], releases[names[1]]
		if first == nil || then == nil {
			return fmt.Errorf("cluster %s lacks the release %s or %s", c.name, names[0], names[1])
		}
		if !then.Info.FirstDeployed.After(first.Info.LastDeployed) {
			return fmt.Errorf("cluster %s had %s before %s", c.name, names[1], names[0])
		}
	}
	return errors.Join(
		c.get(ctx, &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "size"}}),
		c.get(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "platform", Name: "dashboards-traffic"}}),
		c.get(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "shop-page"}}),
	)
}

// servesShop tells whether shop has the name of its cluster in its address.
func servesShop(ctx context.Context, c *cluster) error {
	ingress := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "shop"}}
	if err := c.get(ctx, ingress); err != nil {
		return err
	}
	if got, want := ingress.Spec.Rules[0].Host, "shop."+c.name+".example.com"; got != want {
		return fmt.Errorf("cluster %s has shop at %s, want %s", c.name, got, want)
	}
	return nil
}

// servesGateway tells whether the gateway has so many ports.
func (c *cluster) servesGateway(ctx context.Context, ports int) error {
	gateway := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "platform", Name: "gateway"}}
	if err := c.get(ctx, gateway); err != nil {
		return err
	}
	if len(gateway.Spec.Ports) != ports {
		return fmt.Errorf("cluster %s: the gateway has %d ports, want %d", c.name, len(gateway.Spec.Ports), ports)
	}
	return nil
}

// goneInOrder tells whether nothing is left of docs and the dashboards, of which docs went first.
func (w *world) goneInOrder(ctx context.Context, c *cluster) error {
	docs, _ := w.progress.whenGone(c.name, "docs")
	dashboards, _ := w.progress.whenGone(c.name, "dashboards")
	if dashboards.Before(docs) {
		return fmt.Errorf("cluster %s lost the dashboards before docs", c.name)
	}
	left := []client.Object{
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "docs"}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "docs-page"}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "platform", Name: "dashboards-traffic"}},
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "platform", Name: "dashboards-viewer"}},
	}
	for _, obj := range left {
		if err := c.get(ctx, obj); !apierrors.IsNotFound(err) {
			return errors.Join(fmt.Errorf("cluster %s still has %T %s", c.name, obj, obj.GetName()), err)
		}
	}
	releases, err := c.releases()
	if releases["docs"] != nil {
		err = errors.Join(err, fmt.Errorf("cluster %s still has the release docs", c.name))
	}
	return err
}

// list shows what "helm list" shows on each cluster.
func (w *world) list() error {
	for _, c := range w.clusters {
		releases, err := c.releases()
		if err != nil {
			return err
		}
		var lines []string
		for name, r := range releases {
			lines = append(lines, fmt.Sprintf("%s %s (revision %d, %s)", name, r.Chart.Metadata.Version, r.Version, r.Info.Status))
		}
		slices.Sort(lines)
		w.Note(fmt.Sprintf("helm list on %s: %s", c.name, strings.Join(lines, ", ")))
	}
	return nil
}
