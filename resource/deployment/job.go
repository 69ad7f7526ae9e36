package deployment

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/operatorkit/operatorkit/resource/deployment/api"
)

// jobCondition returns what can become of a container of a job, and why if it has to go. What changes in place makes no job run again that
// has completed.
func (p *planner) jobCondition(c *api.Container, needs ContainerSpecStatus) (condition, string) {
	switch {
	case p.force:
		return outdated, "the job is to be run again"
	case needs == ContainerNeedsRecreate:
		return outdated, ""
	case !c.Failed() && (c.Active() || c.State == api.ContainerCreated):
		return pending, ""
	case c.Ready() && !c.Failed():
		return working, ""
	case needs == ContainerUpToDate && c.ExitCode != 0 && c.Attempt == p.attempt:
		// It is waited for as one that runs is, so that its failure is reported once more, and it is not run again.
		return pending, ""
	}
	return outdated, "it did not complete"
}

// assignJob decides whether the job is run, where, and which containers go before. One that has completed stays for its log, unless its
// machine is drained and it is remembered elsewhere that it has.
func (p *planner) assignJob() error {
	done := p.of(working)
	p.completed = len(done) > 0 || p.recorded && !p.force || p.completedUnseen()
	current := p.of(pending)
	switch {
	case p.completed:
		if len(done) > 0 && (!done[0].machine.Drain || !p.recorded) {
			done[0].taken = true
		}
	case len(current) > 0:
		current[0].taken = true
		p.job = &fill{machine: current[0].machine, existing: current[0]}
	default:
		if unseen := p.mayRunUnseen(); len(unseen) > 0 {
			p.note("not run: it may run, or have run, on %s, which can't be seen; bring it back, or declare it gone for good",
				strings.Join(unseen, ", "))
			return nil
		}
		m, err := p.sched.Next()
		if err != nil {
			return err
		}
		p.job = &fill{machine: m}
	}
	for _, m := range p.members {
		if !m.taken {
			p.drop(m, cmp.Or(m.why, drained(m.machine), "the job is another one now"))
		}
	}
	return nil
}

// completedUnseen reports whether a container of the job had completed when it was seen last.
func (p *planner) completedUnseen() bool {
	return !p.force && slices.ContainsFunc(p.lastSeen(), func(c *api.Container) bool {
		same := EvalContainerSpecChange(c.Spec, p.spec) != ContainerNeedsRecreate
		return same && c.Ready() && c.State == api.ContainerExited && !c.Failed()
	})
}

// mayRunUnseen returns the machines that can't be seen and on which the job, or an earlier one, may run. One of another specification that
// had ended does not.
func (p *planner) mayRunUnseen() []string {
	_, on, blind := p.unseen()
	over := func(c *api.Container) bool {
		return c.State == api.ContainerExited && EvalContainerSpecChange(c.Spec, p.spec) == ContainerNeedsRecreate
	}
	if !slices.ContainsFunc(p.lastSeen(), func(c *api.Container) bool { return !over(c) }) {
		on = nil
	}
	return append(on, blind...)
}

// lastSeen returns the containers of the service on machines that can't be seen, as they were then.
func (p *planner) lastSeen() []*api.Container {
	var containers []*api.Container
	for _, m := range p.machines() {
		if !m.Unknown() || m.LastSeen == nil {
			continue
		}
		for i := range m.LastSeen.Containers {
			if c := &m.LastSeen.Containers[i]; p.owns(c) && !c.Hook {
				containers = append(containers, c)
			}
		}
	}
	return containers
}

// jobOperations returns the operations that run the job, after what is left of earlier ones has ended.
func (p *planner) jobOperations() []Operation {
	var operations []Operation
	if gone := p.removals(slices.Concat(p.surplus, p.hooks)); len(gone) > 0 {
		operations = append(operations, &ParallelOperation{Operations: gone})
	}
	if p.job == nil {
		return operations
	}
	job := &RunJobOperation{Run: p.run(p.job, p.spec), Attempt: p.attempt}
	if m := p.job.existing; m != nil {
		ref := refOf(m.machine.ID, m.Container)
		job.Existing = &ref
		if len(m.changes) > 0 {
			operations = append(operations, &UpdateContainerOperation{
				ServiceID: p.serviceID, MachineID: m.machine.ID, Container: ref, Current: m.Spec, Spec: p.spec, Changes: m.changes,
			})
		}
	}
	return append(operations, job)
}

// isJob reports whether the service is a job.
func (p *planner) isJob() bool { return p.spec.Mode == api.ServiceModeJob }

// leaveOver returns what becomes of a container that has ended and that its engine leaves so, and why if it has to go.
func (p *planner) leaveOver(c *api.Container, machine string, needs ContainerSpecStatus) (condition, string) {
	asked := *c
	asked.Spec.Container.RestartPolicy = p.spec.Container.RestartPolicy
	if !asked.Over() || c.ExitCode != 0 && needs != ContainerUpToDate {
		return outdated, "it has ended, and is to run"
	}
	if c.ExitCode != 0 {
		p.over = append(p.over, fmt.Sprintf(
			"container %s on %s has ended with exit code %d, and its restart policy leaves it so", c.Name, machine, c.ExitCode))
	}
	return working, ""
}
