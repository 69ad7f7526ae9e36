package gateways

import (
	"context"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/operatorkit/operatorkit/examples/nats-controller/registry"
	"github.com/operatorkit/operatorkit/framework/identity"
	"github.com/operatorkit/operatorkit/resource/keyedresource"
)

// GarbageSecondaries implements natscontroller.IController: the entries and the ConfigMaps of gateways that are gone are
// collected as by default, and so are their registrations, of which the default does not know.
func (c *Controller) GarbageSecondaries() {
	c.ControllerRuntime.GarbageSecondaries()
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	orphans, err := c.orphanedRegistrations(ctx)
	for _, o := range orphans {
		if err == nil {
			err = c.registry.Delete(ctx, &o)
		}
	}
	if err != nil {
		c.logger.Errorf(ctx, err, "registrations without a gateway are not collected")
	}
}

// orphanedRegistrations are the registrations of gateways that are gone for certain.
func (c *Controller) orphanedRegistrations(ctx context.Context) (orphans []registry.Registration, err error) {
	registrations, err := c.registry.List(ctx)
	if err != nil {
		return nil, err
	}
	scope := identity.Scope{Identity: c.Identity()}
	ofAll := keyedresource.MarkOf(scope.Mark(registrationName), "")
	for _, r := range registrations {
		name, ours := strings.CutPrefix(r.Owner, ofAll)
		if !ours || name != r.Name {
			continue
		}
		_, err := c.gateways.Bucket().Get(ctx, name)
		if apierrors.IsNotFound(err) {
			orphans = append(orphans, r)
		} else if err != nil {
			return nil, err
		}
	}
	return orphans, nil
}
