package scheduler

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/operatorkit/operatorkit/resource/deployment/api"
)

// Basis is what a plan for a service depends on: the containers of the service; of the machines on which it does something whether they
// take its containers, with their ports, volumes and names; and where the volumes of the service are. Everything else may change, and
// the plan is as good as before.
type Basis struct {
	spec   api.ServiceSpec
	places []Place
	facts  map[string]string
	// seen is the state in which it was so.
	seen *ClusterState
}

// Place is a machine on which a plan does something, and the name of a container that it makes there, or nothing.
type Place struct{ MachineID, Container string }

// Basis returns what a plan depends on that was made from this state.
func (s *ClusterState) Basis(spec api.ServiceSpec, places []Place) Basis {
	b := Basis{spec: spec, places: places, seen: s}
	b.facts = b.look(s)
	return b
}

// Fingerprint identifies it.
func (b Basis) Fingerprint() string {
	h := sha256.New()
	for _, what := range slices.Sorted(maps.Keys(b.facts)) {
		_, _ = fmt.Fprintf(h, "%q %q\n", what, b.facts[what])
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Seen returns the state from which the plan was made.
func (b Basis) Seen() *ClusterState { return b.seen }

// Changes says what of it is otherwise in another state, such as "container web-a1b2c on m1: running, now exited".
func (b Basis) Changes(now *ClusterState) []string {
	facts := b.look(now)
	if wrong, is := facts[theService]; is && b.facts[theService] == "" {
		// Nothing else was looked at.
		return []string{wrong}
	}
	var changes []string
	for what, was := range b.facts {
		if is := facts[what]; is != was {
			changes = append(changes, fmt.Sprintf("%s: %s, now %s", what, cmp.Or(was, "not there"), cmp.Or(is, "not there")))
		}
	}
	for what, is := range facts {
		if _, was := b.facts[what]; !was {
			changes = append(changes, fmt.Sprintf("%s: not there, now %s", what, is))
		}
	}
	slices.Sort(changes)
	return changes
}

// theService is the fact that nothing can be planned for the service.
const theService = "the service"

// look returns what matters of a state.
func (b Basis) look(state *ClusterState) map[string]string {
	facts := map[string]string{}
	sched, err := New(state, b.spec)
	if err != nil {
		facts[theService] = err.Error()
		return facts
	}
	var blind []string
	concerned := map[string]bool{}
	for _, p := range b.places {
		concerned[p.MachineID] = true
	}
	for _, c := range sched.candidates {
		m := c.machine
		if m.Blind() && !m.Untouched {
			blind = append(blind, m.Name)
		}
		if b.containers(state, m, facts) {
			facts["machine "+m.Name] = describe(c)
		}
		if concerned[m.ID] {
			// The service's own containers are not in their own way, and the machine's refusals are not what it is.
			facts["a container on "+m.Name] = cmp.Or(strings.Join(append(slices.Clone(c.reasons), optional(closed(m))...), ", "), "possible")
		}
	}
	facts["the machines of which nothing is known"] = cmp.Or(strings.Join(blind, ", "), "none")
	b.names(state, facts)
	if b.spec.Mode == api.ServiceModeGlobal {
		// Each machine has one of its own.
		return facts
	}
	for _, v := range b.spec.MountedVolumes(api.VolumeTypeVolume) {
		where := sched.look(v)
		facts["volume "+v.Name] = cmp.Or(where.hidden, strings.Join(where.on, ", "), "nowhere")
	}
	return facts
}

func optional(text string) []string {
	if text == "" {
		return nil
	}
	return []string{text}
}

// describe says how a machine is that has containers of the service.
func describe(c *candidate) string {
	is := []string{string(cmp.Or(c.machine.State, api.MachineAvailable))}
	if c.machine.Available() && !c.allowed {
		is = append(is, "not allowed by the placement")
	}
	if c.machine.Drain {
		is = append(is, "drained")
	} else if c.closed != "" {
		is = append(is, "takes no new containers")
	}
	return strings.Join(is, ", ")
}

// containers adds those of the service on a machine, and tells whether there are any. Containers don't change, but for what changes in
// place.
func (b Basis) containers(state *ClusterState, m *Machine, facts map[string]string) bool {
	any := false
	inventory := &m.Inventory
	if m.LastSeen != nil && m.Unknown() {
		inventory = m.LastSeen
	}
	for i := range inventory.Containers {
		c := &inventory.Containers[i]
		if !state.Owns(b.spec.Name, c) {
			continue
		}
		any = true
		is := []string{string(c.State)}
		if c.Health != api.HealthNone {
			is = append(is, string(c.Health))
		}
		r := &c.Spec.Container.Resources
		for _, limit := range []struct {
			name  string
			value fmt.Stringer
			set   bool
		}{{"CPU", r.CPU, r.CPU != nil}, {"memory", r.Memory, r.Memory != nil}, {"memory reservation", r.MemoryReservation, r.MemoryReservation != nil}} {
			if limit.set {
				is = append(is, limit.name+" "+limit.value.String())
			}
		}
		if p := c.Spec.Container.RestartPolicy; p != (api.RestartPolicy{}) {
			is = append(is, fmt.Sprintf("restarts %s %d", p.Name, p.MaxRetries))
		}
		facts[fmt.Sprintf("container %s (%.12s) on %s", c.Name, c.ID, m.Name)] = strings.Join(is, ", ")
	}
	return any
}

// names adds who has the names of the containers that the plan makes.
func (b Basis) names(state *ClusterState, facts map[string]string) {
	for _, p := range b.places {
		i := slices.IndexFunc(state.Machines, func(m *Machine) bool { return m.ID == p.MachineID })
		if p.Container == "" || i < 0 {
			continue
		}
		m := state.Machines[i]
		is := "free"
		for _, inventory := range []*api.Inventory{&m.Inventory, &m.Coming} {
			if i := slices.IndexFunc(inventory.Containers, func(c api.Container) bool { return c.Name == p.Container }); i >= 0 {
				is = "taken" + whose(inventory.Containers[i].Owner)
			}
		}
		facts["the name "+p.Container+" on "+m.Name] = is
	}
}
