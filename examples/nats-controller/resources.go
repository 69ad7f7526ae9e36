package gateways

import (
	"context"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/identity"
	"github.com/operatorkit/operatorkit/informer/natsinformer"
	"github.com/operatorkit/operatorkit/operator/natscontroller"
	"github.com/operatorkit/operatorkit/resource/natsresource"
	"github.com/operatorkit/operatorkit/resource/objectresource"
)

// The data of a ConfigMap.
const (
	HostsKey       = "hosts"
	BackendKey     = "backend"
	FingerprintKey = "certificate.sha256"
	ExpiresKey     = "certificate.expires"
)

// newResources makes the resources, in the order in which they are reconciled: a gateway is registered when it serves.
func (c *Controller) newResources(namespace string) ([]framework.Resource, error) {
	configMaps, err := objectresource.New(objectresource.Config[*Gateway]{
		Name: "config-map", Client: c.kube.Client, Stores: []objectresource.Store{c.configMaps}, Logger: c.logger,
		Namespaces: func(*Gateway) []string { return []string{namespace} },
		Owner: func(g *Gateway) (objectresource.Owner, error) {
			return objectresource.Owner{GVK: schema.GroupVersionKind{Kind: Kind}, Name: g.Name}, nil
		},
		Desired: func(ctx context.Context, g *Gateway) ([]client.Object, error) {
			return []client.Object{c.newConfigMap(ctx, namespace, g)}, nil
		},
	})
	if err != nil {
		return nil, err
	}
	routes, err := natsresource.New(natsresource.Config[*Gateway, *Route]{
		Name: "routes", Kind: Kind, Bucket: c.routes.Bucket(), Source: c.routes, Logger: c.logger, Desired: newRoutes,
	})
	if err != nil {
		return nil, err
	}
	registrations, err := c.newRegistration()
	if err != nil {
		return nil, err
	}
	return []framework.Resource{configMaps, routes, registrations}, nil
}

// newConfigMap is what the proxy of a gateway has to know. Without a certificate it can't speak TLS.
func (c *Controller) newConfigMap(ctx context.Context, namespace string, g *Gateway) *corev1.ConfigMap {
	cm := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: g.Name},
		Data:       map[string]string{HostsKey: strings.Join(g.Hosts, "\n"), BackendKey: g.Backend},
	}
	if fingerprint, expires, err := c.inspectCertificate(g); err == nil {
		cm.Data[FingerprintKey], cm.Data[ExpiresKey] = fingerprint, expires.Format(time.RFC3339)
	}
	// By this mark, the garbage collection knows whose it is.
	natscontroller.SetOwner(cm, identity.From(ctx).Identity, Kind, g.Name)
	return cm
}

// newRoutes are the routes of a gateway, one for each host.
func newRoutes(_ context.Context, g *Gateway) ([]*Route, error) {
	var routes []*Route
	for _, host := range g.Hosts {
		routes = append(routes, &Route{Meta: natsinformer.Meta{Name: host}, Backend: g.Backend})
	}
	return routes, nil
}
