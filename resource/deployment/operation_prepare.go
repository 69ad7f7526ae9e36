package deployment

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/resource/deployment/api"
)

// CreateVolumeOperation creates a volume on a specific machine.
type CreateVolumeOperation struct {
	VolumeSpec api.VolumeSpec
	MachineID  string
	// MachineName is used for formatting the operation output only.
	MachineName string
}

// Execute implements Operation.
func (o *CreateVolumeOperation) Execute(ctx context.Context, cli Client) error {
	return track(ctx, o, o.MachineID, func() error {
		return on(ctx, o.MachineID, "create volume "+o.VolumeSpec.Name, cli.CreateVolume(ctx, o.MachineID, o.VolumeSpec))
	})
}

func (o *CreateVolumeOperation) machine() string { return o.MachineID }

// Describe implements Operation.
func (o *CreateVolumeOperation) Describe() Description {
	return Description{Operation: "create-volume", MachineID: o.MachineID, Volume: o.VolumeSpec.Name, machineName: o.MachineName}
}

// Format implements Operation.
func (o *CreateVolumeOperation) Format(resolver NameResolver) string {
	return o.Describe().Format(resolver)
}

// String implements Operation.
func (o *CreateVolumeOperation) String() string { return o.Describe().String() }

// PullImageOperation pulls an image onto a machine.
type PullImageOperation struct {
	Image     string
	MachineID string
}

// Execute implements Operation.
func (o *PullImageOperation) Execute(ctx context.Context, cli Client) error {
	return track(ctx, o, o.MachineID, func() error {
		return on(ctx, o.MachineID, "pull image "+o.Image, cli.PullImage(ctx, o.MachineID, o.Image, func(p api.PullProgress) {
			emit(ctx, ProgressEvent{Operation: o, MachineID: o.MachineID, Status: ProgressGoing, Current: p.Current, Total: p.Total})
		}))
	})
}

func (o *PullImageOperation) machine() string { return o.MachineID }

// Describe implements Operation.
func (o *PullImageOperation) Describe() Description {
	return Description{Operation: "pull", MachineID: o.MachineID, Image: o.Image}
}

// Format implements Operation.
func (o *PullImageOperation) Format(resolver NameResolver) string {
	return o.Describe().Format(resolver)
}

// String implements Operation.
func (o *PullImageOperation) String() string { return o.Describe().String() }

// ensureImage makes sure that an image is on a machine. What is to be pulled always was pulled by the plan.
func ensureImage(ctx context.Context, cli Client, machineID string, c *api.ContainerSpec) error {
	_, err := cli.InspectImage(ctx, machineID, c.Image)
	if errors.Is(err, api.ErrNotFound) && c.PullPolicy != api.PullNever {
		return on(ctx, machineID, "pull image "+c.Image, cli.PullImage(ctx, machineID, c.Image, nil))
	}
	return on(ctx, machineID, "look for image "+c.Image, err)
}

// PreDeployOperation runs the pre-deploy hook of a service to its end. The container of one that fails is kept for its log
// (api.Container.Failed). Hooks of the service that are there, from earlier tries that were
// cut off, are ended and removed before, on whichever machine they are, and the hook run again: hooks have to be idempotent.
type PreDeployOperation struct {
	ServiceID string
	// Spec is the specification of the service.
	Spec          api.ServiceSpec
	MachineID     string
	ContainerName string
	// Old are containers of hooks of the service that were left behind.
	Old []ContainerRef

	// id is that of the container, once it is there.
	id string
	// failed tells that the hook has not done what it should, and not because it was cut off.
	failed bool
}

// HookError is a pre-deploy hook that did not end with 0.
type HookError struct{ ExitCode int }

// Error says the exit code.
func (e *HookError) Error() string {
	return fmt.Sprintf("the pre-deploy hook ended with exit code %d; nothing was deployed", e.ExitCode)
}

// Execute implements Operation.
func (o *PreDeployOperation) Execute(ctx context.Context, cli Client) error {
	return track(ctx, o, o.MachineID, func() error {
		for i := range o.Old {
			if err := o.Old[i].remove(ctx, cli); err != nil {
				return err
			}
		}
		if err := o.remove(ctx, cli); err != nil {
			return err
		}
		return errors.Join(o.run(ctx, cli), o.putAway(ctx, cli))
	})
}

