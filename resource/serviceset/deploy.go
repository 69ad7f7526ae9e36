package serviceset

import (
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// ServicesToDeploy returns what the ServiceSet should have of services whose dependencies are ready, by key: the next step of
// each along its upgrade paths, or the version that is under way with the values that are desired now. See [Resolve] for the
// rules. Disabled services are left out, and so are those that can't be installed.
//
// The paths are those from the templates in the ServiceSet (see [ServicesUpgradePaths]): a service with a templateChain
// takes no other way. filteredServices have their versions resolved. serviceSet may be nil. Nothing is changed.
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
	for i := range filteredServices {
		s := &filteredServices[i]
		if s.Disable {
			continue
		}
		key := keyOf(s)
		p := position{desired: s, goal: goalOf(s), stored: stored[key], state: states[key], ways: ways}
		p.unseen = p.stored != nil && !observed(serviceSet, serviceSet.Generation, p.stored)
		if entry, d := p.step(); d.To.Template != "" {
			services = append(services, entry)
		}
	}
	slices.SortFunc(services, func(a, b v1alpha1.ServiceWithValues) int { return compareKeys(entryKey(&a), entryKey(&b)) })
	return services
}

// listedPaths are upgrade paths by service.
type listedPaths map[client.ObjectKey]*v1alpha1.ServiceUpgradePaths

func newListedPaths(paths []v1alpha1.ServiceUpgradePaths) listedPaths {
	listed := make(listedPaths, len(paths))
	for i := range paths {
		listed[ServiceKey(paths[i].Namespace, paths[i].Name)] = &paths[i]
	}
	return listed
}

// installable implements ways. Paths say nothing about templates that nothing leads to.
func (listedPaths) installable(*v1alpha1.Service, v1alpha1.ServiceVersion) *fault { return nil }

// way implements ways. A path that ends at the desired template is preferred to one that leads over it.
func (l listedPaths) way(s *v1alpha1.Service, from string, goal v1alpha1.ServiceVersion) (v1alpha1.AvailableUpgrade, int, *fault) {
	paths, ok := l[keyOf(s)]
	if !ok || paths.Template != from {
		return v1alpha1.AvailableUpgrade{}, 0, noWay(s, from, goal)
	}
	over, steps := v1alpha1.AvailableUpgrade{}, 0
	for _, path := range paths.AvailableUpgrades {
		at := slices.IndexFunc(path.Versions, func(u v1alpha1.AvailableUpgrade) bool { return u.Name == goal.Template })
		switch {
		case at < 0:
		case at == len(path.Versions)-1:
			return path.Versions[0], len(path.Versions), nil
		case steps == 0:
			over, steps = path.Versions[0], at+1
		}
	}
	if steps == 0 {
		return over, 0, noWay(s, from, goal)
	}
	return over, steps, nil
}
