package machines

import (
	"context"
	"errors"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/identity"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/operator/machines/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/deployment/docker"
)

// naming is the resource that has the names on a machine lead to the containers that work now, whatever happens to them. It is no part of
// plans: names follow what containers do.
type naming struct{ *machineFramework }

var _ framework.Planner = (*naming)(nil)

// Name implements framework.Resource.
func (n *naming) Name() string { return "names" }

// EnsureCreated implements framework.Resource. When a machine answers again it is called again.
func (n *naming) EnsureCreated(ctx context.Context, obj any) error {
	m := obj.(*v1alpha1.Machine)
	c, err := n.engines.cluster(m.Namespace)
	if err != nil {
		return err
	}
	ctx = identity.NewContext(ctx, &identity.Scope{Identity: n.deployer.Identity()})
	if status, ok := c.Status(m.Name); !ok || !status.Connected {
		return nil
	}
	if err := c.UpdateNames(ctx, m.Name); !errors.Is(err, docker.ErrUnreachable) {
		return err
	}
	return nil
}

// EnsureDeleted implements framework.Resource. Services are still there while they move away.
func (n *naming) EnsureDeleted(ctx context.Context, obj any) error { return n.EnsureCreated(ctx, obj) }

// Plan implements framework.Planner.
func (n *naming) Plan(context.Context, plan.Event, any) ([]plan.Change, error) { return nil, nil }
