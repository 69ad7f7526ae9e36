package main

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// withControllerRuntime is a manager with one controller, as its users build them.
func (w coldStart) withControllerRuntime(ctx context.Context, b *testing.B) error {
	m, err := manager.New(w.config, manager.Options{
		Scheme:         scheme.Scheme,
		Logger:         controllerRuntimeLogger(),
		Metrics:        server.Options{BindAddress: "0"},
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return w.mapper, nil },
		Client:         client.Options{HTTPClient: w.http},
		Cache:          cache.Options{HTTPClient: w.http, DefaultNamespaces: map[string]cache.Config{w.namespace: {}}},
	})
	if err != nil {
		return err
	}
	done := newCountdown(len(w.primaries))
	r := &childReconciler{client: m.GetClient(), create: creator(m.GetClient(), done)}
	isPrimary := predicate.NewPredicateFuncs(func(obj client.Object) bool { return obj.GetLabels()[roleLabel] == rolePrimary })
	err = builder.ControllerManagedBy(m).
		Named("coldstart").
		For(&corev1.ConfigMap{}, builder.WithPredicates(isPrimary)).
		Owns(&corev1.ConfigMap{}).
		WithOptions(controller.Options{MaxConcurrentReconciles: w.workers, SkipNameValidation: new(true)}).
		Complete(r)
	if err != nil {
		return err
	}
	return w.counted(ctx, b, m.Start, done, &r.count)
}

// childReconciler is a reconciler as an author writes it: one child for each primary.
type childReconciler struct {
	client client.Client
	create func(ctx context.Context, child *corev1.ConfigMap) error
	count  atomic.Int64
}

// Reconcile implements reconcile.Reconciler.
func (r *childReconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	r.count.Add(1)
	var primary, current corev1.ConfigMap
	if err := r.client.Get(ctx, request.NamespacedName, &primary); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	desired := desiredChild(&primary, "-child")
	err := r.client.Get(ctx, client.ObjectKeyFromObject(desired), &current)
	switch {
	case apierrors.IsNotFound(err):
		return reconcile.Result{}, r.create(ctx, desired)
	case err != nil:
		return reconcile.Result{}, err
	case !upToDate(&current, desired):
		return reconcile.Result{}, errUnexpectedChange
	}
	return reconcile.Result{}, nil
}
