package native

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
	"github.com/operatorkit/operatorkit/resource/statemanager/target"
)

// memory is what is kept of a set beside what is on the clusters. To lose it costs another try, or some more requests.
type memory struct {
	objects *objects
	// cluster is where the services of the set go. It can't change.
	cluster target.Key

	mu sync.Mutex
	// since is since when the cluster has been as it is, and away tells that it was another way before, in this process.
	since time.Time
	away  bool
	// listed tells that the status has all that the cluster has of the set.
	listed   bool
	services map[client.ObjectKey]*serviceMemory
	// carriedOut counts what was carried out of the set. After each the set is looked at again at once, with its backoff reset.
	carriedOut int
}

// serviceMemory is what is kept of one service.
type serviceMemory struct {
	failure   *failure
	freshness freshness
	// kinds are those of its objects.
	kinds []schema.GroupVersionKind
	// waits is what the service waits for while the cluster lacks kinds.
	waits *missing
	// deployed is the fingerprint with which it was Deployed last, and owner the UID of the set while that had it.
	deployed string
	owner    types.UID
}

// failure is why CarryOut failed last.
type failure struct {
	carrier.Failure
	err error
	// fingerprint and generation are those of the service and of the set that it failed with.
	fingerprint string
	generation  int64
	// trial is what the attempts were made for, which Count counts. failures counts all of them, and since is what memory.carriedOut was at the
	// first.
	trial           trial
	failures, since int
	// begun reports that something of the service was carried out since: what is left of that need not wait.
	begun bool
	// givenUpWith is what was said when another process gave up.
	givenUpWith string
}

// trial is what makes attempts count from one again, beside another fingerprint: a change of the entry, and that another try was asked for.
type trial struct {
	entry int64
	asked string
}

// trialOf returns what attempts are made for now. Those of a removal are not told apart.
func trialOf(set *statemanager.Set, entry *v1alpha1.ServiceWithValues) trial {
	if entry == nil {
		return trial{}
	}
	return trial{entry: entry.Generation, asked: statemanager.RetryAsked(set)}
}

// givenUp returns the error of a service that was tried as often as it may be; nil for others.
func (f *failure) givenUp(set *statemanager.Set, entry *v1alpha1.ServiceWithValues) error {
	if entry.MaxAttempts == 0 || f.Count < int(entry.MaxAttempts) || f.trial != trialOf(set, entry) {
		return nil
	}
	if f.givenUpWith != "" {
		return framework.Permanent(errors.New(f.givenUpWith))
	}
	return framework.Permanent(fmt.Errorf("given up after %d attempts, until the service or the annotation %s changes: %w", f.Count, statemanager.RetryAnnotation, f.err))
}

// Pauses of a service that fails again and again while the set that it is in progresses.
const (
	firstPause   = time.Second
	longestPause = 5 * time.Minute
)

// paused returns how long it takes until a service is tried again that has failed; zero is now. While nothing of its set is carried out, the
// backoff of the set is what it waits for. What is carried out resets that, be it another service, or the begin of a hook that fails
// then: the service has pauses of its own from then on.
func (m *memory) paused(f *failure, now time.Time) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.carriedOut == f.since {
		return 0
	}
	pause := longestPause
	if doubled := f.failures - 1; doubled < 10 {
		pause = min(pause, firstPause<<doubled)
	}
	return max(0, f.Time.Add(pause).Sub(now))
}

// progress counts what was carried out of the set, one more or none, and returns how much it is.
func (m *memory) progress(more int) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.carriedOut += more
	return m.carriedOut
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
	m.away = !m.since.IsZero()
	m.since, m.listed = since, false
	for _, s := range m.services {
		s.failure, s.waits, s.freshness, s.deployed, s.owner = nil, nil, freshness{}, "", ""
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
			// What a release says of its kinds may be anything, and a watch that can't be would be an error of the whole set.
			if kind.Kind != "" && kind.Version != "" {
				all[kind] = true
			}
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

// wasAway tells whether the cluster was another way before, in this process.
func (m *memory) wasAway() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.away
}

// isListed tells whether the status has all that the cluster has of the set.
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
