package deployment

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/operatorkit/operatorkit/resource/deployment/api"
	"github.com/operatorkit/operatorkit/resource/deployment/scheduler"
)

// planner works out one plan.
type planner struct {
	state     *scheduler.ClusterState
	spec      api.ServiceSpec
	serviceID string
	sched     *scheduler.Scheduler
	// force replaces what is as it should be; sideBySide keeps all old containers until all new ones work.
	force, sideBySide bool

	attributes attributes
	namer      namer
	// members are the containers of the service that are seen, hooks those of hooks, failed those of both that are kept for their logs, and
	// hidden the machines that can't be seen and had one of a hook.
	members []*member
	hooks   []*member
	failed  []*member
	hidden  []string
	// recorded says of a job that it has completed, as others remember it, and attempt is the attempt to be made; completed says that it has
	// completed at all, and job is where it is to be run, or waited for.
	recorded, completed bool
	attempt             string
	job                 *fill
	// over says which containers have failed, and are left so by their restart policy.
	over []string
	// exclusive is a service of which no two versions may run at once, because they would share a volume.
	exclusive bool

	kept    []*member
	fills   []*fill
	surplus []*member
	notes   []string
	// takenOver says which containers are the service's by a former name.
	takenOver []string
	// leaving are as they should be, on machines that are drained; stuck are those that stay there all the same, and undrained says
	// why.
	leaving, stuck []*member
	undrained      []string
}

// condition says what can become of a container.
type condition int

const (
	// working is as it should be, or can be made so in place, and works.
	working condition = iota
	// pending is as it should be, and has to be started or waited for.
	pending
	// outdated has to go.
	outdated
)

// member is a container of the service.
type member struct {
	*api.Container
	machine   *scheduler.Machine
	condition condition
	changes   []AttributeChange
	// why says more than the changes why it has to go.
	why string
	// taken tells that a fill or the surplus has it.
	taken bool
}

// fill is a place that is to be filled.
type fill struct {
	machine *scheduler.Machine
	// existing is a pending container; without one, a new one is run.
	existing *member
	// old are the containers of which it takes the place.
	old []*member
}

func newPlanner(ctx context.Context, cli scheduler.Client, state *scheduler.ClusterState, svc *api.Service, spec api.ServiceSpec) (*planner, error) {
	if state == nil {
		var err error
		if state, err = scheduler.Inspect(ctx, cli); err != nil {
			return nil, err
		}
	}
	if svc != nil && svc.Completed {
		// Where it may run does not matter: what it names may not be there by now.
		spec.Placement = api.Placement{}
	}
	sched, err := scheduler.New(state, spec)
	if err != nil {
		return nil, err
	}
	p := &planner{
		state: state, spec: spec, sched: sched, attributes: attributesOf(spec),
		namer: newNamer(state.Owner.Owner(spec.Name)),
	}
	if svc != nil {
		p.serviceID, p.recorded, p.attempt = svc.ID, svc.Completed, svc.Attempt
	}
	return p, nil
}

