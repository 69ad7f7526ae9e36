package scheduler

import (
	"cmp"
	"container/heap"
	"fmt"
	"slices"
	"strings"

	"github.com/operatorkit/operatorkit/resource/deployment/api"
)

// Scheduler picks machines for the containers of one service, one after the other. Make one with New. It is not safe for concurrent
// use.
type Scheduler struct {
	state      *ClusterState
	spec       api.ServiceSpec
	candidates []*candidate
	byID       map[string]*candidate
	queue      queue
	queued     bool
	// onePerMachine is a service that holds a fixed port of its machine.
	onePerMachine bool
	// newVolumes are volumes that are nowhere. They are made on the first machine that is taken, and bind the others to it.
	newVolumes []string
	pinned     *candidate
	wanted     int
	// coming are services that are in the way where they have nothing yet.
	coming []Pair
}

// candidate is a machine with what was found out about it.
type candidate struct {
	machine *Machine
	// placed is a machine that the placement allows, allowed one of those that can be seen, too.
	placed, allowed bool
	// reasons are why no container can be there, whatever is taken; closed is why no new one is to be.
	reasons []string
	closed  string
	// own counts the containers of the service that stay or come, all those of anybody.
	own, all int
	// refused tells that the engine did not give a port although nobody is seen to hold it.
	refused bool
}

// New returns a scheduler for a specification with its defaults. It is a *PlacementError when that names machines that are not in the
// cluster, ErrNoIngress when it has ports in mode ingress and no machine is for them, and a *LocationError when one of them is served in
// the place of another service. Containers of the service count only after Keep.
func New(state *ClusterState, spec api.ServiceSpec) (*Scheduler, error) {
	s := &Scheduler{state: state, spec: spec, byID: map[string]*candidate{}, onePerMachine: len(spec.HostPorts()) > 0}
	named, err := namedMachines(state, spec)
	if err != nil {
		return nil, err
	}
	if err := s.checkIngress(); err != nil {
		return nil, err
	}
	for _, m := range state.sorted() {
		c := &candidate{machine: m, all: s.others(m), closed: closed(m)}
		s.candidates = append(s.candidates, c)
		s.byID[m.ID] = c
		refuse(c, availability(m))
		placement := placed(m, &spec, named)
		refuse(c, placement)
		c.placed = placement == ""
		c.allowed = m.Available() && c.placed
	}
	s.checkVolumes()
	s.checkPorts()
	return s, s.checkImages()
}

func refuse(c *candidate, reason string) {
	if reason != "" {
		c.reasons = append(c.reasons, reason)
	}
}

// others counts the containers of other services, those that are about to come included.
func (s *Scheduler) others(m *Machine) int {
	n := 0
	there := map[string]bool{}
	for i := range m.Inventory.Containers {
		c := &m.Inventory.Containers[i]
		if len(m.Coming.Containers) > 0 {
			there[c.Name] = true
		}
		if !s.state.Owns(s.spec.Name, c) {
			n++
		}
	}
	for i := range m.Coming.Containers {
		if c := &m.Coming.Containers[i]; !there[c.Name] && !s.state.Owns(s.spec.Name, c) {
			n++
		}
	}
	return n
}

func availability(m *Machine) string {
	switch {
	case m.Available():
		return ""
	case m.Unknown():
		return "can't be seen: " + m.Reason
	}
	return "is gone for good"
}

// closed says why no new containers are put onto a machine.
func closed(m *Machine) string {
	if m.Drain {
		return cmp.Or(m.Unschedulable, "it is being drained")
	}
	return m.Unschedulable
}

// Allowed tells whether containers of the service may be on a machine, whether or not there is place for a new one.
func (s *Scheduler) Allowed(machineID string) bool {
	c := s.byID[machineID]
	return c != nil && c.allowed
}

// Eligible counts the machines on which a new container could be.
func (s *Scheduler) Eligible() int {
	n := 0
	for _, c := range s.candidates {
		if s.eligible(c) {
			n++
		}
	}
	return n
}

// Keep counts a container of the service that stays on a machine.
func (s *Scheduler) Keep(machineID string) {
	if c := s.byID[machineID]; c != nil {
		c.own++
		c.all++
		s.fix(c)
	}
}

// Block takes a machine out, for a reason that goes into the report.
func (s *Scheduler) Block(machineID, reason string) {
	if c := s.byID[machineID]; c != nil && !slices.Contains(c.reasons, reason) {
		c.reasons = append(c.reasons, reason)
	}
}

// Better tells whether another machine is better for a new container because the engine of this one did not give it its ports.
func (s *Scheduler) Better(machineID string) bool {
	c := s.byID[machineID]
	return c != nil && c.refused && slices.ContainsFunc(s.candidates, func(o *candidate) bool { return !o.refused && s.eligible(o) })
}

