package deployment

import (
	"context"
	"errors"
	"fmt"

	"github.com/operatorkit/operatorkit/resource/deployment/api"
)

// RunContainerOperation creates and starts a container on a machine, and waits until it works. A container of its name that is there
// already, from an earlier try, is taken for it if it is as the specification says. When it fails, the container is removed; one that
// does not work is kept for its log (api.Container.Failed).
type RunContainerOperation struct {
	ServiceID string
	Spec      api.ServiceSpec
	MachineID string
	// ContainerName is the name of the container, unique on the machine.
	ContainerName string

	// attempt is that of a job.
	attempt string
	// id is that of the container, once it is there. What is done to it is done to that one, and to none that has its name later.
	id string
	// failed tells that it is there and does not work.
	failed bool
}

// Execute implements Operation.
func (o *RunContainerOperation) Execute(ctx context.Context, cli Client) error {
	return perform(ctx, cli, o)
}

func (o *RunContainerOperation) machine() string { return o.MachineID }

func (o *RunContainerOperation) apply(ctx context.Context, cli Client) error {
	if err := o.create(ctx, cli); err != nil {
		return err
	}
	if err := o.start(ctx, cli); err != nil {
		return errors.Join(err, o.discard(ctx, cli))
	}
	return nil
}

// create makes sure that the container is there. It does not start it. When it fails there is none that was not there before.
func (o *RunContainerOperation) create(ctx context.Context, cli Client) error {
	err := o.find(ctx, cli)
	if !errors.Is(err, api.ErrNotFound) {
		return err
	}
	if err := ensureImage(ctx, cli, o.MachineID, &o.Spec.Container); err != nil {
		return err
	}
	o.id, err = cli.CreateContainer(ctx, o.MachineID, api.CreateContainerOptions{Name: o.ContainerName, ServiceID: o.ServiceID, Spec: o.Spec, Attempt: o.attempt})
	if err == nil {
		return nil
	}
	if errors.Is(err, api.ErrExists) {
		// An earlier try that was cut off may have come to its end on the machine meanwhile.
		if found := o.find(ctx, cli); !errors.Is(found, api.ErrNotFound) {
			return found
		}
		return on(ctx, o.MachineID, "create container "+o.ContainerName, err)
	}
	// It may be there all the same.
	return errors.Join(on(ctx, o.MachineID, "create container "+o.ContainerName, err), o.discard(ctx, cli))
}

// find finds the container if it is there, as the specification says. The error is api.ErrNotFound if it is not, api.ErrExists if
// another's has its name, and ErrStalePlan if the service has another one there.
func (o *RunContainerOperation) find(ctx context.Context, cli Client) error {
	c, err := cli.InspectContainer(ctx, o.MachineID, o.ContainerName)
	if err != nil {
		return on(ctx, o.MachineID, "inspect container "+o.ContainerName, err)
	}
	if c.ServiceName != o.Spec.Name || !api.OwnershipOf(ctx).Owns(c.Owner) {
		return on(ctx, o.MachineID, "create container "+o.ContainerName, nameTaken(&c))
	}
	if EvalContainerSpecChange(c.Spec, o.Spec) != ContainerUpToDate {
		// The plan knows of none with the name: this one was about to come when it was made.
		return on(ctx, o.MachineID, "create container "+o.ContainerName, fmt.Errorf("it is there with another specification: %w", ErrStalePlan))
	}
	o.id = c.ID
	return nil
}

// nameTaken says who has a container of a name.
func nameTaken(c *api.Container) error {
	return fmt.Errorf("another container has the name, of %s: %w", c.Owner, api.ErrExists)
}

// start starts the container and waits until it works.
func (o *RunContainerOperation) start(ctx context.Context, cli Client) error {
	if err := heed(cli, o.MachineID, o.Spec.HostPorts(), cli.StartContainer(ctx, o.MachineID, o.id)); err != nil {
		return on(ctx, o.MachineID, "start container "+o.ContainerName, err)
	}
	err := untilReady(ctx, cli, o.MachineID, o.id, o.Spec.Update.Wait())
	o.failed = errors.Is(err, api.ErrUnhealthy)
	return on(ctx, o.MachineID, "wait for container "+o.ContainerName, withLines(ctx, cli, o.MachineID, o.id, err))
}

