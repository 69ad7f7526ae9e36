package docker

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/pkg/stdcopy"
	"github.com/moby/moby/api/types/container"
	moby "github.com/moby/moby/client"

	"github.com/operatorkit/operatorkit/context/secretscontext"
	"github.com/operatorkit/operatorkit/internal/cut"
	"github.com/operatorkit/operatorkit/resource/deployment/api"
)

// on asks the engine of a machine.
func (c *Client) on(ctx context.Context, machineID string, f func(ctx context.Context, engine *moby.Client) error) error {
	m, err := c.machine(machineID)
	if err != nil {
		return err
	}
	return m.do(ctx, f)
}

// own returns a container that belongs to whoever ctx says, or api.ErrOthers. What is done next is done to its ID: another one may
// have its name by then.
func (c *Client) own(ctx context.Context, engine *moby.Client, name string) (*container.InspectResponse, error) {
	inspected, err := engine.ContainerInspect(ctx, name, moby.ContainerInspectOptions{})
	if err != nil {
		return nil, err
	}
	in := &inspected.Container
	if in.Config == nil || in.State == nil {
		return nil, errLeftOut
	}
	if owner := c.ownerOf(in.Config.Labels); !c.known(in.Config.Labels) || !api.OwnershipOf(ctx).Owns(owner) {
		return nil, fmt.Errorf("container %s is of %s: %w", strings.TrimPrefix(in.Name, "/"), owner, api.ErrOthers)
	}
	return in, nil
}

// errLeftOut is an answer of an engine that is not complete.
var errLeftOut = errors.New("the engine has left out what a container is")

// StartContainer implements api.ContainerClient. One that is paused goes on.
func (c *Client) StartContainer(ctx context.Context, machineID, name string) error {
	return c.on(ctx, machineID, func(ctx context.Context, engine *moby.Client) error {
		own, err := c.resume(ctx, engine, name)
		if err != nil {
			return err
		}
		return hide(ctx, startByID(ctx, engine, own.ID), secretsIn(own)...)
	})
}

// startByID starts a container, whosever it is. A port that somebody holds is api.ErrPortTaken, which engines say in words alone: the first
// are about a container of their own, the others about other programs.
func startByID(ctx context.Context, engine *moby.Client, id string) error {
	_, err := engine.ContainerStart(ctx, id, moby.ContainerStartOptions{})
	for _, words := range []string{"port is already allocated", "address already in use", "ports are not available"} {
		if err != nil && strings.Contains(err.Error(), words) {
			return fmt.Errorf("%w: %w", api.ErrPortTaken, err)
		}
	}
	return err
}

// resume lets a container of ours go on if it is paused, because engines start and stop only those that are not, and returns it.
func (c *Client) resume(ctx context.Context, engine *moby.Client, name string) (*container.InspectResponse, error) {
	own, err := c.own(ctx, engine, name)
	if err != nil || !own.State.Paused {
		return own, err
	}
	_, err = engine.ContainerUnpause(ctx, own.ID, moby.ContainerUnpauseOptions{})
	return own, err
}

// StopContainer implements api.ContainerClient. The grace period is rounded up to seconds.
func (c *Client) StopContainer(ctx context.Context, machineID, name string, grace time.Duration) error {
	return c.on(ctx, machineID, func(ctx context.Context, engine *moby.Client) error {
		own, err := c.resume(ctx, engine, name)
		if err != nil {
			return err
		}
		m, err := c.machine(machineID)
		if err != nil {
			return err
		}
		defer m.leave(ctx, engine, own.ID)()
		timeout := seconds(grace)
		_, err = engine.ContainerStop(ctx, own.ID, moby.ContainerStopOptions{Timeout: &timeout})
		return err
	})
}

