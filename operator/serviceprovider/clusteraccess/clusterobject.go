package clusteraccess

import (
	"cmp"
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/v1alpha1"
)

// ClusterObject returns the Cluster object of a cluster of an object, with its purposes and labels, as it is on the platform now. Before
// a cluster was found for the object, and for one that is not asked for, it is an error for which apierrors.IsNotFound holds.
//
// It takes the right to get Clusters in Config.ClusterNamespace, which service providers don't have unless the platform gives it to
// them: the Secrets beside the Clusters are no business of theirs.
func (c *Clusters[D]) ClusterObject(ctx context.Context, request reconcile.Request, id string) (*v1alpha1.Cluster, error) {
	if c.config.ClusterNamespace == "" {
		return nil, fmt.Errorf("%w: clusteraccess.Config: ClusterNamespace must be set to read the Cluster object of the %s cluster of %s",
			framework.ErrInvalidConfig, id, request)
	}
	ar, err := c.AccessRequest(ctx, request, id)
	if err != nil {
		return nil, err
	}
	ref := cmp.Or(ar.Status.ClusterRef, ar.Spec.ClusterRef)
	if ref == nil {
		return nil, fmt.Errorf("there is no cluster yet for AccessRequest %s/%s, the %s one of %s: %w", ar.Namespace, ar.Name, id, request,
			apierrors.NewNotFound(v1alpha1.GroupVersion.WithResource("clusters").GroupResource(), id))
	}
	cluster := &v1alpha1.Cluster{}
	if err := c.client.Get(ctx, client.ObjectKey{Namespace: c.config.ClusterNamespace, Name: ref.Name}, cluster); err != nil {
		return nil, fmt.Errorf("read Cluster %s/%s, the %s one of %s: %w", c.config.ClusterNamespace, ref.Name, id, request, err)
	}
	return cluster, nil
}