// withLines adds to the error of a container that does not work, or has failed, what it has written last.
func withLines(ctx context.Context, cli Client, machineID, container string, err error) error {
	var hook *HookError
	var job *JobError
	if !errors.Is(err, api.ErrUnhealthy) && !errors.As(err, &hook) && !errors.As(err, &job) {
		return err
	}
	ctx, cancel := cleanup(ctx, 0)
	defer cancel()
	// Without the lines the error says what there is to say.
	if lines, _ := cli.LastLines(ctx, machineID, container); lines != "" {
		return fmt.Errorf("%w; its last lines are %q", err, lines)
	}
	return err
}

// stop makes sure that the container does not run.
func (o *RunContainerOperation) stop(ctx context.Context, cli Client) error {
	return persist(ctx, func() error {
		made, err := o.made(ctx, cli)
		if err != nil {
			return gone(err)
		}
		return made.stop(ctx, cli)
	})
}

// discard puts the container away, also when ctx has ended.
func (o *RunContainerOperation) discard(ctx context.Context, cli Client) error {
	ctx, cancel := cleanup(ctx, o.Spec.Container.GracePeriod())
	defer cancel()
	if err := o.stop(ctx, cli); err != nil {
		return err
	}
	return o.putAway(ctx, cli)
}

// putAway takes the container, which has stopped, away, or sets it aside if it did not work.
func (o *RunContainerOperation) putAway(ctx context.Context, cli Client) error {
	if o.failed && cli.SetAside(ctx, o.MachineID, o.id) == nil {
		return nil
	}
	return o.remove(ctx, cli)
}

func (o *RunContainerOperation) remove(ctx context.Context, cli Client) error {
	return persist(ctx, func() error {
		made, err := o.made(ctx, cli)
		if err != nil {
			return gone(err)
		}
		return on(ctx, o.MachineID, "remove container "+o.ContainerName, gone(cli.RemoveContainer(ctx, o.MachineID, made.ID)))
	})
}

// made returns the container, or api.ErrNotFound. When its creation has not said which one it is, that is looked for.
func (o *RunContainerOperation) made(ctx context.Context, cli Client) (*ContainerRef, error) {
	if o.id == "" {
		err := o.find(ctx, cli)
		if errors.Is(err, ErrStalePlan) || errors.Is(err, api.ErrExists) {
			// What has its name is not what was made.
			err = api.ErrNotFound
		}
		if err != nil {
			return nil, err
		}
	}
	return &ContainerRef{ID: o.id, Name: o.ContainerName, MachineID: o.MachineID, GracePeriod: o.Spec.Container.GracePeriod()}, nil
}

func (o *RunContainerOperation) verify(ctx context.Context, cli Client) error {
	made := ContainerRef{ID: o.id, Name: o.ContainerName, MachineID: o.MachineID}
	err := made.verify(ctx, cli)
	o.failed = errors.Is(err, api.ErrUnhealthy)
	return withLines(ctx, cli, o.MachineID, o.id, err)
}

func (o *RunContainerOperation) commit(context.Context, Client) error { return nil }

func (o *RunContainerOperation) revert(ctx context.Context, cli Client) error {
	return o.discard(ctx, cli)
}

// Describe implements Operation.
func (o *RunContainerOperation) Describe() Description {
	return Description{
		Operation: "run", MachineID: o.MachineID, ServiceID: o.ServiceID, ContainerName: o.ContainerName, Image: o.Spec.Container.Image,
		Attributes: ContainerSpecChanges(api.ServiceSpec{}, o.Spec),
	}
}

// Format implements Operation.
func (o *RunContainerOperation) Format(resolver NameResolver) string {
	return o.Describe().Format(resolver)
}

// String implements Operation.
func (o *RunContainerOperation) String() string { return o.Describe().String() }
