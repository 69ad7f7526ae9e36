package objectresource

import (
	"crypto/sha256"
	"sync"
)

// settled remembers for which objects the API server said that applying them would change nothing, although
// they look different from here (1000m and 1, a container that a webhook added). It holds one entry for such an object,
// and is safe for concurrent use.
type settled struct {
	mu      sync.Mutex
	entries map[Key][sha256.Size]byte
}

func newSettled() *settled { return &settled{entries: map[Key][sha256.Size]byte{}} }

// is tells whether the pair of a current and a desired object with this fingerprint is settled.
func (s *settled) is(key Key, fingerprint [sha256.Size]byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	known, ok := s.entries[key]
	return ok && known == fingerprint
}

func (s *settled) remember(key Key, fingerprint [sha256.Size]byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.entries[key] = fingerprint
}

func (s *settled) forget(key Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.entries, key)
}
