package deployment

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/operatorkit/operatorkit/resource/deployment/api"
	"github.com/operatorkit/operatorkit/resource/deployment/scheduler"
)

// targets returns the machines that get new containers, by name.
func (p *planner) targets() []*scheduler.Machine {
	var machines []*scheduler.Machine
	seen := map[string]bool{}
	fills := p.fills
	if p.job != nil {
		fills = []*fill{p.job}
	}
	for _, f := range fills {
		if f.existing == nil && !seen[f.machine.ID] {
			seen[f.machine.ID] = true
			machines = append(machines, f.machine)
		}
	}
	slices.SortStableFunc(machines, func(a, b *scheduler.Machine) int { return cmp.Compare(a.Name, b.Name) })
	return machines
}

func (p *planner) pulls() []Operation {
	policy := p.spec.Container.PullPolicy
	if policy == api.PullNever {
		return nil
	}
	// The specification is valid, so that the image has a name.
	name, _ := api.ParseImageName(p.spec.Container.Image)
	var operations []Operation
	for _, m := range p.targets() {
		there := slices.ContainsFunc(m.Inventory.Images, func(i api.Image) bool { return i.Is(name) })
		if policy == api.PullAlways || !there {
			operations = append(operations, &PullImageOperation{Image: p.spec.Container.Image, MachineID: m.ID})
		}
	}
	return operations
}

func (p *planner) volumes() []Operation {
	var operations []Operation
	for _, m := range p.targets() {
		for _, v := range p.sched.MissingVolumes(m.ID) {
			operations = append(operations, &CreateVolumeOperation{VolumeSpec: v, MachineID: m.ID, MachineName: m.Name})
		}
	}
	return operations
}

// noteTargets says which data are not on the machines that get new containers, and what their engines ignore.
func (p *planner) noteTargets() {
	for _, m := range p.targets() {
		for _, path := range slices.Sorted(maps.Keys(m.Ignored)) {
			if _, asked := p.attributes[path]; asked {
				p.note("%s is ignored on %s: %s", path, m.Name, m.Ignored[path])
			}
		}
		for _, v := range p.spec.MountedVolumes(api.VolumeTypeVolume) {
			if on := p.sched.MountedElsewhere(m.ID, v); len(on) > 0 {
				p.note("volume %s on %s has other data than the one on %s, unless both machines see one storage", v.Name, m.Name, strings.Join(on, ", "))
			}
		}
		for _, v := range p.sched.MissingVolumes(m.ID) {
			if on := p.state.Elsewhere(m.ID, v.Name); len(on) > 0 {
				p.note("volume %s is new and empty on %s: the data of the one on %s are not there", v.Name, m.Name, strings.Join(on, ", "))
			}
		}
	}
}
