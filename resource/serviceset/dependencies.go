package serviceset

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// DependencyError says that what a MultiClusterService depends on contradicts itself, or is not there. Its services stay as they are
// before that is mended. It names every one.
type DependencyError struct {
	// Absent are dependencies on MultiClusterServices that do not exist, or are being deleted.
	Absent []AbsentMultiClusterService
	// Cycle is MultiClusterServices that depend on each other: each on the next one, the last is the first. It is a shortest one, and
	// empty where there is none.
	Cycle []string
}

// AbsentMultiClusterService is one that another depends on, and that is not there.
type AbsentMultiClusterService struct {
	Name, DependsOn string
	// Deleting tells that DependsOn exists, and is being deleted.
	Deleting bool
}

// Error implements error.
func (e *DependencyError) Error() string {
	var parts []string
	for _, a := range e.Absent {
		why := "which does not exist: create it"
		if a.Deleting {
			why = fmt.Sprintf("which is being deleted: delete %s too", a.Name)
		}
		parts = append(parts, fmt.Sprintf("MultiClusterService %s depends on %s, %s, or take it out of dependsOn", a.Name, a.DependsOn, why))
	}
	if len(e.Cycle) > 0 {
		parts = append(parts, "MultiClusterServices depend on each other: "+strings.Join(e.Cycle, " → ")+": take one of these dependencies out")
	}
	return strings.Join(parts, "; ")
}

// Dependencies returns the names of all MultiClusterServices that one depends on, directly or transitively, in their order; all are
// those that there are. The error is a *DependencyError about any of them, and comes beside the names.
func Dependencies(mcs *v1alpha1.MultiClusterService, all []v1alpha1.MultiClusterService) ([]string, error) {
	d := newDependencies(len(all) + 1)
	for i := range all {
		d.services[all[i].Name] = &all[i]
	}
	d.services[mcs.Name] = mcs
	return d.of(mcs.Name)
}

// Dependents returns the names of all MultiClusterServices that depend on one, directly or transitively, in the order of the list. The
// one itself is none of them.
func Dependents(name string, all []v1alpha1.MultiClusterService) []string {
	d := newDependencies(len(all))
	for i := range all {
		d.services[all[i].Name] = &all[i]
	}
	var names []string
	for i := range all {
		if _, ok := d.reach(all[i].Name)[name]; ok && all[i].Name != name {
			names = append(names, all[i].Name)
		}
	}
	return names
}

// dependencies are MultiClusterServices by name, and what is known of their order. It must not change once it is asked.
type dependencies struct {
	services map[string]*v1alpha1.MultiClusterService
	reached  map[string]map[string]string
}

func newDependencies(size int) *dependencies {
	return &dependencies{services: make(map[string]*v1alpha1.MultiClusterService, size), reached: map[string]map[string]string{}}
}

// of does what Dependencies does. Who is not there any more depends on nobody.
func (d *dependencies) of(name string) ([]string, error) {
	from := d.reach(name)
	if len(from) == 0 {
		return nil, nil
	}
	names := slices.Sorted(maps.Keys(from))
	fault := &DependencyError{}
	for _, n := range names {
		if mcs := d.services[n]; mcs == nil || mcs.DeletionTimestamp != nil && n != name {
			fault.Absent = append(fault.Absent, AbsentMultiClusterService{Name: from[n], DependsOn: n, Deleting: mcs != nil})
		}
	}
	for _, n := range append([]string{name}, names...) {
		if fault.Cycle = d.cycle(n); fault.Cycle != nil {
			break
		}
	}
	names = slices.DeleteFunc(names, func(n string) bool { return n == name })
	if len(fault.Absent)+len(fault.Cycle) > 0 {
		return names, fault
	}
	return names, nil
}

// reach returns all that one depends on, each with the one before it on a shortest way there.
func (d *dependencies) reach(start string) map[string]string {
	if known, ok := d.reached[start]; ok {
		return known
	}
	from := map[string]string{}
	for queue := []string{start}; len(queue) > 0; queue = queue[1:] {
		at := d.services[queue[0]]
		if at == nil {
			continue
		}
		for _, name := range slices.Sorted(slices.Values(at.Spec.DependsOn)) {
			if _, known := from[name]; !known {
				from[name] = at.Name
				queue = append(queue, name)
			}
		}
	}
	d.reached[start] = from
	return from
}

// cycle returns a shortest way from one back to itself, nil if there is none.
func (d *dependencies) cycle(start string) []string {
	from := d.reach(start)
	at, ok := from[start]
	if !ok {
		return nil
	}
	path := []string{start}
	for ; at != start; at = from[at] {
		path = append(path, at)
	}
	path = append(path, start)
	slices.Reverse(path)
	return path
}
