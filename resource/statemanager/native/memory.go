package native

import (
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
	"github.com/operatorkit/operatorkit/resource/statemanager/target"
)

// memory is what is kept of a set beside what is on the clusters. To lose it costs another try, or some more requests.
type memory struct {
	objects *objects
	// cluster is where the services of the set go. It can't change.
	cluster target.Key

	mu sync.Mutex
	// since is since when the cluster has been as it is.
	since time.Time
	// listed tells that all that the cluster has of the set is known.
	listed   bool
	services map[client.ObjectKey]*serviceMemory
}

// serviceMemory is what is kept of one service.
type serviceMemory struct {
	failure   *failure
	freshness freshness
	// kinds are those of its objects.
	kinds []schema.GroupVersionKind
}

// failure is why CarryOut failed last.
type failure struct {
	carrier.Failure
	err error
	// fingerprint and generation are those of the service and of the set that it failed with.
	fingerprint string
	generation  int64
}

func newMemory(config *Config, cluster target.Key) *memory {
	return &memory{cluster: cluster, objects: &objects{config: config}, services: map[client.ObjectKey]*serviceMemory{}}
}

// connected notes since when the cluster has been as it is. After a change of its state, it may be another cluster: what was known
// of it is forgotten.
func (m *memory) connected(since time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.since.Equal(since) {
		return
	}
	m.since, m.listed = since, false
	for _, s := range m.services {
		s.failure, s.freshness = nil, freshness{}
	}
}

// service returns what is kept of a service, which only the one who computes or carries out may use.
func (m *memory) service(key client.ObjectKey) *serviceMemory {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.services[key]
	if s == nil {
		s = &serviceMemory{}
		m.services[key] = s
	}
	return s
}

// forget forgets all services but those that are kept.
func (m *memory) forget(keep func(client.ObjectKey) bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	maps.DeleteFunc(m.services, func(key client.ObjectKey, _ *serviceMemory) bool { return !keep(key) })
}

// kinds returns what is worth watching, each once.
func (m *memory) kinds() []target.Kind {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := map[schema.GroupVersionKind]bool{}
	for _, s := range m.services {
		for _, kind := range s.kinds {
			all[kind] = true
		}
	}
	kinds := make([]target.Kind, 0, len(all))
	for kind := range all {
		kinds = append(kinds, watchOf(kind))
	}
	slices.SortFunc(kinds, func(a, b target.Kind) int { return compareKinds(a.GroupVersionKind, b.GroupVersionKind) })
	return kinds
}

func compareKinds(a, b schema.GroupVersionKind) int {
	switch as, bs := a.String(), b.String(); {
	case as < bs:
		return -1
	case as > bs:
		return 1
	}
	return 0
}

// failed returns the last failure with a fingerprint.
func (s *serviceMemory) failed(fingerprint string) *failure {
	if s.failure == nil || s.failure.fingerprint != fingerprint {
		return nil
	}
	return s.failure
}

// isListed tells whether all that the cluster has of the set is known.
func (m *memory) isListed() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.listed
}

func (m *memory) nowListed() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.listed = true
}
