package statemanagers

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/internal/claims"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// EventClaimed is the reason of the events on a StateManagementProvider that say that another operator has it.
const EventClaimed = "ClaimedByAnother"

// newClaims returns the claims of a state manager. It claims the provider, which is the object of the one framework by its name, and that
// of each set in the other. Whoever has a provider has all of its sets.
func (s *sources) newClaims(d *operator.Dependencies) *claims.Claims {
	return &claims.Claims{
		Client: d.Client, Kind: v1alpha1.StateManagementProviderKind,
		Of: func(ctx context.Context, obj any) (client.Object, error) {
			name, ok := obj.(string)
			if !ok {
				name = providerOf(obj.(*v1alpha1.ServiceSet))
			}
			provider, err := s.provider(ctx, name)
			if err != nil || provider == nil {
				return nil, err
			}
			return provider, nil
		},
	}
}

// providerClaim claims the providers before their status is written, and tells once who else has one.
type providerClaim struct {
	*providers
	// told are the refusals that were told last, by the provider's name.
	told sync.Map
}

var _ framework.Planner = (*providerClaim)(nil)

// Name implements framework.Resource.
func (c *providerClaim) Name() string { return claims.ResourceName }

// Rights implements framework.RightsLister.
func (c *providerClaim) Rights() []framework.Right {
	return []framework.Right{{Kind: providerKind, Verbs: []string{"get", "patch"}}}
}

// EnsureCreated implements framework.Resource.
func (c *providerClaim) EnsureCreated(ctx context.Context, obj any) error {
	name := obj.(string)
	err := c.claims[name].Resource().EnsureCreated(ctx, obj)
	if !framework.IsPermanent(err) {
		c.told.Delete(name)
		return err
	}
	provider, readErr := c.provider(ctx, name)
	if before, _ := c.told.Swap(name, err.Error()); before != err.Error() && readErr == nil && provider != nil {
		framework.Recorder(ctx, c.d.Recorder).Event(provider, corev1.EventTypeWarning, EventClaimed, err.Error())
	}
	return err
}

// EnsureDeleted implements framework.Resource.
func (c *providerClaim) EnsureDeleted(context.Context, any) error { return nil }

// Plan implements framework.Planner.
func (c *providerClaim) Plan(ctx context.Context, event plan.Event, obj any) ([]plan.Change, error) {
	return c.claims[obj.(string)].Resource().(framework.Planner).Plan(ctx, event, obj)
}
