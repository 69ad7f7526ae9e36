package deployment

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

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
		err = cli.WaitContainerReady(ctx, o.MachineID, o.Container.ID, o.Wait)
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

// Format implements Operation.
func (o *StartContainerOperation) Format(resolver NameResolver) string {
	verb := "start"
	if o.Running {
		verb = "wait for"
	}
	return fmt.Sprintf("+ %s container %s on %s", verb, o.Container.show(resolver), orIDs(resolver).MachineName(o.MachineID))
}

// String implements Operation.
func (o *StartContainerOperation) String() string { return o.Format(nil) }

// MarshalJSON implements Operation.
func (o *StartContainerOperation) MarshalJSON() ([]byte, error) {
	return json.Marshal(operationJSON{
		Operation: "start", MachineID: o.MachineID, ServiceID: o.ServiceID, ContainerID: o.Container.ID, ContainerName: o.Container.Name,
	})
}

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

// Format implements Operation.
func (o *StopContainerOperation) Format(resolver NameResolver) string {
	return fmt.Sprintf("- stop container %s on %s", o.Container.show(resolver), orIDs(resolver).MachineName(o.MachineID))
}

// String implements Operation.
func (o *StopContainerOperation) String() string { return o.Format(nil) }

// MarshalJSON implements Operation.
func (o *StopContainerOperation) MarshalJSON() ([]byte, error) {
	return json.Marshal(operationJSON{
		Operation: "stop", MachineID: o.MachineID, ServiceID: o.ServiceID, ContainerID: o.Container.ID, ContainerName: o.Container.Name,
	})
}

// RemoveContainerOperation stops and removes a container from a machine. Its named volumes stay.
type RemoveContainerOperation struct {
	ServiceID string
	MachineID string
	// Container is the container.
	Container ContainerRef
	// Reason says why.
	Reason string
}

// Execute implements Operation.
func (o *RemoveContainerOperation) Execute(ctx context.Context, cli Client) error {
	return track(ctx, o, o.MachineID, func() error { return o.Container.remove(ctx, cli) })
}

func (o *RemoveContainerOperation) machine() string { return o.MachineID }

// Format implements Operation.
func (o *RemoveContainerOperation) Format(resolver NameResolver) string {
	line := fmt.Sprintf("- remove container %s on %s", o.Container.show(resolver), orIDs(resolver).MachineName(o.MachineID))
	if o.Reason != "" {
		line += ": " + o.Reason
	}
	return line
}

// String implements Operation.
func (o *RemoveContainerOperation) String() string { return o.Format(nil) }

// MarshalJSON implements Operation.
func (o *RemoveContainerOperation) MarshalJSON() ([]byte, error) {
	return json.Marshal(operationJSON{
		Operation: "remove", MachineID: o.MachineID, ServiceID: o.ServiceID, ContainerID: o.Container.ID,
		ContainerName: o.Container.Name, Reason: o.Reason,
	})
}
