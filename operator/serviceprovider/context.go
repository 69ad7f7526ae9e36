package serviceprovider

import "context"

type (
	clustersKey      struct{}
	configKey[C any] struct{}
	objectKey        struct{}
)

// withContext puts the config and the clusters of a reconciliation into its context.
func withContext[C Config](ctx context.Context, config C, found ClusterContext) context.Context {
	return context.WithValue(context.WithValue(ctx, configKey[C]{}, config), clustersKey{}, found)
}

// ClustersFrom returns the clusters of the object that is being reconciled, and false outside of a reconciliation.
func ClustersFrom(ctx context.Context) (ClusterContext, bool) {
	found, ok := ctx.Value(clustersKey{}).(ClusterContext)
	return found, ok
}

// ObjectFrom returns the object that a resource is run for, of which the status is written at the end of the reconciliation, and
// false outside of one: what a resource changes in the copy that it gets itself counts for nothing. In a plan the status is not
// written.
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
