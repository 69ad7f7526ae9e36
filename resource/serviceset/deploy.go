package serviceset

import (
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// ServicesToDeploy returns what the ServiceSet should have of services whose dependencies are ready, by key: the next step of
// each along its upgrade paths, or the version that is under way with the values that are desired now. See [Resolve] for the
// rules. Disabled services are left out, and so are those that can't be installed. Of services that are listed twice, the first one
// counts.
//
// The paths are those from the templates in the ServiceSet (see [ServicesUpgradePaths]), in any order: a service with a templateChain
// takes no other way than those that end at the template that is desired, or, if none does, that lead over it, and of several the one with the
// smallest first step. filteredServices have their versions resolved. serviceSet may be nil. Nothing is changed.
func ServicesToDeploy(
	upgradePaths []v1alpha1.ServiceUpgradePaths, filteredServices []v1alpha1.Service, serviceSet *v1alpha1.ServiceSet,
) []v1alpha1.ServiceWithValues {
	stored := map[client.ObjectKey]*v1alpha1.ServiceWithValues{}
	states := map[client.ObjectKey]*v1alpha1.ServiceState{}
	if serviceSet != nil {
		for i := range serviceSet.Spec.Services {
			s := &serviceSet.Spec.Services[i]
			stored[s.Key()] = s
		}
		for i := range serviceSet.Status.Services {
			s := &serviceSet.Status.Services[i]
			states[s.Key()] = s
		}
	}
	ways := newListedPaths(upgradePaths)
	services := make([]v1alpha1.ServiceWithValues, 0, len(filteredServices))
	seen := make(map[client.ObjectKey]bool, len(filteredServices))
	for i := range filteredServices {
		s := &filteredServices[i]
		key := s.Key()
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
	sortEntries(services)
	return services
}

// listedPaths are upgrade paths by service, all of those that are given for it.
type listedPaths map[client.ObjectKey][]*v1alpha1.ServiceUpgradePaths

func newListedPaths(paths []v1alpha1.ServiceUpgradePaths) listedPaths {
	listed := make(listedPaths, len(paths))
	for i := range paths {
		key := paths[i].Key()
		listed[key] = append(listed[key], &paths[i])
	}
	return listed
}

// installable implements ways. Paths say nothing about templates that nothing leads to.
func (listedPaths) installable(*v1alpha1.Service, v1alpha1.ServiceVersion) *fault { return nil }

// to returns the paths from one template that end at another one, or all from there if none does.
func (l listedPaths) to(s *v1alpha1.Service, from, goal string) []v1alpha1.UpgradePath {
	var all, ending []v1alpha1.UpgradePath
	for _, paths := range l[s.Key()] {
		if paths.Template != from {
			continue
		}
		for _, path := range paths.AvailableUpgrades {
			all = append(all, path)
			if n := len(path.Versions); n > 0 && path.Versions[n-1].Name == goal {
				ending = append(ending, path)
			}
		}
	}
	if len(ending) > 0 {
		return ending
	}
	return all
}

// way implements ways: it is the one along a chain that has the steps of these paths and no other.
func (l listedPaths) way(s *v1alpha1.Service, from, goal v1alpha1.ServiceVersion) (v1alpha1.AvailableUpgrade, int, *fault) {
	spec := &v1alpha1.ServiceTemplateChainSpec{}
	for _, path := range l.to(s, from.Template, goal.Template) {
		at := from.Template
		for _, next := range path.Versions {
			spec.SupportedTemplates = append(spec.SupportedTemplates, v1alpha1.SupportedTemplate{
				Name: at, AvailableUpgrades: []v1alpha1.AvailableUpgrade{next},
			})
			at = next.Name
		}
	}
	known := templates{}
	for _, end := range []v1alpha1.ServiceVersion{from, goal} {
		known[end.Template] = &v1alpha1.ServiceTemplate{Spec: v1alpha1.ServiceTemplateSpec{Version: end.Version}}
	}
	steps, err := newChain(spec, known)
	if err != nil {
		return v1alpha1.AvailableUpgrade{}, 0, &fault{v1alpha1.ReasonChainInvalid, fmt.Sprintf("what is given of ServiceTemplateChain %s %v", s.TemplateChain, err)}
	}
	next, left, ok := steps.way(from.Template, goal.Template)
	if !ok {
		return v1alpha1.AvailableUpgrade{}, 0, noWay(s, from, goal, steps)
	}
	return next, left, nil
}
