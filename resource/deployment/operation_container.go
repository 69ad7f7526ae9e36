package deployment

import (
	"context"
	"errors"

	"github.com/operatorkit/operatorkit/resource/deployment/api"
)

// StartContainerOperation starts a container that is there, if it does not run yet, and waits until it works.
type StartContainerOperation struct {
	ServiceID string
	MachineID string
	// Container is the container.
	Container ContainerRef
	// Running tells that it runs, and is only waited for.
	Running bool
	// Wait is how it is waited for.
	Wait api.WaitOptions
}

// Execute implements Operation.
func (o *StartContainerOperation) Execute(ctx context.Context, cli Client) error {
	return perform(ctx, cli, o)
}

func (o *StartContainerOperation) machine() string { return o.MachineID }

func (o *StartContainerOperation) apply(ctx context.Context, cli Client) error {
	err := o.Container.start(ctx, cli)
	if err == nil {
		err = untilReady(ctx, cli, o.MachineID, o.Container.ID, o.Wait)
		err = on(ctx, o.MachineID, "wait for container "+o.Container.Name, withLines(ctx, cli, o.MachineID, o.Container.ID, err))
	}
	if err != nil {
		return errors.Join(err, o.revert(ctx, cli))
	}
	return nil
}

func (o *StartContainerOperation) verify(ctx context.Context, cli Client) error {
	return o.Container.verify(ctx, cli)
}

func (o *StartContainerOperation) commit(context.Context, Client) error { return nil }

func (o *StartContainerOperation) revert(ctx context.Context, cli Client) error {
	if o.Running {
		return nil
	}
	ctx, cancel := cleanup(ctx, o.Container.GracePeriod)
	defer cancel()
	return persist(ctx, func() error { return o.Container.stop(ctx, cli) })
}

// Describe implements Operation.
func (o *StartContainerOperation) Describe() Description {
	return Description{
		Operation: "start", MachineID: o.MachineID, ServiceID: o.ServiceID, ContainerID: o.Container.ID, ContainerName: o.Container.Name,
		Running: o.Running,
	}
}

// Format implements Operation.
func (o *StartContainerOperation) Format(resolver NameResolver) string {
	return o.Describe().Format(resolver)
}

// String implements Operation.
func (o *StartContainerOperation) String() string { return o.Describe().String() }

// StopContainerOperation stops a container on a machine.
type StopContainerOperation struct {
	ServiceID string
	MachineID string
	// Container is the container.
	Container ContainerRef
}

// Execute implements Operation.
func (o *StopContainerOperation) Execute(ctx context.Context, cli Client) error {
	return track(ctx, o, o.MachineID, func() error { return o.Container.stop(ctx, cli) })
}

func (o *StopContainerOperation) machine() string { return o.MachineID }

// Describe implements Operation.
func (o *StopContainerOperation) Describe() Description {
	return Description{
		Operation: "stop", MachineID: o.MachineID, ServiceID: o.ServiceID, ContainerID: o.Container.ID, ContainerName: o.Container.Name,
	}
}

// Format implements Operation.
func (o *StopContainerOperation) Format(resolver NameResolver) string {
	return o.Describe().Format(resolver)
}

// String implements Operation.
func (o *StopContainerOperation) String() string { return o.Describe().String() }

// RemoveContainerOperation stops and removes a container from a machine. Its named volumes stay.
type RemoveContainerOperation struct {
	ServiceID string
	MachineID string
	// Container is the container.
	Container ContainerRef
	// Reason says why.
	Reason string
	// Job is set for the container of a job that has not ended. It is set aside first, so that the end that stopping it brings is not taken
	// for that of the job.
	Job bool
}

// Execute implements Operation.
func (o *RemoveContainerOperation) Execute(ctx context.Context, cli Client) error {
	return track(ctx, o, o.MachineID, func() error {
		if o.Job {
			if err := gone(cli.SetAside(ctx, o.MachineID, o.Container.ID)); err != nil {
				return on(ctx, o.MachineID, "set aside container "+o.Container.Name, err)
			}
		}
		return o.Container.remove(ctx, cli)
	})
}

func (o *RemoveContainerOperation) machine() string { return o.MachineID }

// Describe implements Operation.
func (o *RemoveContainerOperation) Describe() Description {
	return Description{
		Operation: "remove", MachineID: o.MachineID, ServiceID: o.ServiceID, ContainerID: o.Container.ID, ContainerName: o.Container.Name,
		Reason: o.Reason,
	}
}

// Format implements Operation.
func (o *RemoveContainerOperation) Format(resolver NameResolver) string {
	return o.Describe().Format(resolver)
}

// String implements Operation.
func (o *RemoveContainerOperation) String() string { return o.Describe().String() }
