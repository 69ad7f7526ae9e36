package scheduler

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/operatorkit/operatorkit/resource/deployment/api"
)

// namedMachines returns the IDs of the machines that a placement names; nil is all.
func namedMachines(state *ClusterState, spec api.ServiceSpec) (map[string]bool, error) {
	if len(spec.Placement.Machines) == 0 {
		return nil, nil
	}
	ids := map[string]string{}
	for _, m := range state.Machines {
		ids[m.Name] = m.ID
	}
	for _, m := range state.Machines {
		ids[m.ID] = m.ID
	}
	named := map[string]bool{}
	var absent []string
	for _, n := range spec.Placement.Machines {
		if id, ok := ids[n]; ok {
			named[id] = true
		} else {
			absent = append(absent, n)
		}
	}
	if len(absent) > 0 {
		return nil, &PlacementError{Service: spec.Name, Machines: absent}
	}
	return named, nil
}

// placed says why the placement does not allow a machine.
func placed(m *Machine, spec *api.ServiceSpec, named map[string]bool) string {
	if named != nil && !named[m.ID] {
		return "the placement does not name it"
	}
	if want := spec.Placement.Platform; want != "" && m.Platform != want {
		return fmt.Sprintf("its platform is %s, not %s", cmp.Or(m.Platform, "not known"), want)
	}
	for _, p := range spec.Ports {
		if len(p.HostIPs(m.Addresses)) == 0 {
			return "it has no address in " + p.HostIP
		}
		if p.Location() != "" && !m.Ingress && m.MeshAddress == "" {
			return "it is not for ports in mode ingress, and has no mesh address"
		}
	}
	for _, k := range sortedKeys(spec.Placement.Labels) {
		want := spec.Placement.Labels[k]
		if have, ok := m.Labels[k]; !ok || have != want {
			return fmt.Sprintf("it has no label %s=%s", k, want)
		}
	}
	return ""
}

// checkPorts takes out the machines where others hold the ports of the service, or are about to.
func (s *Scheduler) checkPorts() {
	ports := s.spec.HostPorts()
	if len(ports) == 0 {
		return
	}
	for _, c := range s.candidates {
		c.refused = api.PortsConflict(ports, c.machine.Refused)
		holders := map[string]bool{}
		for i := range c.machine.Inventory.Containers {
			other := &c.machine.Inventory.Containers[i]
			if s.state.Owns(s.spec.Name, other) || !other.Active() {
				continue
			}
			for _, p := range conflicts(ports, other) {
				holders[other.Name] = true
				refuse(c, fmt.Sprintf("container %s%s holds port %s", other.Name, whose(other.Owner), p))
			}
		}
		for i := range c.machine.Coming.Containers {
			other := &c.machine.Coming.Containers[i]
			if s.state.Owns(s.spec.Name, other) || holders[other.Name] {
				continue
			}
			for _, p := range conflicts(ports, other) {
				s.wait(c, other.Owner.Service)
				refuse(c, fmt.Sprintf("%s is about to hold port %s", about(other), p))
			}
		}
	}
}

// conflicts returns those ports that a container has.
func conflicts(ports []api.PortSpec, other *api.Container) []api.PortSpec {
	return slices.DeleteFunc(slices.Clone(ports), func(p api.PortSpec) bool { return !api.PortsConflict([]api.PortSpec{p}, other.HostPorts()) })
}

// wait remembers that a service is in the way on a machine that has taken nothing there yet.
func (s *Scheduler) wait(c *candidate, service string) {
	s.coming = append(s.coming, Pair{service, c.machine.ID})
}

// whose adds to a name whose it is, if that is known.
func whose(owner api.Owner) string {
	if owner == (api.Owner{}) {
		return ""
	}
	return " of " + owner.String()
}

// checkImages takes out the machines without the image when it must not be pulled.
func (s *Scheduler) checkImages() error {
	if s.spec.Container.PullPolicy != api.PullNever {
		return nil
	}
	name, err := api.ParseImageName(s.spec.Container.Image)
	if err != nil {
		return fmt.Errorf("read the image of service %s: %w", s.spec.Name, err)
	}
	for _, c := range s.candidates {
		if c.machine.Available() && !slices.ContainsFunc(c.machine.Inventory.Images, func(i api.Image) bool { return i.Is(name) }) {
			refuse(c, fmt.Sprintf("image %s is not there, and the pull policy is never", s.spec.Container.Image))
		}
	}
	return nil
}