// observe finds the containers of the service and says what can become of each.
func (p *planner) observe() {
	for _, m := range p.machines() {
		inventory := &m.Inventory
		if m.Unknown() && m.LastSeen != nil {
			inventory = m.LastSeen
		}
		for i := range m.Coming.Containers {
			p.namer.taken[m.Coming.Containers[i].Name] = true
		}
		for i := range inventory.Containers {
			c := &inventory.Containers[i]
			own := p.owns(c)
			// An old hook is gone before another one comes.
			p.namer.taken[c.Name] = p.namer.taken[c.Name] || !own || !c.Hook
			if own && c.Hook && m.Unknown() && !c.Failed() {
				p.hidden = append(p.hidden, m.Name)
			}
			if !m.Available() || !own {
				continue
			}
			if p.state.Owner.TakesOver(c.Owner) {
				p.takenOver = append(p.takenOver, fmt.Sprintf("taken over: container %s on %s, which was of %s", c.Name, m.Name, c.Owner))
			}
			if c.Failed() && (!p.isJob() || p.member(m, c).condition != pending) {
				p.failed = append(p.failed, &member{Container: c, machine: m, why: "it did not work, and its log is that of an earlier attempt"})
				continue
			}
			if c.Hook {
				p.hooks = append(p.hooks, &member{Container: c, machine: m, why: "left behind by a pre-deploy hook that was cut off"})
				continue
			}
			if p.serviceID == "" {
				p.serviceID = c.ServiceID
			}
			p.members = append(p.members, p.member(m, c))
		}
	}
	if p.serviceID == "" {
		p.serviceID = serviceID(p.namer.owner)
	}
	for _, members := range [][]*member{p.members, p.hooks, p.failed} {
		slices.SortStableFunc(members, func(a, b *member) int {
			return cmp.Or(cmp.Compare(a.condition, b.condition), cmp.Compare(rank(a), rank(b)),
				cmp.Compare(a.machine.Name, b.machine.Name), cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
		})
	}
}

// rank puts what works first, then what runs.
func rank(m *member) int {
	switch {
	case m.Ready():
		return 0
	case m.Active():
		return 1
	}
	return 2
}

func (p *planner) owns(c *api.Container) bool { return p.state.Owns(p.spec.Name, c) }

// machines returns the machines by name.
func (p *planner) machines() []*scheduler.Machine {
	return slices.SortedFunc(slices.Values(p.state.Machines), func(a, b *scheduler.Machine) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
}

func (p *planner) member(m *scheduler.Machine, c *api.Container) *member {
	out := &member{Container: c, machine: m, condition: outdated}
	out.changes = difference(attributesOf(c.Spec), p.attributes)
	needs := status(out.changes)
	if p.isJob() {
		out.condition, out.why = p.jobCondition(c, needs)
		return out
	}
	switch {
	case p.force:
		out.why = "all containers are to be made anew"
	case !p.sched.Allowed(m.ID):
		out.why = "the placement does not allow " + m.Name
	case needs == ContainerNeedsRecreate:
	case c.Over():
		out.condition, out.why = p.leaveOver(c, m.Name, needs)
	case c.Ready():
		out.condition = working
	case needs == ContainerUpToDate && startable(c):
		out.condition = pending
	default:
		out.why = fmt.Sprintf("it does not work (%s)", describeState(c))
	}
	out.why = cmp.Or(out.why, drained(m))
	return out
}

// startable tells whether a container may come to work by starting it or waiting for it.
func startable(c *api.Container) bool {
	return c.State == api.ContainerCreated || c.State == api.ContainerExited ||
		c.State == api.ContainerRunning && c.Health == api.HealthStarting
}

func describeState(c *api.Container) string {
	if c.State == api.ContainerRunning && c.Health != api.HealthNone {
		return string(c.Health)
	}
	return string(c.State)
}

// unseen are the containers of the service that were last seen on machines which can't be seen now, and the names of these machines;
// blind are machines of which is not known what was on them.
func (p *planner) unseen() (remembered int, on, blind []string) {
	for _, m := range p.machines() {
		if m.Blind() && !m.Untouched {
			blind = append(blind, m.Name)
		}
		if !m.Unknown() || m.LastSeen == nil {
			continue
		}
		n := 0
		for i := range m.LastSeen.Containers {
			if c := &m.LastSeen.Containers[i]; p.owns(c) && !c.Hook && !c.Failed() {
				n++
			}
		}
		if n > 0 {
			remembered += n
			on = append(on, m.Name)
		}
	}
	return remembered, on, blind
}

// active counts the containers that run.
func (p *planner) active() int {
	n := 0
	for _, m := range p.members {
		if m.Active() {
			n++
		}
	}
	return n
}

// sharesVolume tells whether a container has a named volume of the specification.
func (p *planner) sharesVolume(m *member) bool {
	for _, v := range p.spec.MountedVolumes(api.VolumeTypeVolume) {
		if slices.ContainsFunc(m.Spec.MountedVolumes(api.VolumeTypeVolume), func(o api.VolumeSpec) bool { return o.Name == v.Name }) {
			return true
		}
	}
	return false
}

// sharesPath tells whether a container and a new one have the same path of the machine, and one of them writes to it.
func (p *planner) sharesPath(m *member) bool {
	for _, a := range p.spec.MountedVolumes(api.VolumeTypeBind) {
		for _, b := range m.Spec.MountedVolumes(api.VolumeTypeBind) {
			if a.HostPath == b.HostPath && (writes(&p.spec, a.Name) || writes(&m.Spec, b.Name)) {
				return true
			}
		}
	}
	return false
}

func writes(spec *api.ServiceSpec, volume string) bool {
	return slices.ContainsFunc(spec.Container.VolumeMounts, func(m api.VolumeMount) bool { return m.Volume == volume && !m.ReadOnly })
}

// conflicts tells whether a container has ports of the machine that a new one needs.
func (p *planner) conflicts(m *member) bool {
	return api.PortsConflict(p.spec.HostPorts(), m.HostPorts())
}
