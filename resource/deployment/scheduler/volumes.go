package scheduler

import (
	"fmt"
	"slices"

	"github.com/operatorkit/operatorkit/resource/deployment/api"
)

// mounts reports whether a container has a volume of a name.
func mounts(c *api.Container, volume string) bool {
	return slices.ContainsFunc(c.Spec.MountedVolumes(api.VolumeTypeVolume), func(v api.VolumeSpec) bool { return v.Name == volume })
}

// seen returns what is on a machine, or was when it was seen last.
func (m *Machine) seen() *api.Inventory {
	if m.Unknown() && m.LastSeen != nil {
		return m.LastSeen
	}
	return &m.Inventory
}

// home returns the machines which containers of the service are on and have a volume. Those of a global service have one each, and an
// external volume may be the same on all machines.
func (s *Scheduler) home(v api.VolumeSpec) []string {
	return s.mounted(v, func(c *candidate) bool { return c.placed })
}

// MountedElsewhere returns the machines on which containers of the service have a volume, if they have none on a machine that has a volume of
// its name.
func (s *Scheduler) MountedElsewhere(machineID string, v api.VolumeSpec) []string {
	on := s.mounted(v, func(*candidate) bool { return true })
	if c := s.byID[machineID]; c == nil || slices.Contains(on, c.machine.Name) || hasVolume(c.machine.Inventory.Volumes, v.Name) == nil {
		return nil
	}
	return on
}

func (s *Scheduler) mounted(v api.VolumeSpec, of func(*candidate) bool) []string {
	var home []string
	if v.External || s.spec.Mode == api.ServiceModeGlobal {
		return nil
	}
	for _, c := range s.candidates {
		m := c.machine
		if !of(c) || hasVolume(m.seen().Volumes, v.Name) == nil {
			continue
		}
		if slices.ContainsFunc(m.seen().Containers, func(o api.Container) bool {
			// Of a machine that can't be seen it may not be known what its containers mount.
			return s.state.Owns(s.spec.Name, &o) && (mounts(&o, v.Name) || o.Spec.Container.Image == "")
		}) {
			home = append(home, m.Name)
		}
	}
	return home
}

// checkShared takes out the machines without a volume that a global service shares with one that is not: there is one of it, and the global
// service runs where it is.
func (s *Scheduler) checkShared(v api.VolumeSpec, w whereabouts) {
	if v.External || s.spec.Mode != api.ServiceModeGlobal {
		return
	}
	service := s.sharedWith(v)
	if service == "" {
		return
	}
	for _, c := range s.candidates {
		if hasVolume(c.machine.Inventory.Volumes, v.Name) != nil || hasVolume(c.machine.Coming.Volumes, v.Name) != nil {
			continue
		}
		c.allowed = false
		refuse(c, fmt.Sprintf("volume %s is that of service %s, which has it on one machine", v.Name, service))
		if len(w.on) == 0 {
			s.wait(c, service)
		}
	}
}

// sharedWith returns a service that has a volume, or is to have it, and is not global.
func (s *Scheduler) sharedWith(v api.VolumeSpec) string {
	if service := s.state.Single[v.Name]; service != "" && service != s.spec.Name {
		return service
	}
	for _, c := range s.candidates {
		for _, inventory := range []*api.Inventory{c.machine.seen(), &c.machine.Coming} {
			for i := range inventory.Containers {
				o := &inventory.Containers[i]
				other := o.ServiceName != "" && o.ServiceName != s.spec.Name && s.state.Owner.Shares(o.Owner)
				if other && o.Spec.Mode != api.ServiceModeGlobal && mounts(o, v.Name) {
					return o.ServiceName
				}
			}
		}
	}
	return ""
}

// Elsewhere returns the machines other than one on which there is a volume that the owner may use, or was when they were seen last.
func (s *ClusterState) Elsewhere(machineID, volume string) []string {
	var on []string
	for _, m := range s.sorted() {
		have := hasVolume(m.seen().Volumes, volume)
		if have != nil && m.ID != machineID && m.State != api.MachineGone && s.Owner.Shares(have.Owner) {
			on = append(on, m.Name)
		}
	}
	return on
}