// checkVolumes takes out the machines where a volume of the service is not and must not be made.
func (s *Scheduler) checkVolumes() {
	for _, v := range s.spec.MountedVolumes(api.VolumeTypeVolume) {
		where := s.look(v)
		s.checkShared(v, where)
		if s.spec.Mode != api.ServiceModeGlobal && !where.made {
			s.coming = append(s.coming, where.by...)
		}
		if !v.External && s.spec.Mode != api.ServiceModeGlobal && len(where.on) == 0 && where.hidden == "" {
			s.newVolumes = append(s.newVolumes, v.Name)
		}
		for _, c := range s.candidates {
			if c.machine.Available() {
				refuse(c, s.volume(c, v, where))
			}
		}
	}
}

// whereabouts says where a volume is.
type whereabouts struct {
	on []string
	// made tells that it is there already on one of them, and by are the services that are about to make it on the others.
	made bool
	by   []Pair
	// hidden says on which machine that can't be seen it is, or may be.
	hidden string
	// home are the machines on which containers of the service have it, and may be by its placement: what has its name elsewhere may have
	// other data. Empty is not known.
	home []string
}

func (s *Scheduler) look(v api.VolumeSpec) whereabouts {
	w := whereabouts{home: s.home(v)}
	for _, c := range s.candidates {
		m := c.machine
		if len(w.home) > 0 && !slices.Contains(w.home, m.Name) {
			continue
		}
		if have := hasVolume(m.Inventory.Volumes, v.Name); have != nil && m.Available() && !c.allowed && v.Differs(have) != "" {
			// It is another volume, on a machine that is out of the question.
			continue
		}
		coming := hasVolume(m.Coming.Volumes, v.Name)
		switch {
		case m.Available() && s.usable(v, hasVolume(m.Inventory.Volumes, v.Name)):
			w.on, w.made = append(w.on, m.Name), true
		case m.Available() && s.usable(v, coming):
			w.on, w.by = append(w.on, m.Name), append(w.by, Pair{coming.Owner.Service, m.ID})
		case w.hidden != "":
		case m.Blind():
			w.hidden = fmt.Sprintf("volume %s may be on %s, which can't be seen", v.Name, m.Name)
		case m.Unknown() && s.usable(v, hasVolume(m.LastSeen.Volumes, v.Name)):
			w.hidden = fmt.Sprintf("volume %s is on %s, which can't be seen", v.Name, m.Name)
		}
	}
	return w
}

func (s *Scheduler) volume(c *candidate, v api.VolumeSpec, w whereabouts) string {
	have := hasVolume(c.machine.Inventory.Volumes, v.Name)
	if have == nil {
		have = hasVolume(c.machine.Coming.Volumes, v.Name)
	}
	switch {
	case have != nil && !s.usable(v, have):
		return fmt.Sprintf("volume %s is there already, of %s; call it otherwise, or external to use it", v.Name, have.Owner)
	case have != nil && v.Differs(have) != "":
		return "volume " + v.Name + " " + v.Differs(have)
	case have != nil && len(w.home) > 0 && !slices.Contains(w.home, c.machine.Name):
		return fmt.Sprintf("volume %s of the service is on %s; the one here may have other data", v.Name, names(w.home))
	case have != nil:
		return ""
	case v.External:
		return fmt.Sprintf("volume %s is not there, and is not ours to make", v.Name)
	case s.spec.Mode == api.ServiceModeGlobal:
		return ""
	case len(w.on) > 0 && !w.made:
		return fmt.Sprintf("volume %s is about to be made on %s by service %s", v.Name, names(w.on), w.by[0].Service)
	case len(w.on) > 0:
		return fmt.Sprintf("volume %s is on %s", v.Name, names(w.on))
	}
	return w.hidden
}

// usable tells whether a volume that is there may be used as the one of a specification. It is nil if it is not there.
func (s *Scheduler) usable(v api.VolumeSpec, have *api.Volume) bool {
	return have != nil && (v.External || s.state.Owner.Shares(have.Owner))
}

func hasVolume(volumes []api.Volume, name string) *api.Volume {
	if i := slices.IndexFunc(volumes, func(v api.Volume) bool { return v.Name == name }); i >= 0 {
		return &volumes[i]
	}
	return nil
}
