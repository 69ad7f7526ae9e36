package scheduler

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/operatorkit/operatorkit/resource/deployment/api"
)

// Taking is what a plan will put onto machines, or may bring back there, by the IDs of machines: containers with their names, ports and
// services, and volumes.
type Taking map[string]api.Inventory

// Add adds what is taken on a machine.
func (t Taking) Add(machineID string, containers []api.Container, volumes ...api.Volume) {
	inventory := t[machineID]
	inventory.Containers = append(inventory.Containers, containers...)
	inventory.Volumes = append(inventory.Volumes, volumes...)
	t[machineID] = inventory
}

// Reservations are what the plans take that are carried out now in a cluster. A client that has them (Reserver) shows them to everybody
// who plans with it, so that two plans don't take one thing. It is safe for concurrent use, and its zero value is ready to use.
type Reservations struct {
	mu   sync.Mutex
	held []*Reservation
	// refused are ports that somebody had who can't be seen, and when that was.
	refused map[refusal]time.Time
}

// Reserver is a client with reservations, which are of its cluster.
type Reserver interface {
	Reservations() *Reservations
}

// ReservationsOf returns those of a client, or ones of its own for a client that has none.
func ReservationsOf(cli any) *Reservations {
	if r, ok := cli.(Reserver); ok {
		return r.Reservations()
	}
	return &Reservations{}
}

// Reservation is what one plan takes, until it is released.
type Reservation struct {
	all    *Reservations
	taking Taking
	// owner says whose volumes count as one.
	owner api.Ownership
}

// Hold takes things for a plan, or says what another one is about to take. Whoever has it looks at the machines again before anything is
// done: what was released before is there by then.
func (r *Reservations) Hold(taking Taking, owner api.Ownership) (held *Reservation, conflict string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, other := range r.held {
		if conflict := other.conflict(taking); conflict != "" {
			return nil, conflict
		}
	}
	held = &Reservation{all: r, taking: taking, owner: owner}
	r.held = append(r.held, held)
	return held, ""
}

// Release ends a reservation. Doing it twice is doing it once.
func (h *Reservation) Release() {
	h.all.mu.Lock()
	defer h.all.mu.Unlock()
	h.all.held = slices.DeleteFunc(h.all.held, func(o *Reservation) bool { return o == h })
}

// conflict says what of a plan another one takes.
func (h *Reservation) conflict(taking Taking) string {
	if service := h.taking.shared(taking); service != "" {
		return "another plan for service " + service + " is being carried out"
	}
	if at := h.taking.servedAs(taking); at != "" {
		return "another service is about to be served at " + at
	}
	for machineID, mine := range taking {
		theirs := h.taking[machineID]
		for i := range mine.Containers {
			c := &mine.Containers[i]
			for j := range theirs.Containers {
				o := &theirs.Containers[j]
				switch {
				case o.Name == c.Name:
					return fmt.Sprintf("the name %s is about to be that of another container of %s", c.Name, o.Owner)
				case api.PortsConflict(c.HostPorts(), o.HostPorts()):
					return fmt.Sprintf("%s is about to hold a port that container %s needs", about(o), c.Name)
				}
			}
		}
		for _, v := range mine.Volumes {
			if on, by := h.elsewhere(machineID, v); on != "" {
				return fmt.Sprintf("volume %s is about to be made on machine %s by service %s", v.Name, on, by)
			}
		}
	}
	return ""
}

// shared returns the name of a service that both have containers of.
func (t Taking) shared(other Taking) string {
	owners := map[api.Owner]bool{}
	for _, inventory := range t {
		for i := range inventory.Containers {
			owners[inventory.Containers[i].Owner] = true
		}
	}
	for _, inventory := range other {
		for i := range inventory.Containers {
			if c := &inventory.Containers[i]; owners[c.Owner] {
				return c.Owner.Service
			}
		}
	}
	return ""
}

// elsewhere returns the machine on which a volume is about to be made, if that is another one, and the service that makes it.
func (h *Reservation) elsewhere(machineID string, v api.Volume) (on, by string) {
	for other, theirs := range h.taking {
		if made := hasVolume(theirs.Volumes, v.Name); made != nil && other != machineID && h.owner.Shares(v.Owner) {
			return other, made.Owner.Service
		}
	}
	return "", ""
}

// about names a container that is not there yet.
func about(c *api.Container) string { return "container " + c.Name + whose(c.Owner) }

// refusal is a port of a machine.
type refusal struct {
	machineID string
	port      api.PortSpec
}

// refusalTime is how long a machine counts as one where a port is held by somebody who can't be seen.
const refusalTime = 10 * time.Minute

// Refused remembers that an engine did not give ports of its machine, although nobody is seen to hold them. Other machines are better
// for them then.
func (r *Reservations) Refused(machineID string, ports []api.PortSpec) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.refused == nil {
		r.refused = map[refusal]time.Time{}
	}
	for _, p := range ports {
		r.refused[refusal{machineID, p}] = time.Now()
	}
}

// Given remembers that an engine gave ports of its machine.
func (r *Reservations) Given(machineID string, ports []api.PortSpec) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for of := range r.refused {
		if of.machineID == machineID && api.PortsConflict(ports, []api.PortSpec{of.port}) {
			delete(r.refused, of)
		}
	}
}

// reserved is what is reserved at one moment.
type reserved struct {
	held    []*Reservation
	refused []refusal
}

// now returns what is reserved, but for one reservation.
func (r *Reservations) now(but *Reservation) reserved {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := reserved{held: slices.DeleteFunc(slices.Clone(r.held), func(h *Reservation) bool { return h == but })}
	for of, when := range r.refused {
		if time.Since(when) < refusalTime {
			now.refused = append(now.refused, of)
		} else {
			delete(r.refused, of)
		}
	}
	return now
}

// put makes what is reserved part of a state.
func (s *ClusterState) put(now reserved) {
	for _, m := range s.Machines {
		for _, h := range now.held {
			m.come(h.taking[m.ID])
		}
		for _, of := range now.refused {
			if of.machineID == m.ID {
				m.Refused = append(m.Refused, of.port)
			}
		}
	}
}

// come adds what is about to be on a machine. What is there already counts once.
func (m *Machine) come(taken api.Inventory) {
	for _, c := range taken.Containers {
		if !slices.ContainsFunc(m.Coming.Containers, func(o api.Container) bool { return o.Name == c.Name }) {
			m.Coming.Containers = append(m.Coming.Containers, c)
		}
	}
	for _, v := range taken.Volumes {
		if hasVolume(m.Inventory.Volumes, v.Name) == nil && hasVolume(m.Coming.Volumes, v.Name) == nil {
			m.Coming.Volumes = append(m.Coming.Volumes, v)
		}
	}
}

// Pair is a service and a machine.
type Pair struct{ Service, MachineID string }