// RemoveContainer implements api.ContainerClient.
func (c *Client) RemoveContainer(ctx context.Context, machineID, name string) error {
	m, err := c.machine(machineID)
	if err != nil {
		return err
	}
	return m.do(ctx, func(ctx context.Context, engine *moby.Client) error {
		own, err := m.client.own(ctx, engine, name)
		if err == nil {
			err = removeContainer(ctx, engine, own.ID)
		}
		if err != nil && !errdefs.IsNotFound(err) {
			return err
		}
		// An earlier try may have been cut off before this.
		if swept := m.sweepConfigs(ctx, engine); swept != nil {
			return swept
		}
		if swept := m.sweepNames(ctx, engine); swept != nil {
			return swept
		}
		return err
	})
}

// removeContainer removes a container, and waits for those who do so already.
func removeContainer(ctx context.Context, engine *moby.Client, id string) error {
	_, err := engine.ContainerRemove(ctx, id, moby.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
	if !errdefs.IsConflict(err) {
		return err
	}
	removed := engine.ContainerWait(ctx, id, moby.ContainerWaitOptions{Condition: container.WaitConditionRemoved})
	select {
	case result := <-removed.Result:
		if result.Error != nil {
			return errors.New(result.Error.Message)
		}
		return nil
	case err := <-removed.Error:
		if errdefs.IsNotFound(err) {
			return nil
		}
		return err
	}
}

// SetAside implements api.ContainerClient.
func (c *Client) SetAside(ctx context.Context, machineID, name string) error {
	return c.on(ctx, machineID, func(ctx context.Context, engine *moby.Client) error {
		own, err := c.own(ctx, engine, name)
		if err != nil || strings.HasSuffix(own.Name, api.FailedSuffix) {
			return err
		}
		_, err = engine.ContainerRename(ctx, own.ID, moby.ContainerRenameOptions{NewName: strings.TrimPrefix(own.Name, "/") + api.FailedSuffix})
		return err
	})
}

// UpdateContainer implements api.ContainerClient. Engines leave as it is what the specification does not say.
func (c *Client) UpdateContainer(ctx context.Context, machineID, name string, spec api.ServiceSpec) error {
	spec = spec.Clone()
	spec.SetDefaults()
	resources, policy := inPlace(&spec.Container.Resources), restartPolicy(spec.Container.RestartPolicy)
	m, err := c.machine(machineID)
	if err != nil {
		return err
	}
	return m.change(ctx, func(ctx context.Context, engine *moby.Client) error {
		own, err := c.own(ctx, engine, name)
		if err != nil {
			return err
		}
		_, err = engine.ContainerUpdate(ctx, own.ID, moby.ContainerUpdateOptions{Resources: &resources, RestartPolicy: &policy})
		m.forget(own.ID)
		return err
	})
}

// watch calls a function with a container again and again, whenever something may have happened to it, until the function returns
// true or an error, and when over says that some time has passed.
func (c *Client) watch(ctx context.Context, machineID, name string, over <-chan struct{}, look func(*container.InspectResponse) (bool, error)) error {
	m, err := c.machine(machineID)
	if err != nil {
		return err
	}
	inspect := func() (out moby.ContainerInspectResult, err error) {
		err = m.do(ctx, func(ctx context.Context, engine *moby.Client) error {
			out, err = engine.ContainerInspect(ctx, name, moby.ContainerInspectOptions{})
			if err == nil && (out.Container.State == nil || out.Container.Config == nil || out.Container.HostConfig == nil) {
				err = errLeftOut
			}
			return err
		})
		return out, err
	}
	first, err := inspect()
	if err != nil {
		return err
	}
	name = first.Container.ID
	happened, end := m.waiters.add(name)
	defer end()
	if done, err := look(&first.Container); done || err != nil {
		return err
	}
	for {
		inspected, err := inspect()
		if err != nil {
			return err
		}
		if done, err := look(&inspected.Container); done || err != nil {
			return err
		}
		select {
		case <-happened:
		case <-over:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// WaitContainerReady implements api.ContainerClient. A container that has ended since is one that does not work, even if the engine
// has started it again.
func (c *Client) WaitContainerReady(ctx context.Context, machineID, name string, options api.WaitOptions) error {
	// The time begins when the engine has said for the first time what the container does: one that is slow to answer says nothing of
	// what was before.
	var begin time.Time
	var started string
	var restarts int
	over := make(chan struct{}, 2)
	var timers []*time.Timer
	defer func() {
		for _, timer := range timers {
			timer.Stop()
		}
	}()
	err := c.watch(ctx, machineID, name, over, func(in *container.InspectResponse) (bool, error) {
		if begin.IsZero() {
			begin, started, restarts = time.Now(), in.State.StartedAt, in.RestartCount
			for _, after := range []time.Duration{options.Monitor, options.HealthTimeout} {
				timers = append(timers, time.AfterFunc(after, func() { over <- struct{}{} }))
			}
		}
		described, err := c.describe(in)
		switch {
		case err != nil:
			return false, err
		case described.Over() && described.ExitCode == 0:
			return true, nil
		case described.State != api.ContainerRunning:
			return false, fmt.Errorf("it is %s (exit code %d): %w", described.State, in.State.ExitCode, api.ErrUnhealthy)
		case in.State.StartedAt != started || in.RestartCount != restarts:
			return false, fmt.Errorf("it has ended and was started again: %w", api.ErrUnhealthy)
		case described.Health == api.HealthUnhealthy:
			return false, fmt.Errorf("it is unhealthy%s: %w", lastCheck(in.State.Health), api.ErrUnhealthy)
		case described.Health == api.HealthHealthy:
			return true, nil
		case described.Health == api.HealthNone:
			return time.Since(begin) >= options.Monitor, nil
		case time.Since(begin) >= options.HealthTimeout:
			return false, fmt.Errorf("it is not healthy after %s%s: %w", options.HealthTimeout, lastCheck(in.State.Health), api.ErrUnhealthy)
		}
		return false, nil
	})
	if err != nil {
		return err
	}
	return c.on(ctx, machineID, func(ctx context.Context, engine *moby.Client) error {
		m, err := c.machine(machineID)
		if err == nil {
			err = m.arrive(ctx, engine)
		}
		return err
	})
}

// maxOutput is the most of the output of a check that is shown, in bytes.
const maxOutput = 200

// lastCheck says what the last check has said.
func lastCheck(h *container.Health) string {
	if h == nil || len(h.Log) == 0 {
		return ""
	}
	last := h.Log[len(h.Log)-1]
	return fmt.Sprintf(", its check ended with %d and says %q", last.ExitCode, strings.TrimSpace(last.Output[:min(len(last.Output), maxOutput)]))
}

// LastLines implements api.ContainerClient.
func (c *Client) LastLines(ctx context.Context, machineID, name string) (string, error) {
	var text string
	err := c.on(ctx, machineID, func(ctx context.Context, engine *moby.Client) error {
		own, err := c.own(ctx, engine, name)
		if err != nil {
			return err
		}
		logs, err := engine.ContainerLogs(ctx, own.ID, moby.ContainerLogsOptions{ShowStdout: true, ShowStderr: true, Tail: lastLines})
		if err != nil {
			return err
		}
		defer func() { _ = logs.Close() }()
		var lines strings.Builder
		// No container has a terminal, so that its two outputs come in one stream that says which is which.
		if _, err := stdcopy.StdCopy(&lines, &lines, logs); err != nil {
			return err
		}
		var secrets secretscontext.Vocabulary
		secrets.Add(secretsIn(own)...)
		text = cut.Text(strings.TrimSpace(secrets.Scrub(lines.String())), maxLines)
		return nil
	})
	return text, err
}

// lastLines is how many lines LastLines returns, and maxLines how many bytes at most.
const (
	lastLines = "10"
	maxLines  = 2000
)

// WaitContainerExit implements api.ContainerClient. A container that was not started yet is waited for as well.
func (c *Client) WaitContainerExit(ctx context.Context, machineID, name string) (int, error) {
	var code int
	err := c.watch(ctx, machineID, name, nil, func(in *container.InspectResponse) (bool, error) {
		code = in.State.ExitCode
		return in.State.Status == container.StateExited || in.State.Status == container.StateDead, nil
	})
	return code, err
}
