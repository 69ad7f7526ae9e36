package deployment

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/operatorkit/operatorkit/resource/deployment/api"
)

// updates returns the operations that change in place what stays.
func (p *planner) updates() []Operation {
	var operations []Operation
	for _, m := range p.kept {
		if len(m.changes) == 0 {
			continue
		}
		update := &UpdateContainerOperation{
			ServiceID: p.serviceID, MachineID: m.machine.ID, Container: refOf(m.machine.ID, m.Container),
			Current: m.Spec, Spec: p.spec, Changes: m.changes,
		}
		if EvalContainerSpecChange(p.spec, m.Spec) == ContainerNeedsRecreate {
			update.Undo = p.undo(m)
		}
		operations = append(operations, update)
	}
	return operations
}

// undo replaces a container by one that is as it was.
func (p *planner) undo(m *member) *ReplaceContainerOperation {
	f := &fill{machine: m.machine, old: []*member{m}}
	back := p.replace(f, m.Spec)
	back.Reason = "undo"
	return back
}

// replacements returns the operations that fill the places.
func (p *planner) replacements() []Operation {
	operations := make([]Operation, len(p.fills))
	for i, f := range p.fills {
		switch {
		case len(f.old) > 0:
			operations[i] = p.replace(f, p.spec)
		case f.existing != nil:
			operations[i] = &StartContainerOperation{
				ServiceID: p.serviceID, MachineID: f.machine.ID, Container: refOf(f.machine.ID, f.existing.Container),
				Running: f.existing.Active(), Wait: p.spec.Update.Wait(),
			}
		default:
			run := p.run(f, p.spec)
			operations[i] = &run
		}
	}
	return operations
}

func (p *planner) run(f *fill, spec api.ServiceSpec) RunContainerOperation {
	run := RunContainerOperation{ServiceID: p.serviceID, Spec: spec, MachineID: f.machine.ID}
	if f.existing != nil {
		run.ContainerName = f.existing.Name
	} else {
		run.ContainerName = p.namer.next(f.machine.ID, spec.Container.Image)
	}
	return run
}

func (p *planner) replace(f *fill, spec api.ServiceSpec) *ReplaceContainerOperation {
	order, reason := p.order(f)
	if reason == "" {
		reason = f.old[0].why
	} else if why := f.old[0].why; why != "" {
		reason += "; " + why
	}
	out := &ReplaceContainerOperation{New: p.run(f, spec), Order: order, Reason: reason, Changes: f.old[0].changes}
	back := p.oneVersion(f)
	for _, m := range f.old {
		old := OldContainer{ContainerRef: refOf(m.machine.ID, m.Container), Restore: m.Active() && back(m)}
		if m.Ready() {
			wait := m.Spec.Update.Wait()
			old.Wait = &wait
		}
		out.Old = append(out.Old, old)
	}
	if order == api.OrderStopFirst && !slices.ContainsFunc(out.Old, func(o OldContainer) bool { return o.Restore }) {
		// It was stopped by an update that was cut off: it is what there is to go back to.
		if i := p.newestStopped(f); i >= 0 {
			out.Old[i].Restore = true
		}
	}
	return out
}

// oneVersion tells of containers whether they may be brought back: of those that must not share a volume, only those of the newest
// version that runs, although an update that was cut off may have left several.
func (p *planner) oneVersion(f *fill) func(*member) bool {
	var newest *member
	for _, m := range f.old {
		if m.Active() && p.sharesVolume(m) && (newest == nil || newest.Created.Before(&m.Created)) {
			newest = m
		}
	}
	if newest == nil || !p.exclusive && p.spec.Mode != api.ServiceModeGlobal {
		return func(*member) bool { return true }
	}
	return func(m *member) bool { return EvalContainerSpecChange(newest.Spec, m.Spec) == ContainerUpToDate }
}

// newestStopped returns the index of the container that was stopped last of those that could be started again, or -1.
func (p *planner) newestStopped(f *fill) int {
	newest := -1
	for i, m := range f.old {
		if m.State != api.ContainerExited || m.Over() || p.inTheWay(m, f) {
			continue
		}
		if newest < 0 || f.old[newest].Created.Before(&m.Created) {
			newest = i
		}
	}
	return newest
}

// inTheWay tells whether a container that does not run could not be started, because another one has its ports.
func (p *planner) inTheWay(m *member, f *fill) bool {
	for i := range m.machine.Inventory.Containers {
		other := &m.machine.Inventory.Containers[i]
		if other.ID != m.ID && other.Active() && api.PortsConflict(m.Spec.HostPorts(), other.HostPorts()) {
			return true
		}
	}
	return slices.ContainsFunc(p.fills, func(o *fill) bool {
		return o != f && o.machine == m.machine && api.PortsConflict(m.Spec.HostPorts(), p.spec.HostPorts())
	})
}

