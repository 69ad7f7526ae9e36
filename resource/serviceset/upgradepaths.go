package serviceset

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// ServicesWithDesiredChains returns deployed services as services, in their order, each along the chain that is desired
// for it now: what [ServicesUpgradePaths] takes. The lists are not changed.
func ServicesWithDesiredChains(desiredServices []v1alpha1.Service, deployedServices []v1alpha1.ServiceWithValues) []v1alpha1.Service {
	wanted := make(map[client.ObjectKey]string, len(desiredServices))
	for i := range desiredServices {
		wanted[desiredServices[i].Key()] = desiredServices[i].TemplateChain
	}
	services := make([]v1alpha1.Service, len(deployedServices))
	for i := range deployedServices {
		s := &deployedServices[i]
		key := s.Key()
		services[i] = v1alpha1.Service{
			Name: s.Name, Namespace: key.Namespace, Template: s.Template, Version: s.Version, TemplateChain: wanted[key],
		}
	}
	return services
}

// ServicesUpgradePaths returns where services can go from their templates along their chains, in the order of services. For
// each template that can be reached there is one path: the one that is taken when it is desired. Services without a chain have no
// paths: they can go anywhere at once.
//
// The error is a *MissingError that names every chain which does not exist, contradicts itself, or lacks the service's template;
// the paths of the other services are returned with it. Chains are read from namespace. Who asks often uses [ReadPaths].
func ServicesUpgradePaths(
	ctx context.Context, c client.Reader, services []v1alpha1.Service, namespace string,
) ([]v1alpha1.ServiceUpgradePaths, error) {
	paths, err := ReadPaths(ctx, c, namespace)
	if err != nil {
		return nil, err
	}
	return paths.Of(services)
}

// Paths are the upgrade paths along the chains of a namespace, as they were when they were read. Each is computed once. It is safe for
// concurrent use.
type Paths struct {
	namespace string

	mu     sync.Mutex
	chains *chains
	found  map[pathStart][]v1alpha1.UpgradePath
}

// pathStart is a template of a chain.
type pathStart struct{ chain, template string }

// ReadPaths reads the templates and the chains of a namespace. They must not be changed afterwards.
func ReadPaths(ctx context.Context, c client.Reader, namespace string) (*Paths, error) {
	known, objects, err := readTemplates(ctx, c, namespace)
	if err != nil {
		return nil, err
	}
	return &Paths{namespace: namespace, chains: newChains(objects, known), found: map[pathStart][]v1alpha1.UpgradePath{}}, nil
}

// Of returns what [ServicesUpgradePaths] does. The paths are shared and must not be changed.
func (p *Paths) Of(services []v1alpha1.Service) ([]v1alpha1.ServiceUpgradePaths, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	result := make([]v1alpha1.ServiceUpgradePaths, 0, len(services))
	missing := &MissingError{Namespace: p.namespace}
	for i := range services {
		s := &services[i]
		paths := v1alpha1.ServiceUpgradePaths{Name: s.Name, Namespace: s.Key().Namespace, Template: s.Template}
		if s.TemplateChain != "" {
			from := pathStart{s.TemplateChain, s.Template}
			ready, ok := p.found[from]
			if !ok {
				var why string
				if ready, why = p.chains.paths(s); why != "" {
					missing.Missing = append(missing.Missing, MissingObject{
						Kind: v1alpha1.ServiceTemplateChainKind, Name: s.TemplateChain, Service: s.Key(), Reason: why,
					})
					continue
				}
				p.found[from] = ready
			}
			paths.AvailableUpgrades = ready
		}
		result = append(result, paths)
	}
	if len(missing.Missing) > 0 {
		return result, missing
	}
	return result, nil
}

// paths returns the paths from the template of a service, or what is wrong with its chain.
func (c *chains) paths(s *v1alpha1.Service) (paths []v1alpha1.UpgradePath, why string) {
	if c.objects[s.TemplateChain] == nil {
		return nil, "does not exist: create it"
	}
	chain, broken := c.get(s.TemplateChain)
	if broken != nil {
		return nil, broken.message
	}
	from, ok := chain.index[s.Template]
	if !ok {
		return nil, fmt.Sprintf("does not have template %s: add it there", s.Template)
	}
	return chain.paths(from), ""
}

// paths returns the paths from a template. Shorter paths come first, then they are ordered by the names on them.
func (c *chain) paths(from int32) []v1alpha1.UpgradePath {
	paths := []v1alpha1.UpgradePath{}
	for goal := range int32(len(c.nodes)) {
		r := c.routesTo(goal)
		if r.next[from] < 0 {
			continue
		}
		way := r.walk(from, goal)
		path := v1alpha1.UpgradePath{Versions: make([]v1alpha1.AvailableUpgrade, len(way))}
		for i, n := range way {
			path.Versions[i] = c.upgrade(n)
		}
		paths = append(paths, path)
	}
	slices.SortFunc(paths, func(a, b v1alpha1.UpgradePath) int {
		return cmp.Or(
			cmp.Compare(len(a.Versions), len(b.Versions)),
			slices.CompareFunc(a.Versions, b.Versions, func(x, y v1alpha1.AvailableUpgrade) int { return cmp.Compare(x.Name, y.Name) }),
		)
	})
	return paths
}

// walk returns the steps from a template to the goal.
func (r *routes) walk(from, goal int32) []int32 {
	var way []int32
	for at := from; at != goal; {
		at = r.next[at]
		way = append(way, at)
	}
	return way
}
