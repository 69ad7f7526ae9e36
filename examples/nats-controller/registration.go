package gateways

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/operatorkit/operatorkit/examples/nats-controller/registry"
	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/resource/keyedresource"
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

// registrationName is the name of the resource that registers gateways.
const registrationName = "registration"

// newRegistration is how a gateway is registered. What somebody else has registered is not touched, by the mark that stands there as
// the owner. The registry is asked itself: what was polled may be from before the last change.
func (c *Controller) newRegistration() (framework.Resource, error) {
	return keyedresource.New(keyedresource.Config[*Gateway, registry.Registration]{
		Name: registrationName, Logger: c.logger,
		Current: func(ctx context.Context, g *Gateway) ([]registry.Registration, error) {
			r, err := c.registry.Get(ctx, g.Name)
			if r == nil {
				return nil, err
			}
			return []registry.Registration{*r}, nil
		},
		Desired: func(ctx context.Context, g *Gateway) ([]registry.Registration, error) {
			return []registry.Registration{{Name: g.Name, Owner: keyedresource.Mark(ctx), Address: g.Backend, Hosts: g.Hosts}}, nil
		},
		Key:  func(r registry.Registration) string { return r.Name },
		Mark: func(r registry.Registration) string { return r.Owner },
		Keep: func(current, desired registry.Registration) registry.Registration {
			desired.Version = current.Version
			return desired
		},
		// Through the source, so that it has what was written before the next poll.
		Put: func(ctx context.Context, _ *Gateway, r registry.Registration) error {
			return c.registrations.Write(ctx, informer.Key{Name: r.Name}, func(ctx context.Context) (registry.Registration, error) {
				err := c.registry.Put(ctx, &r)
				return r, conflict(r.Name, err)
			})
		},
		Delete: func(ctx context.Context, _ *Gateway, r registry.Registration) error {
			return c.registrations.Delete(ctx, informer.Key{Name: r.Name}, func(ctx context.Context) error {
				return conflict(r.Name, c.registry.Delete(ctx, &r))
			})
		},
	})
}

// conflict gives the error for a registration that has changed meanwhile the kind for which everything is computed anew, soon.
func conflict(name string, err error) error {
	if errors.Is(err, registry.ErrConflict) {
		return apierrors.NewConflict(schema.GroupResource{Resource: "registrations"}, name, err)
	}
	return err
}
