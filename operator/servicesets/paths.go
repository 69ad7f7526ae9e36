package servicesets

import (
	"context"
	"errors"
	"sync"

	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/resource/serviceset"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// pathCache keeps the upgrade paths of each namespace until a chain or a template of it changes.
type pathCache struct {
	mu      sync.Mutex
	paths   map[string]*serviceset.Paths
	changes map[string]int
}

// newPathCache follows sources of chains and templates.
func newPathCache(sources ...informer.Source) *pathCache {
	c := &pathCache{paths: map[string]*serviceset.Paths{}, changes: map[string]int{}}
	for _, source := range sources {
		source.Subscribe(func(e informer.Event) { c.drop(e.Key.Namespace) })
	}
	return c
}

func (c *pathCache) drop(namespace string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.paths, namespace)
	c.changes[namespace]++
}

// get returns the paths of a namespace, and how often something has changed there.
func (c *pathCache) get(namespace string) (*serviceset.Paths, int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.paths[namespace], c.changes[namespace]
}

// put keeps paths, unless something has changed since they were read.
func (c *pathCache) put(namespace string, paths *serviceset.Paths, changes int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.changes[namespace] == changes {
		c.paths[namespace] = paths
	}
}

// pathsOf returns where services can go. What is wrong with a chain stands in the decisions.
func (s *sources) pathsOf(ctx context.Context, services []v1alpha1.Service, namespace string) ([]v1alpha1.ServiceUpgradePaths, error) {
	paths, changes := s.paths.get(namespace)
	if paths == nil {
		var err error
		if paths, err = serviceset.ReadPaths(ctx, s.reader, namespace); err != nil {
			return nil, err
		}
		s.paths.put(namespace, paths, changes)
	}
	found, err := paths.Of(services)
	var missing *serviceset.MissingError
	if err != nil && !errors.As(err, &missing) {
		return nil, err
	}
	return found, nil
}

// maxSteps is how many steps the paths in a status have together, because an object can't have more than about a million bytes.
const maxSteps = 4000

// boundedPaths leaves the longest paths of each service out where there is no room for all.
func boundedPaths(services []v1alpha1.ServiceUpgradePaths) []v1alpha1.ServiceUpgradePaths {
	for i := range services {
		left := maxSteps / len(services)
		for j, path := range services[i].AvailableUpgrades {
			if left -= len(path.Versions); left < 0 {
				services[i].AvailableUpgrades = services[i].AvailableUpgrades[:j]
				break
			}
		}
	}
	return services
}
