package servicesets

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/operator/internal/statuses"
	"github.com/operatorkit/operatorkit/resource/serviceset"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// confirm makes sure, before something of MultiClusterServices is taken away, that they are still as they are known: a list may lack one
// that is there, or have it as it was, and what is taken away by mistake is gone. The error is a conflict then: the source is about to
// tell.
func (c *clusters) confirm(ctx context.Context, known []v1alpha1.MultiClusterService, operations []serviceset.OwnerOperation) error {
	for i := range operations {
		o := &operations[i]
		if o.Owner.Kind != v1alpha1.MultiClusterServiceKind || o.Operation == nil || !takesAway(o.Operation) {
			continue
		}
		name := o.Owner.Key.Name
		live := &v1alpha1.MultiClusterService{}
		err := c.live.Get(ctx, client.ObjectKey{Name: name}, live)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("look for MultiClusterService %s before something of it is taken away: %w", name, err)
		}
		same := slices.ContainsFunc(known, func(mcs v1alpha1.MultiClusterService) bool {
			return mcs.UID == live.UID && !statuses.SpecDiffers(&mcs, live)
		})
		if !same && c.config.MultiClusterServices.Matches(labels.Set(live.Labels)) {
			return apierrors.NewConflict(schema.GroupResource{Group: v1alpha1.GroupVersion.Group, Resource: "multiclusterservices"}, name,
				errors.New("it is not any more what the source has it for: nothing of it is taken away before that knows it"))
		}
	}
	return nil
}

// takesAway tells whether an operation takes a service out of a ServiceSet, or the set itself.
func takesAway(o *serviceset.Operation) bool {
	switch {
	case o.Operation == v1alpha1.ServiceSetOperationDelete:
		return true
	case o.Before == nil || o.ServiceSet == nil:
		return false
	}
	return slices.ContainsFunc(o.Before.Spec.Services, func(before v1alpha1.ServiceWithValues) bool {
		return !slices.ContainsFunc(o.ServiceSet.Spec.Services, func(s v1alpha1.ServiceWithValues) bool { return s.Key() == before.Key() })
	})
}
