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
		return nil, fmt.Sprintf("does not have template %s: add it there (it lists %s)", s.Template, listed(chain.nodes))
	}
	return chain.paths(from), ""
}

// paths returns the paths from a template. Shorter paths come first, then they are ordered by the names on them.
func (c *chain) paths(from int32) []v1alpha1.UpgradePath {
	straight := c.straightPaths(from)
	paths := straight.paths
	for _, goal := range c.reachable(from) {
		if straight.known[goal] {
			continue
		}
		way := c.routesTo(goal).walk(from, goal)
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

// reachable returns the templates to which there are ways from another one.
func (c *chain) reachable(from int32) []int32 {
	seen := make([]bool, len(c.nodes))
	seen[from] = true
	found := []int32{from}
	for done := 0; done < len(found); done++ {
		for _, to := range c.out[found[done]] {
			if !seen[to] {
				seen[to] = true
				found = append(found, to)
			}
		}
	}
	return found[1:]
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

// straightPaths are the paths from a template that go up all along, and those that go down, where each template of the chain has a
// version of its own. They are those of [routes], found for all goals at once: a step goes to the nearest version from which the
// goal can be reached, and a search that takes the nearest version first comes to each template on just that way.
type straightPaths struct {
	chain *chain
	next  [][]int32 // where steps go, the nearest version first
	known []bool    // which templates are found, the first one included
	paths []v1alpha1.UpgradePath
}

func (c *chain) straightPaths(from int32) *straightPaths {
	s := &straightPaths{chain: c, known: make([]bool, len(c.nodes)), paths: []v1alpha1.UpgradePath{}}
	ordered := c.ordered()
	s.search(from, ordered)
	slices.Reverse(ordered)
	s.search(from, ordered)
	return s
}

// ordered returns the templates by version, or none unless each has a semantic version, and no two have the same.
func (c *chain) ordered() []int32 {
	nodes := make([]int32, len(c.nodes))
	for i := range nodes {
		if c.nodes[i].semver == nil {
			return nil
		}
		nodes[i] = int32(i)
	}
	slices.SortFunc(nodes, c.compare)
	for i := range nodes[1:] {
		if c.compare(nodes[i], nodes[i+1]) == 0 {
			return nil
		}
	}
	return nodes
}

// search finds the paths that go forward in the order.
func (s *straightPaths) search(from int32, ordered []int32) {
	s.next = make([][]int32, len(s.known))
	passed := make([]bool, len(s.known))
	for _, to := range ordered {
		passed[to] = true
		for _, before := range s.chain.in[to] {
			if passed[before] {
				s.next[before] = append(s.next[before], to)
			}
		}
	}
	s.visit(from, make([]v1alpha1.AvailableUpgrade, 0, len(ordered)))
}

// visit comes to a template with the steps that lead there, and goes on. A path shares them with the first one that goes on from it.
func (s *straightPaths) visit(at int32, way []v1alpha1.AvailableUpgrade) {
	s.known[at] = true
	if len(way) > 0 {
		s.paths = append(s.paths, v1alpha1.UpgradePath{Versions: slices.Clip(way)})
	}
	for _, to := range s.next[at] {
		if !s.known[to] {
			s.visit(to, append(way, s.chain.upgrade(to)))
			way = slices.Clip(way)
		}
	}
}
