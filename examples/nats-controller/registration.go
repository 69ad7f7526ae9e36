package gateways

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/operatorkit/operatorkit/examples/nats-controller/registry"
	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/identity"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/informer/pollinformer"
)

// listRegistrations asks the registry for all registrations, by name.
func (c *Controller) listRegistrations(ctx context.Context) (map[informer.Key]registry.Registration, error) {
	list, err := c.registry.List(ctx)
	registrations := map[informer.Key]registry.Registration{}
	for _, r := range list {
		registrations[informer.Key{Name: r.Name}] = r
	}
	return registrations, err
}

// gatewayOfRegistration names the gateway that a change in the registry concerns.
func gatewayOfRegistration(_ context.Context, registration any) []informer.Key {
	return []informer.Key{{Name: registration.(registry.Registration).Name}}
}

// ownerOf is what the registry says of who made the registration of a gateway: like every mark, it names the operator and the
// controller, and begins with its form.
func ownerOf(by identity.Identity, gateway string) string {
	return identity.Form + "/" + by.Component() + "/" + Kind + "/" + gateway
}

// registration is a resource written by hand: how a gateway is registered. Its state is nil where it is not.
type registration struct {
	registry *registry.Client
	polled   *pollinformer.Source[registry.Registration]
}

// Name implements framework.TypedCRUDResourceOps, as all that follows.
func (registration) Name() string { return "registration" }

// GetCurrentState asks the registry itself: what was polled may be from before the last change.
func (r registration) GetCurrentState(ctx context.Context, g *Gateway) (*registry.Registration, error) {
	return r.registry.Get(ctx, g.Name)
}

// GetDesiredState says how the gateway is to be registered.
func (registration) GetDesiredState(ctx context.Context, g *Gateway) (*registry.Registration, error) {
	return &registry.Registration{Name: g.Name, Owner: ownerOf(identity.From(ctx).Identity, g.Name), Address: g.Backend, Hosts: g.Hosts}, nil
}

// NewUpdatePatch compares the two. What somebody else has registered is not touched, here and when the gateway goes.
func (registration) NewUpdatePatch(_ context.Context, _ *Gateway, current, desired *registry.Registration) (*framework.TypedPatch[*registry.Registration], error) {
	patch := framework.NewTypedPatch[*registry.Registration]()
	switch {
	case current == nil:
		patch.SetCreateChange(desired)
	case current.Owner != desired.Owner:
		return nil, fmt.Errorf("%s is registered by %q: give the gateway another name", desired.Name, current.Owner)
	default:
		next := *desired
		next.Version = current.Version
		if !reflect.DeepEqual(*current, next) {
			patch.SetUpdateChange(&next)
		}
	}
	return patch, nil
}

// NewDeletePatch takes away what is there.
func (registration) NewDeletePatch(_ context.Context, _ *Gateway, current, desired *registry.Registration) (*framework.TypedPatch[*registry.Registration], error) {
	patch := framework.NewTypedPatch[*registry.Registration]()
	if current != nil && current.Owner == desired.Owner {
		patch.SetDeleteChange(current)
	}
	return patch, nil
}

// ApplyCreateChange registers the gateway.
func (r registration) ApplyCreateChange(ctx context.Context, _ *Gateway, s *registry.Registration) error {
	return r.put(ctx, s)
}

// ApplyUpdateChange registers it anew.
func (r registration) ApplyUpdateChange(ctx context.Context, _ *Gateway, s *registry.Registration) error {
	return r.put(ctx, s)
}

// ApplyDeleteChange takes it from the registry.
func (r registration) ApplyDeleteChange(ctx context.Context, _ *Gateway, s *registry.Registration) error {
	if err := r.registry.Delete(ctx, s); err != nil {
		return conflict(s.Name, err)
	}
	r.polled.Deleted(informer.Key{Name: s.Name})
	return nil
}

// put writes a registration, and tells the source of it: what others do to it before the next poll is a change then.
func (r registration) put(ctx context.Context, s *registry.Registration) error {
	written := *s
	if err := r.registry.Put(ctx, &written); err != nil {
		return conflict(s.Name, err)
	}
	return r.polled.Wrote(informer.Key{Name: s.Name}, written)
}

// conflict gives the error for a registration that has changed meanwhile the kind for which everything is computed anew, soon.
func conflict(name string, err error) error {
	if errors.Is(err, registry.ErrConflict) {
		return apierrors.NewConflict(schema.GroupResource{Resource: "registrations"}, name, err)
	}
	return err
}
