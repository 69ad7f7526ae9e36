package objectresource

import (
	"sync"

	"github.com/operatorkit/operatorkit/resource/internal/serverside"
)

// settled remembers for which objects the API server said that applying them would change nothing, although
// they look different from here (1000m and 1, a container that a webhook added). It holds one entry for such an object,
// and is safe for concurrent use.
type settled struct {
	mu      sync.Mutex
	entries map[Key]serverside.Pair
}

func newSettled() *settled { return &settled{entries: map[Key]serverside.Pair{}} }

// is tells whether the pair of a current and a desired object is settled.
func (s *settled) is(key Key, pair serverside.Pair) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	known, ok := s.entries[key.unversioned()]
	return ok && known == pair
}

func (s *settled) remember(key Key, pair serverside.Pair) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.entries[key.unversioned()] = pair
}

func (s *settled) forget(key Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.entries, key.unversioned())
}
