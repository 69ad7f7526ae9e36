package story

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gateways "github.com/operatorkit/operatorkit/examples/nats-controller"
)

// condition is what the story waits for.
type condition = func(context.Context) (bool, error)

// isKept is true when everything is there for a gateway and as it should be.
func (w *world) isKept(name string) condition {
	return func(ctx context.Context) (bool, error) {
		g, err := w.gateways.Get(ctx, name)
		if err != nil {
			return false, err
		}
		certificate, err := w.certificates.Get(ctx, g.Certificate)
		if err != nil {
			return false, err
		}
		fingerprint, _, err := certificate.Inspect()
		if err != nil {
			return false, err
		}
		cm := &corev1.ConfigMap{}
		if err := w.Client.Get(ctx, client.ObjectKey{Namespace: w.Namespace, Name: name}, cm); err != nil {
			return false, err
		}
		registration, err := w.registry.Get(ctx, name)
		if err != nil {
			return false, err
		}
		for _, host := range g.Hosts {
			route, err := w.routes.Get(ctx, host)
			if err != nil || route.Backend != g.Backend {
				return false, err
			}
		}
		return cm.Data[gateways.BackendKey] == g.Backend && cm.Data[gateways.FingerprintKey] == fingerprint &&
			registration != nil && registration.Address == g.Backend && slices.Equal(registration.Hosts, g.Hosts) &&
			meta.IsStatusConditionTrue(g.Conditions, gateways.ReadyCondition), nil
	}
}

// says is true when a gateway gives that reason for how it is.
func (w *world) says(name, reason string) condition {
	return func(ctx context.Context) (bool, error) {
		g, err := w.gateways.Get(ctx, name)
		if err != nil {
			return false, err
		}
		ready := meta.FindStatusCondition(g.Conditions, gateways.ReadyCondition)
		return ready != nil && ready.Reason == reason, nil
	}
}

// isGone is true when there is nothing left of a gateway, and that has been told.
func (w *world) isGone(name string) condition {
	return func(ctx context.Context) (bool, error) {
		_, errGateway := w.gateways.Get(ctx, name)
		_, errRoute := w.routes.Get(ctx, name+".example.com")
		errConfigMap := w.Client.Get(ctx, client.ObjectKey{Namespace: w.Namespace, Name: name}, &corev1.ConfigMap{})
		for _, err := range []error{errGateway, errRoute, errConfigMap} {
			if !apierrors.IsNotFound(err) {
				return false, err
			}
		}
		registration, err := w.registry.Get(ctx, name)
		if registration != nil || err != nil {
			return false, err
		}
		for _, thing := range []string{"gateway/" + name, "route/" + name + ".example.com", "configmap/" + name, "registration/" + name} {
			if !w.Told("-", thing) {
				return false, fmt.Errorf("nobody has told yet that %s is gone", thing)
			}
		}
		return true, nil
	}
}
