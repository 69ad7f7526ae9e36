package deployment

import (
	"context"
	"errors"

	"github.com/operatorkit/operatorkit/resource/deployment/api"
)

// UpdateContainerOperation changes in place what can be: CPU, memory and the restart policy.
type UpdateContainerOperation struct {
	ServiceID string
	MachineID string
	// Container is the container.
	Container ContainerRef
	// Current is what it is now, Spec what it becomes.
	Current api.ServiceSpec
	Spec    api.ServiceSpec
	// Undo takes its place when the change is undone and can't be in place, because an engine can't take a limit off again.
	Undo *ReplaceContainerOperation
	// Changes are the attributes that differ.
	Changes []AttributeChange
}

// Execute implements Operation.
func (o *UpdateContainerOperation) Execute(ctx context.Context, cli Client) error {
	return perform(ctx, cli, o)
}

func (o *UpdateContainerOperation) machine() string { return o.MachineID }

func (o *UpdateContainerOperation) apply(ctx context.Context, cli Client) error {
	err := on(ctx, o.MachineID, "update container "+o.Container.Name, cli.UpdateContainer(ctx, o.MachineID, o.Container.ID, o.Spec))
	if err != nil && o.Undo == nil {
		return errors.Join(err, o.revert(ctx, cli))
	}
	// What may have a limit too many is not worth another container.
	return err
}

func (o *UpdateContainerOperation) verify(ctx context.Context, cli Client) error {
	return o.Container.verify(ctx, cli)
}

func (o *UpdateContainerOperation) commit(context.Context, Client) error { return nil }

func (o *UpdateContainerOperation) revert(ctx context.Context, cli Client) error {
	if o.Undo != nil {
		ctx, cancel := cleanup(ctx, o.Undo.revertTime()+o.Spec.Update.Wait().HealthTimeout)
		defer cancel()
		if err := o.Undo.apply(ctx, cli); err != nil {
			return err
		}
		return o.Undo.commit(ctx, cli)
	}
	ctx, cancel := cleanup(ctx, 0)
	defer cancel()
	return on(ctx, o.MachineID, "update container "+o.Container.Name+" back", persist(ctx, func() error {
		return gone(cli.UpdateContainer(ctx, o.MachineID, o.Container.ID, o.Current))
	}))
}

// Describe implements Operation.
func (o *UpdateContainerOperation) Describe() Description {
	return Description{
		Operation: "update", MachineID: o.MachineID, ServiceID: o.ServiceID, ContainerID: o.Container.ID, ContainerName: o.Container.Name,
		Changes: o.Changes,
	}
}

// Format implements Operation.
func (o *UpdateContainerOperation) Format(resolver NameResolver) string {
	return o.Describe().Format(resolver)
}

// String implements Operation.
func (o *UpdateContainerOperation) String() string { return o.Describe().String() }
