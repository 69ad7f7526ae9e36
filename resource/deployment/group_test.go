package deployment_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/operatorkit/operatorkit/resource/deployment"
	"github.com/operatorkit/operatorkit/resource/deployment/api"
	"github.com/operatorkit/operatorkit/resource/deployment/scheduler"
)

func onMachines(names ...string) func(*api.ServiceSpec) {
	return func(s *api.ServiceSpec) { s.Placement.Machines = names }
}

func TestAGroupIsPlacedTogether(t *testing.T) {
	for name, test := range map[string]struct {
		specs []api.ServiceSpec
		want  string
	}{
		"those that share a volume come to the machine that both may be on": {
			[]api.ServiceSpec{named("a", 1, data, onMachines("m1", "m2")), named("b", 1, data, onMachines("m2", "m3"))},
			"a: m2; b: m2",
		},
		"those that have one port come to several": {
			[]api.ServiceSpec{named("a", 1, port80), named("b", 1, port80, onMachines("m1")), named("c", 1, port80, onMachines("m1", "m2"))},
			"a: m3; b: m1; c: m2",
		},
		"what has a port makes place for what shares a volume": {
			[]api.ServiceSpec{
				named("a", 1, port80, onMachines("m2", "m3")), named("b", 1, port80, data, onMachines("m2", "m1")), named("c", 1, data, onMachines("m2")),
			},
			"a: m3; b: m2; c: m2",
		},
		"what can't be is refused": {
			[]api.ServiceSpec{named("a", 1, data, onMachines("m1")), named("b", 1, data, onMachines("m2"))},
			"plan service b: there is no machine for container 1 of service b: m1: the placement does not name it; m2: volume data is about to be made on m1 by service a",
		},
		"a name twice": {[]api.ServiceSpec{named("a", 1), named("a", 2)}, "there are two services of the name a"},
		"a volume with two descriptions": {
			[]api.ServiceSpec{named("a", 1, data), named("b", 1, data, func(s *api.ServiceSpec) { s.Volumes[0].Driver = &api.VolumeDriver{Name: "nfs"} })},
			"services a and b describe volume data in two ways",
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := newSimulation(3)
				s.invariants = []func(*simulation) string{neverOnePortTwice, neverTwoCopiesOfAVolume}
				_, err := deployment.NewGroup(s, test.specs, nil).Run(t.Context())
				got := fmt.Sprint(err)
				if err == nil {
					got = s.places(test.specs)
				} else if len(s.log) > 0 {
					t.Errorf("it is refused, and something was done: %v", s.log)
				}
				if !strings.HasPrefix(got, test.want) || len(s.violations) > 0 {
					t.Errorf("got %s, want %s; violations: %v", got, test.want, s.violations)
				}
			})
		})
	}
}

// places says on which machines services are: "a: m1 m2; b: m3".
func (s *simulation) places(specs []api.ServiceSpec) string {
	var all []string
	for _, spec := range specs {
		var on []string
		for _, c := range s.of(spec.Name) {
			name, _, _ := strings.Cut(c, "/")
			on = append(on, name)
		}
		all = append(all, spec.Name+": "+strings.Join(on, " "))
	}
	return strings.Join(all, "; ")
}

// neighbours are services that have ports and volumes in common, on machines where there are others already.
type neighbours struct {
	machines int
	// held are the ports that others hold, by machine.
	held  map[int][]uint16
	specs []api.ServiceSpec
}

func drawNeighbours(t *rapid.T) *neighbours {
	n := &neighbours{machines: rapid.IntRange(1, 3).Draw(t, "machines"), held: map[int][]uint16{}}
	for i := range n.machines {
		n.held[i] = rapid.SliceOfNDistinct(rapid.SampledFrom([]uint16{80, 81}), 0, 1, rapid.ID).Draw(t, "held")
	}
	for i := range rapid.IntRange(2, 4).Draw(t, "services") {
		spec := named(fmt.Sprintf("s%d", i), int32(rapid.IntRange(1, 2).Draw(t, "replicas")))
		for _, p := range rapid.SliceOfNDistinct(rapid.SampledFrom([]uint16{80, 81}), 0, 2, rapid.ID).Draw(t, "ports") {
			spec.Ports = append(spec.Ports, api.PortSpec{Mode: api.PortModeHost, PublishedPort: p, ContainerPort: p})
		}
		for _, v := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"red", "blue"}), 0, 2, rapid.ID).Draw(t, "volumes") {
			spec.Volumes = append(spec.Volumes, api.VolumeSpec{Name: v})
			spec.Container.VolumeMounts = append(spec.Container.VolumeMounts, api.VolumeMount{Volume: v, Path: "/" + v})
		}
		for m := range n.machines {
			if rapid.IntRange(0, 2).Draw(t, "allowed") > 0 {
				spec.Placement.Machines = append(spec.Placement.Machines, fmt.Sprintf("m%d", m+1))
			}
		}
		n.specs = append(n.specs, spec)
	}
	return n
}

