package deployment

import (
	"context"
	"fmt"
	"time"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/resource/deployment/api"
)

// ContainerRef is a container that is there when a plan is made.
type ContainerRef struct {
	ID        string
	Name      string
	MachineID string
	// GracePeriod is how long it may take to stop, by its own specification.
	GracePeriod time.Duration
	// Ports are the fixed ports of the machine that it holds while it runs.
	Ports []api.PortSpec
}

func refOf(machineID string, c *api.Container) ContainerRef {
	return ContainerRef{ID: c.ID, Name: c.Name, MachineID: machineID, GracePeriod: c.Spec.Container.GracePeriod(), Ports: c.HostPorts()}
}

// untilReady waits until a container works, which may take as long as its specification says.
func untilReady(ctx context.Context, cli Client, machineID, container string, wait api.WaitOptions) error {
	defer framework.BeginWait(ctx, max(wait.Monitor, wait.HealthTimeout))()
	return cli.WaitContainerReady(ctx, machineID, container, wait)
}

// stop stops it. What it has begun it waits for when ctx ends, as the engine goes on all the same: who looked at the container meanwhile
// would take it for one that works.
func (r *ContainerRef) stop(ctx context.Context, cli Client) error {
	if ctx.Err() != nil {
		return on(ctx, r.MachineID, "stop container "+r.Name, context.Cause(ctx))
	}
	ctx, cancel := cleanup(ctx, r.GracePeriod)
	defer cancel()
	defer framework.BeginWait(ctx, r.GracePeriod)()
	return on(ctx, r.MachineID, "stop container "+r.Name, gone(cli.StopContainer(ctx, r.MachineID, r.ID, r.GracePeriod)))
}

func (r *ContainerRef) start(ctx context.Context, cli Client) error {
	return on(ctx, r.MachineID, "start container "+r.Name, heed(cli, r.MachineID, r.Ports, cli.StartContainer(ctx, r.MachineID, r.ID)))
}

// remove stops it first, because engines kill what they are told to remove.
func (r *ContainerRef) remove(ctx context.Context, cli Client) error {
	if err := r.stop(ctx, cli); err != nil {
		return err
	}
	return on(ctx, r.MachineID, "remove container "+r.Name, gone(cli.RemoveContainer(ctx, r.MachineID, r.ID)))
}

// verify tells whether it works.
func (r *ContainerRef) verify(ctx context.Context, cli Client) error {
	c, err := cli.InspectContainer(ctx, r.MachineID, r.ID)
	if err == nil && !c.Ready() {
		err = fmt.Errorf("it is %s %s: %w", c.State, c.Health, api.ErrUnhealthy)
	}
	return on(ctx, r.MachineID, "look after container "+r.Name, err)
}
