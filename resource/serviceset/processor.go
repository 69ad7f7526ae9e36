package serviceset

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// Processor writes ServiceSets.
type Processor struct {
	client.Client

	// ProviderSpec and Services are for those who use the processor: it does not look at them.
	ProviderSpec v1alpha1.StateManagementProviderConfig
	Services     []v1alpha1.Service
}

// NewProcessor returns a processor that writes with a client.
func NewProcessor(c client.Client) *Processor { return &Processor{Client: c} }

// CreateOrUpdateServiceSet creates, updates or deletes a ServiceSet, or does nothing, as the operation says. The set is written as it
// is, and gets what the server answers.
//
// A set that exists already, and one that was changed meanwhile or is gone, are no errors: the write is left out, and the event of the
// other write leads to the next attempt.
func (p *Processor) CreateOrUpdateServiceSet(ctx context.Context, op v1alpha1.ServiceSetOperation, serviceSet *v1alpha1.ServiceSet) error {
	if op == v1alpha1.ServiceSetOperationNone {
		return nil
	}
	if serviceSet == nil {
		return errors.New("write a ServiceSet: there is none")
	}
	var err error
	switch op {
	case v1alpha1.ServiceSetOperationCreate:
		err = p.Create(ctx, serviceSet)
		if apierrors.IsAlreadyExists(err) {
			return nil
		}
	case v1alpha1.ServiceSetOperationUpdate:
		err = p.Update(ctx, serviceSet)
		if apierrors.IsConflict(err) {
			return nil
		}
	case v1alpha1.ServiceSetOperationDelete:
		err = client.IgnoreNotFound(p.Delete(ctx, serviceSet, client.Preconditions{UID: &serviceSet.UID, ResourceVersion: &serviceSet.ResourceVersion}))
		if apierrors.IsConflict(err) {
			return nil
		}
	default:
		err = fmt.Errorf("the operation %q is none of create, update, delete and none", op)
	}
	if err != nil {
		return fmt.Errorf("%s ServiceSet %s: %w", op, client.ObjectKeyFromObject(serviceSet), err)
	}
	return nil
}