// fit tells whether there are places for the services from the i-th on, given what those before have.
func (n *neighbours) fit(i int, ports map[int][]uint16, volumes map[string]int) bool {
	if i == len(n.specs) {
		return true
	}
	return n.fitContainers(i, n.specs[i].DesiredReplicas(), 0, ports, volumes)
}

func (n *neighbours) fitContainers(i, containers, from int, ports map[int][]uint16, volumes map[string]int) bool {
	if containers == 0 {
		return n.fit(i+1, ports, volumes)
	}
	spec := n.specs[i]
	for m := from; m < n.machines; m++ {
		name := fmt.Sprintf("m%d", m+1)
		if len(spec.Placement.Machines) > 0 && !slices.Contains(spec.Placement.Machines, name) {
			continue
		}
		nextPorts, nextVolumes := map[int][]uint16{}, map[string]int{}
		for k, v := range ports {
			nextPorts[k] = slices.Clone(v)
		}
		for k, v := range volumes {
			nextVolumes[k] = v
		}
		fits := true
		for _, p := range spec.Ports {
			fits = fits && !slices.Contains(nextPorts[m], p.PublishedPort)
			nextPorts[m] = append(nextPorts[m], p.PublishedPort)
		}
		for _, v := range spec.Volumes {
			on, there := nextVolumes[v.Name]
			fits = fits && (!there || on == m)
			nextVolumes[v.Name] = m
		}
		if fits && n.fitContainers(i, containers-1, m, nextPorts, nextVolumes) {
			return true
		}
	}
	return false
}

func (n *neighbours) String() string {
	text := fmt.Sprintf("%d machines, held %v", n.machines, n.held)
	for _, spec := range n.specs {
		text += fmt.Sprintf("\n  %s ×%d ports %v volumes %v on %v", spec.Name, spec.DesiredReplicas(), spec.Ports, spec.Volumes, spec.Placement.Machines)
	}
	return text
}

// world returns machines on which others hold ports.
func (n *neighbours) world() *simulation {
	s := newSimulation(n.machines)
	for i, ports := range n.held {
		for _, p := range ports {
			occupy(s.machines[i], p)
		}
	}
	s.invariants = []func(*simulation) string{neverOnePortTwice, neverTwoCopiesOfAVolume, neverTouched(len(s.log))}
	return s
}

// neverTouched holds that nobody changes what is another's.
func neverTouched(from int) func(*simulation) string {
	return func(s *simulation) string {
		for _, l := range s.log[from:] {
			if strings.Contains(l, "other") {
				return l
			}
		}
		return ""
	}
}

func TestSeveralServicesAreAllPlacedOrNone(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		n := drawNeighbours(r)
		var fault string
		bubble(t, func(t *testing.T) {
			s := n.world()
			_, err := deployment.NewGroup(s, n.specs, nil).Run(t.Context())
			var nowhere *scheduler.UnschedulableError
			fits := n.fit(0, n.held, map[string]int{})
			switch {
			case len(s.violations) > 0:
				fault = strings.Join(s.violations, "; ")
			case err != nil && !errors.As(err, &nowhere):
				fault = err.Error()
			case err != nil && fits:
				fault = "there is place for all, and it is refused: " + err.Error()
			case err == nil && !fits:
				fault = "there is no place for all, and they are on " + s.places(n.specs)
			case err != nil && len(s.log) > 0:
				fault = fmt.Sprintf("it is refused, and something was done: %v", s.log)
			}
			for _, spec := range n.specs {
				if err == nil && len(s.of(spec.Name)) != spec.DesiredReplicas() {
					fault = "not all containers are there: " + s.places(n.specs)
				}
			}
		})
		if fault != "" {
			r.Fatalf("%s\n%s", fault, n)
		}
	})
}

func TestSeveralServicesAtOnceNeverTakeOneThing(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		n := drawNeighbours(r)
		var fault string
		bubble(t, func(t *testing.T) {
			s := n.world()
			c := crowdOn(s)
			c.Workers = 4
			c.Deploy(t.Context(), n.specs)
			if len(s.violations) > 0 {
				fault = strings.Join(s.violations, "; ")
			}
			// What was not placed has no place now: one more try by itself says so too.
			for name, err := range c.Errors {
				i := slices.IndexFunc(n.specs, func(spec api.ServiceSpec) bool { return spec.Name == name })
				if _, again := deploy(t.Context(), s, n.specs[i], nil); again == nil || !errors.As(err, new(*scheduler.UnschedulableError)) {
					fault = fmt.Sprintf("service %s was given up (%v), and then deployed (%v)", name, err, again)
				}
			}
		})
		if fault != "" {
			r.Fatalf("%s\n%s", fault, n)
		}
	})
}