// order says what comes first, and why unless that is the usual.
func (p *planner) order(f *fill) (api.UpdateOrder, string) {
	told := p.spec.Update.Order
	for _, m := range f.old {
		if m.machine == f.machine && p.conflicts(m) {
			return api.OrderStopFirst, "both need port " + p.sharedPort(m)
		}
	}
	for _, m := range f.old {
		switch {
		case p.sharesVolume(m) && (p.exclusive || p.spec.Mode == api.ServiceModeGlobal):
			return api.OrderStopFirst, "they must not share a volume"
		case told != "":
			return told, ""
		case p.sharesVolume(m):
			return api.OrderStopFirst, "they would share a volume"
		case m.machine == f.machine && p.sharesPath(m):
			return api.OrderStopFirst, "they would share a path of the machine"
		}
	}
	return cmp.Or(told, api.OrderStartFirst), ""
}

func (p *planner) sharedPort(m *member) string {
	for _, port := range p.spec.HostPorts() {
		if api.PortsConflict([]api.PortSpec{port}, m.HostPorts()) {
			return port.String()
		}
	}
	return ""
}

// inWaves makes waves of a number of operations, with a pause between them.
func (p *planner) inWaves(operations []Operation, size int, pause time.Duration) []Wave {
	var waves []Wave
	for chunk := range slices.Chunk(operations, size) {
		waves = append(waves, Wave{Operations: chunk, Pause: pause})
	}
	return waves
}

// plan puts together what comes before the waves, the waves, and what is removed in the end.
func (p *planner) plan(strategy string, waves []Wave, action api.FailureAction) Plan {
	if len(waves) > 0 {
		last := &waves[len(waves)-1]
		if !last.Verify {
			last.Pause = 0
		}
	}
	p.noteTargets()
	plan := Plan{
		ServiceID: p.serviceID, ServiceName: p.spec.Name, Strategy: strategy, Notes: p.notes, TakenOver: p.takenOver, Undrained: p.undrained,
		Over: p.over, Completed: p.completed, Report: p.sched.Report(), names: p.state, spec: p.spec,
	}
	if p.isJob() {
		plan.Strategy = string(p.spec.Mode)
	}
	hook := p.hook()
	if hook != nil && len(p.hidden) > 0 {
		plan.Notes = append(plan.Notes, "not deployed: the pre-deploy hook may still run on "+strings.Join(p.hidden, ", ")+", which can't be seen now")
		return plan
	}
	plan.add(p.pulls())
	plan.add(p.volumes())
	// They are kept until the next attempt, which is this one.
	plan.add(p.removals(p.failed))
	if p.isJob() {
		plan.Operations = append(plan.Operations, p.jobOperations()...)
		p.surplus, p.hooks = nil, nil
	}
	if hook != nil {
		plan.Operations = append(plan.Operations, hook)
	}
	if len(waves) > 0 {
		plan.Operations = append(plan.Operations, &RolloutOperation{
			Waves: waves, FailureAction: action, MaxFailurePercent: p.spec.Update.MaxFailurePercent,
		})
	}
	left := p.surplus
	if hook == nil {
		left = slices.Concat(left, p.hooks)
	}
	plan.add(p.removals(left))
	basis := p.state.Basis(p.spec, plan.places())
	plan.Basis = &basis
	return plan
}

// add adds operations that go on at once.
func (p *Plan) add(operations []Operation) {
	if len(operations) > 0 {
		p.Operations = append(p.Operations, &ParallelOperation{Operations: operations})
	}
}

// hook is run once for a version: not when containers of it are there already.
func (p *planner) hook() *PreDeployOperation {
	targets := p.targets()
	if p.spec.PreDeploy == nil || len(targets) == 0 || len(p.kept)+len(p.leaving) > 0 {
		return nil
	}
	if slices.ContainsFunc(p.fills, func(f *fill) bool { return f.existing != nil }) {
		return nil
	}
	hook := &PreDeployOperation{ServiceID: p.serviceID, Spec: p.spec, MachineID: targets[0].ID, ContainerName: p.namer.hook()}
	for _, m := range p.hooks {
		hook.Old = append(hook.Old, refOf(m.machine.ID, m.Container))
	}
	return hook
}

func (p *planner) removals(members []*member) []Operation {
	var operations []Operation
	for _, m := range members {
		operations = append(operations, &RemoveContainerOperation{
			ServiceID: p.serviceID, MachineID: m.machine.ID, Container: refOf(m.machine.ID, m.Container), Reason: m.why,
			Job: m.Spec.Mode == api.ServiceModeJob && m.Active(),
		})
	}
	return operations
}
