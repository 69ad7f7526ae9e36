package serviceprovider

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/operatorkit/operatorkit/internal/faults"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/clusters"
)

// channelPause is after which time a channel that is full is tried again.
const channelPause = time.Second

// ConfigReconciler tells the APIReconcilers that share its update channel that the provider's config has changed. It sends the
// config as it is by then; one that is gone is sent as an empty object with the name. A ConfigReconcilerBuilder makes it.
type ConfigReconciler[T Config] struct {
	platform *clusters.Cluster
	empty    func() T
	name     string
	updates  chan event.GenericEvent
}

// ConfigReconcilerBuilder collects what a ConfigReconciler needs. The methods return the builder.
type ConfigReconcilerBuilder[T Config] struct{ made ConfigReconciler[T] }

// NewConfigReconcilerBuilder returns a builder. T is a pointer.
func NewConfigReconcilerBuilder[T Config]() *ConfigReconcilerBuilder[T] {
	return &ConfigReconcilerBuilder[T]{}
}

// PlatformCluster sets the cluster with the config. Required.
func (b *ConfigReconcilerBuilder[T]) PlatformCluster(c *clusters.Cluster) *ConfigReconcilerBuilder[T] {
	b.made.platform = c
	return b
}

// EmptyObjectProvider sets the function that makes an empty config. Its type is known to the scheme of the platform cluster.
// Required.
func (b *ConfigReconcilerBuilder[T]) EmptyObjectProvider(emptyObj func() T) *ConfigReconcilerBuilder[T] {
	b.made.empty = emptyObj
	return b
}

// ProviderName sets the name of the config; others of the type are of other providers. Required.
func (b *ConfigReconcilerBuilder[T]) ProviderName(name string) *ConfigReconcilerBuilder[T] {
	b.made.name = name
	return b
}

// UpdateChannel sets the channel that is given to APIReconciler.SetupWithManager. Any size will do: one that is full is tried
// again later, and never waited for. Required.
func (b *ConfigReconcilerBuilder[T]) UpdateChannel(c chan event.GenericEvent) *ConfigReconcilerBuilder[T] {
	b.made.updates = c
	return b
}

// MustBuild is Build that panics.
func (b *ConfigReconcilerBuilder[T]) MustBuild() *ConfigReconciler[T] {
	r, err := b.Build()
	if err != nil {
		panic(err)
	}
	return r
}

// Build returns the reconciler, or an error for which framework.IsInvalidConfig holds and which lists every fault.
func (b *ConfigReconcilerBuilder[T]) Build() (*ConfigReconciler[T], error) {
	var wrong faults.List
	wrong.If(b.made.platform == nil, "PlatformCluster must be set")
	wrong.If(b.made.empty == nil, "EmptyObjectProvider must be set")
	wrong.If(b.made.name == "", "ProviderName must be set")
	wrong.If(b.made.updates == nil, "UpdateChannel must be set")
	if b.made.platform != nil && b.made.empty != nil {
		_, err := apiutil.GVKForObject(b.made.empty(), b.made.platform.Scheme())
		wrong.If(err != nil, "EmptyObjectProvider: %v", err)
	}
	if err := wrong.Of("ConfigReconcilerBuilder"); err != nil {
		return nil, err
	}
	r := b.made
	return &r, nil
}

// Reconcile sends the config to the channel, if it is the provider's. It does not wait for a receiver: while there is none, it asks
// to be called again.
func (r *ConfigReconciler[T]) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	if req.Name != r.name {
		return ctrl.Result{}, nil
	}
	config := r.empty()
	err := r.platform.Client().Get(ctx, req.NamespacedName, config)
	switch {
	case apierrors.IsNotFound(err):
		config = r.empty()
		config.SetNamespace(req.Namespace)
		config.SetName(req.Name)
	case err != nil:
		return ctrl.Result{}, fmt.Errorf("read config %s from cluster %q: %w", req, r.platform.ID(), err)
	}
	select {
	case r.updates <- event.GenericEvent{Object: config}:
		return ctrl.Result{}, nil
	default:
		return ctrl.Result{RequeueAfter: channelPause}, nil
	}
}

// SetupWithManager adds a controller for the config to the manager, which watches that one object.
func (r *ConfigReconciler[T]) SetupWithManager(mgr ctrl.Manager) error {
	config := r.empty()
	config.SetName(r.name)
	c, err := controller.New(r.name+"-config", mgr, controller.Options{Reconciler: r})
	if err == nil {
		_, err = watch(mgr, c, r.platform, only(config), enqueue)
	}
	if err != nil {
		return fmt.Errorf("set up the controller of config %q: %w", r.name, err)
	}
	return nil
}
