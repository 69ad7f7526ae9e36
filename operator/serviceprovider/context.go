package serviceprovider

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/operatorkit/operatorkit/framework"
)

type (
	clustersKey      struct{}
	configKey[C any] struct{}
	objectKey        struct{}
)

// withContext puts the config and the clusters of a reconciliation into its context.
func withContext[C Config](ctx context.Context, config C, found ClusterContext) context.Context {
	return context.WithValue(context.WithValue(ctx, configKey[C]{}, config), clustersKey{}, found)
}

// askingContext puts copies of the config and of the object into the context in which access is asked for.
func askingContext[T API, C Config](ctx context.Context, config C, obj T) context.Context {
	return context.WithValue(context.WithValue(ctx, configKey[C]{}, copyOf(config)), objectKey{}, copyOf(obj))
}

// AccessData makes of a function of an object and its config one that finds both in the context in which a ClusterAccessProvider is
// asked to Reconcile: what is asked for can depend on them. It is for clusteraccess.TypedProviderConfig.
func AccessData[D any, T API, C Config](compute func(obj T, config C) (D, error)) func(context.Context, reconcile.Request) (D, error) {
	return func(ctx context.Context, request reconcile.Request) (data D, err error) {
		obj, there := ObjectFrom[T](ctx)
		config, configured := ConfigFrom[C](ctx)
		if !there || !configured {
			return data, fmt.Errorf("%w: serviceprovider.AccessData of %s: there is no %T with a %T in the context: it is for the access of an APIReconciler of these types",
				framework.ErrExecutionFailed, request, obj, config)
		}
		return compute(obj, config)
	}
}

// ClustersFrom returns the clusters of the object that is being reconciled, and false outside of a reconciliation.
func ClustersFrom(ctx context.Context) (ClusterContext, bool) {
	found, ok := ctx.Value(clustersKey{}).(ClusterContext)
	return found, ok
}

// ObjectFrom returns the object that a resource is run for, of which the status is written at the end of the reconciliation, and
// false outside of one: what a resource changes in the copy that it gets itself counts for nothing. In a plan the status is not
// written. While access is asked for, it is a copy of the object.
func ObjectFrom[T API](ctx context.Context) (T, bool) {
	obj, ok := ctx.Value(objectKey{}).(T)
	return obj, ok
}

// ConfigFrom returns the config that an object is reconciled with, and false outside of a reconciliation, or one with a config
// of another type. It must not be changed: all resources get the same one.
func ConfigFrom[C Config](ctx context.Context) (C, bool) {
	config, ok := ctx.Value(configKey[C]{}).(C)
	return config, ok
}
