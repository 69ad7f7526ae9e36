package deployment

import (
	"context"
	"errors"
	"fmt"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/resource/deployment/api"
)

// RunJobOperation runs the container of a job to its end. One that is there already is waited for: it is started only if it never was, so
// that a job that was cut off by a crash is not run twice. When the context ends the container goes on, and the next plan waits for it. One
// that fails is kept for its log (api.Container.Failed), and is a *JobError.
type RunJobOperation struct {
	// Run is the container.
	Run RunContainerOperation
	// Existing is the container, if it is there already.
	Existing *ContainerRef
	// Attempt is recorded with the container.
	Attempt string
}

// JobError is a job that did not end with 0, and is not started again by its restart policy.
type JobError struct{ ExitCode int }

// Error says the exit code.
func (e *JobError) Error() string { return fmt.Sprintf("the job ended with exit code %d", e.ExitCode) }

// Execute implements Operation.
func (o *RunJobOperation) Execute(ctx context.Context, cli Client) error {
	return track(ctx, o, o.machine(), func() error {
		if err := o.start(ctx, cli); err != nil {
			return err
		}
		return o.wait(ctx, cli)
	})
}

// start makes sure that the container was started. One whose start has failed is not removed: it may run all the same.
func (o *RunJobOperation) start(ctx context.Context, cli Client) error {
	run := &o.Run
	if o.Existing != nil {
		run.id = o.Existing.ID
	} else {
		run.attempt = o.Attempt
		if err := run.create(ctx, cli); err != nil {
			return err
		}
	}
	c, err := cli.InspectContainer(ctx, run.MachineID, run.id)
	if err != nil || c.State != api.ContainerCreated {
		return on(ctx, run.MachineID, "inspect container "+run.ContainerName, err)
	}
	err = heed(cli, run.MachineID, run.Spec.HostPorts(), cli.StartContainer(ctx, run.MachineID, run.id))
	err = on(ctx, run.MachineID, "start container "+run.ContainerName, err)
	if errors.Is(err, api.ErrPortTaken) {
		// It does not run, and the next plan may find another machine.
		return errors.Join(err, run.discard(ctx, cli))
	}
	return err
}

// wait waits for the end. A wait that takes too long is no failure of the job.
func (o *RunJobOperation) wait(ctx context.Context, cli Client) error {
	run := &o.Run
	late := fmt.Errorf("the job still runs after %s: the next plan waits for it", api.MaxWait)
	waiting, cancel := context.WithTimeoutCause(ctx, api.MaxWait, late)
	defer cancel()
	defer framework.BeginWait(ctx, api.MaxWait)()
	code, err := cli.WaitContainerExit(waiting, run.MachineID, run.id)
	if err != nil || code == 0 {
		return on(ctx, run.MachineID, "wait for container "+run.ContainerName, err)
	}
	err = on(ctx, run.MachineID, "run container "+run.ContainerName, withLines(ctx, cli, run.MachineID, run.id, &JobError{ExitCode: code}))
	ctx, cancelled := cleanup(ctx, 0)
	defer cancelled()
	// Without its other name it is a failed container of the job as well.
	return errors.Join(err, on(ctx, run.MachineID, "set aside container "+run.ContainerName, cli.SetAside(ctx, run.MachineID, run.id)))
}

func (o *RunJobOperation) machine() string { return o.Run.MachineID }

// Describe implements Operation.
func (o *RunJobOperation) Describe() Description {
	d := o.Run.Describe()
	d.Operation, d.Running = "job", o.Existing != nil
	if d.Running {
		d.ContainerID, d.Attributes = o.Existing.ID, nil
	}
	return d
}

// Format implements Operation.
func (o *RunJobOperation) Format(resolver NameResolver) string { return o.Describe().Format(resolver) }

// String implements Operation.
func (o *RunJobOperation) String() string { return o.Describe().String() }