// Take takes a place on a machine, if it is eligible.
func (s *Scheduler) Take(machineID string) bool {
	c := s.byID[machineID]
	return c != nil && c.closed == "" && s.Resume(machineID)
}

// Resume takes a place for a container that is on a machine already, and is to work again. Unlike Take it does so on machines that get
// no new ones.
func (s *Scheduler) Resume(machineID string) bool {
	c := s.byID[machineID]
	if c == nil || !s.fits(c) {
		return false
	}
	s.wanted++
	s.take(c)
	return true
}

// Open tells whether new containers of services may be put onto a machine, as far as its operator is concerned.
func (s *Scheduler) Open(machineID string) bool {
	c := s.byID[machineID]
	return c != nil && c.closed == ""
}

// Next takes a place on the best machine, or returns an *UnschedulableError.
func (s *Scheduler) Next() (*Machine, error) {
	s.wanted++
	if !s.queued {
		s.queue = nil
		for _, c := range s.candidates {
			if s.eligible(c) {
				s.queue = append(s.queue, c)
			}
		}
		heap.Init(&s.queue)
		s.queued = true
	}
	for len(s.queue) > 0 {
		c := s.queue[0]
		if s.eligible(c) {
			s.take(c)
			return c.machine, nil
		}
		// What is not eligible any more never is again.
		heap.Pop(&s.queue)
	}
	return nil, s.unschedulable()
}

func (s *Scheduler) unschedulable() *UnschedulableError {
	return &UnschedulableError{Service: s.spec.Name, Container: s.wanted, Report: s.Report(), Coming: s.coming}
}

func (s *Scheduler) eligible(c *candidate) bool { return c.closed == "" && s.fits(c) }

func (s *Scheduler) fits(c *candidate) bool {
	return len(c.reasons) == 0 && !s.full(c) && !s.elsewhere(c)
}

func (s *Scheduler) full(c *candidate) bool { return s.onePerMachine && c.own > 0 }

func (s *Scheduler) elsewhere(c *candidate) bool { return s.pinned != nil && s.pinned != c }

func (s *Scheduler) take(c *candidate) {
	c.own++
	c.all++
	if len(s.newVolumes) > 0 && s.spec.Mode != api.ServiceModeGlobal {
		s.pinned = c
	}
	s.fix(c)
}

// fix keeps the queue in order after a candidate got a container more. Finding it is needed only when it is not the first, which
// callers avoid by keeping and taking before the first Next.
func (s *Scheduler) fix(c *candidate) {
	if !s.queued {
		return
	}
	if i := slices.Index(s.queue, c); i >= 0 {
		heap.Fix(&s.queue, i)
	}
}

// MissingVolumes returns the volumes that have to be made on a machine before a container of the service is there.
func (s *Scheduler) MissingVolumes(machineID string) []api.VolumeSpec {
	c := s.byID[machineID]
	if c == nil {
		return nil
	}
	return slices.DeleteFunc(s.spec.MountedVolumes(api.VolumeTypeVolume), func(v api.VolumeSpec) bool {
		return v.External || hasVolume(c.machine.Inventory.Volumes, v.Name) != nil
	})
}

// queue is a heap of candidates, the best first.
type queue []*candidate

func (q queue) Len() int { return len(q) }

func (q queue) Less(i, j int) bool {
	a, b := q[i], q[j]
	if a.refused != b.refused {
		return b.refused
	}
	if a.own != b.own {
		return a.own < b.own
	}
	if a.all != b.all {
		return a.all < b.all
	}
	return a.machine.Name < b.machine.Name
}

func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }

func (q *queue) Push(c any) { *q = append(*q, c.(*candidate)) }

func (q *queue) Pop() any {
	last := len(*q) - 1
	c := (*q)[last]
	*q = (*q)[:last]
	return c
}

// PlacementError says that a placement names machines that are not in the cluster.
type PlacementError struct {
	Service  string
	Machines []string
}

// Error names the machines.
func (e *PlacementError) Error() string {
	return fmt.Sprintf("the placement of service %s names machines that are not in the cluster: %s", e.Service, strings.Join(e.Machines, ", "))
}

// UnschedulableError says that there is no machine for a container.
type UnschedulableError struct {
	Service string
	// Container counts the containers for which machines were looked for, this one included.
	Container int
	// Report says why, for each machine.
	Report Report
	// Coming are services that are in the way on machines where they have taken nothing yet: plans for them are carried out now.
	Coming []Pair
}

// Error says why, with machines of the same reasons together.
func (e *UnschedulableError) Error() string {
	return fmt.Sprintf("there is no machine for container %d of service %s: %s", e.Container, e.Service, e.Report.Reasons())
}