func (o *PreDeployOperation) run(ctx context.Context, cli Client) error {
	spec := o.Spec.HookSpec()
	if err := ensureImage(ctx, cli, o.MachineID, &spec.Container); err != nil {
		return err
	}
	timeout, cutOff := o.Spec.PreDeploy.TimeoutOrDefault(), ctx
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("the pre-deploy hook takes longer than %s: %w", timeout, context.DeadlineExceeded))
	defer cancel()
	defer framework.BeginWait(ctx, timeout)()
	var err error
	o.id, err = cli.CreateContainer(ctx, o.MachineID, api.CreateContainerOptions{
		Name: o.ContainerName, ServiceID: o.ServiceID, Spec: *spec, Hook: true,
	})
	if err != nil {
		return on(ctx, o.MachineID, "create container "+o.ContainerName, err)
	}
	if err := cli.StartContainer(ctx, o.MachineID, o.id); err != nil {
		return on(ctx, o.MachineID, "start container "+o.ContainerName, err)
	}
	code, err := cli.WaitContainerExit(ctx, o.MachineID, o.id)
	if err != nil {
		if ctx.Err() != nil {
			err = errors.Join(context.Cause(ctx), err)
		}
		o.failed = ctx.Err() != nil && cutOff.Err() == nil
		return on(ctx, o.MachineID, "wait for container "+o.ContainerName, err)
	}
	if code != 0 {
		o.failed = true
		return on(ctx, o.MachineID, "run container "+o.ContainerName, withLines(ctx, cli, o.MachineID, o.id, &HookError{ExitCode: code}))
	}
	return nil
}

// putAway takes the container of the hook away, or sets it aside if it has failed, also when ctx has ended.
func (o *PreDeployOperation) putAway(ctx context.Context, cli Client) error {
	if o.failed {
		ctx, cancel := cleanup(ctx, o.Spec.Container.GracePeriod())
		defer cancel()
		hook := ContainerRef{ID: o.id, Name: o.ContainerName, MachineID: o.MachineID, GracePeriod: o.Spec.Container.GracePeriod()}
		if hook.stop(ctx, cli) == nil && cli.SetAside(ctx, o.MachineID, o.id) == nil {
			return nil
		}
	}
	return o.remove(ctx, cli)
}

// remove takes the container of the hook away, or one of its name that an earlier try has left, also when ctx has ended.
func (o *PreDeployOperation) remove(ctx context.Context, cli Client) error {
	ctx, cancel := cleanup(ctx, o.Spec.Container.GracePeriod())
	defer cancel()
	return persist(ctx, func() error {
		hook := ContainerRef{ID: o.id, Name: o.ContainerName, MachineID: o.MachineID, GracePeriod: o.Spec.Container.GracePeriod()}
		if hook.ID == "" {
			c, err := cli.InspectContainer(ctx, o.MachineID, o.ContainerName)
			if err != nil {
				return gone(on(ctx, o.MachineID, "inspect container "+o.ContainerName, err))
			}
			if !c.Hook || c.ServiceName != o.Spec.Name || !api.OwnershipOf(ctx).Owns(c.Owner) {
				return on(ctx, o.MachineID, "create container "+o.ContainerName, nameTaken(&c))
			}
			hook.ID = c.ID
		}
		return hook.remove(ctx, cli)
	}, api.ErrExists)
}

func (o *PreDeployOperation) machine() string { return o.MachineID }

// Describe implements Operation.
func (o *PreDeployOperation) Describe() Description {
	hook := o.Spec.HookSpec().Container
	return Description{
		Operation: "pre-deploy", MachineID: o.MachineID, ServiceID: o.ServiceID, ContainerName: o.ContainerName,
		Image: hook.Image, Command: slices.Concat(hook.Entrypoint, hook.Command),
	}
}

// Format implements Operation.
func (o *PreDeployOperation) Format(resolver NameResolver) string {
	return o.Describe().Format(resolver)
}

// String implements Operation.
func (o *PreDeployOperation) String() string { return o.Describe().String() }
