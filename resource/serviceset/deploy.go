package serviceset

import (
	"cmp"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// ServicesToDeploy returns what the ServiceSet should have of services whose dependencies are ready, by key: the next step of
// each along its upgrade paths, or the version that is under way with the values that are desired now. See [Resolve] for the
// rules. Disabled services are left out, and so are those that can't be installed. Of services that are listed twice, the first one
// counts.
//
// The paths are those from the templates in the ServiceSet (see [ServicesUpgradePaths]), in any order: a service with a templateChain
// takes no other way, and of several the one with the smallest first step. filteredServices have their versions resolved. serviceSet may be nil. Nothing is changed.
func ServicesToDeploy(
	upgradePaths []v1alpha1.ServiceUpgradePaths, filteredServices []v1alpha1.Service, serviceSet *v1alpha1.ServiceSet,
) []v1alpha1.ServiceWithValues {
	stored := map[client.ObjectKey]*v1alpha1.ServiceWithValues{}
	states := map[client.ObjectKey]*v1alpha1.ServiceState{}
	if serviceSet != nil {
		for i := range serviceSet.Spec.Services {
			s := &serviceSet.Spec.Services[i]
			stored[entryKey(s)] = s
		}
		for i := range serviceSet.Status.Services {
			s := &serviceSet.Status.Services[i]
			states[stateKey(s)] = s
		}
	}
	ways := newListedPaths(upgradePaths)
	services := make([]v1alpha1.ServiceWithValues, 0, len(filteredServices))
	seen := make(map[client.ObjectKey]bool, len(filteredServices))
	for i := range filteredServices {
		s := &filteredServices[i]
		key := keyOf(s)
		if seen[key] {
			continue
		}
		seen[key] = true
		if s.Disable {
			continue
		}
		p := position{desired: s, goal: goalOf(s), stored: stored[key], state: states[key], ways: ways}
		p.unseen = p.stored != nil && !observed(serviceSet, serviceSet.Generation, p.stored)
		if entry, d := p.step(); d.To.Template != "" {
			services = append(services, entry)
		}
	}
	slices.SortFunc(services, func(a, b v1alpha1.ServiceWithValues) int { return compareKeys(entryKey(&a), entryKey(&b)) })
	return services
}

// listedPaths are upgrade paths by service, all of those that are given for it.
type listedPaths map[client.ObjectKey][]*v1alpha1.ServiceUpgradePaths

func newListedPaths(paths []v1alpha1.ServiceUpgradePaths) listedPaths {
	listed := make(listedPaths, len(paths))
	for i := range paths {
		key := ServiceKey(paths[i].Namespace, paths[i].Name)
		listed[key] = append(listed[key], &paths[i])
	}
	return listed
}

// installable implements ways. Paths say nothing about templates that nothing leads to.
func (listedPaths) installable(*v1alpha1.Service, v1alpha1.ServiceVersion) *fault { return nil }

// way implements ways. Of several paths, the one is taken whose first step is smallest, as along a chain.
func (l listedPaths) way(s *v1alpha1.Service, from, goal v1alpha1.ServiceVersion) (v1alpha1.AvailableUpgrade, int, *fault) {
	var found []listedPath
	for _, paths := range l[keyOf(s)] {
		if paths.Template != from.Template {
			continue
		}
		for _, path := range paths.AvailableUpgrades {
			at := slices.IndexFunc(path.Versions, func(u v1alpha1.AvailableUpgrade) bool { return u.Name == goal.Template })
			if at >= 0 {
				unversioned := slices.ContainsFunc(path.Versions, func(u v1alpha1.AvailableUpgrade) bool { return parseVersion(u.Version) == nil })
				found = append(found, listedPath{path.Versions[0], at + 1, at < len(path.Versions)-1, !unversioned})
			}
		}
	}
	if len(found) == 0 {
		return v1alpha1.AvailableUpgrade{}, 0, noWay(s, from.Template, goal)
	}
	best := slices.MinFunc(found, preferPaths(from, goal, found))
	return best.first, best.steps, nil
}

// listedPath is a path as far as it leads to the desired template.
type listedPath struct {
	first     v1alpha1.AvailableUpgrade
	steps     int
	over      bool // it leads on from there
	versioned bool // all versions on it are semantic
}

// preferPaths orders paths by their first steps: on the way up, the smallest version that is not below the present one comes first, on
// the way down the greatest that is not above. Where a version is absent or not semantic, versions decide nothing, and a path that ends at the
// desired template is preferred to one that leads over it. Then the fewest steps come first, then the first name.
func preferPaths(from, goal v1alpha1.ServiceVersion, paths []listedPath) func(a, b listedPath) int {
	c := &chain{nodes: []chainNode{{semver: parseVersion(from.Version)}, {semver: parseVersion(goal.Version)}}}
	at := make(map[string]int32, len(paths))
	versioned := c.nodes[0].semver != nil && c.nodes[1].semver != nil
	for _, p := range paths {
		versioned = versioned && p.versioned
		at[p.first.Name] = int32(len(c.nodes))
		c.nodes = append(c.nodes, chainNode{name: p.first.Name, semver: parseVersion(p.first.Version)})
	}
	sign := 1
	if c.compare(0, 1) > 0 {
		sign = -1
	}
	prefer := c.prefer(sign)
	return func(a, b listedPath) int {
		order := 0
		switch {
		case versioned:
			order = prefer(0, at[a.first.Name], at[b.first.Name])
		case a.over != b.over && a.over:
			order = 1
		case a.over != b.over:
			order = -1
		}
		return cmp.Or(order, cmp.Compare(a.steps, b.steps), cmp.Compare(a.first.Name, b.first.Name))
	}
}
