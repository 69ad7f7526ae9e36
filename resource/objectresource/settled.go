package objectresource

import (
	"k8s.io/utils/lru"

	"github.com/operatorkit/operatorkit/resource/internal/serverside"
)

// maxSettled is how many objects are remembered. The one that was not used for the longest time is forgotten first, which costs a
// dry run.
const maxSettled = 1 << 16

// settled remembers for which objects the API server said that applying them would change nothing, although they
// look different from here (1000m and 1, a container that a webhook added). It holds one entry for such an object, up to maxSettled,
// and is safe for concurrent use.
type settled struct {
	pairs *lru.Cache
	// notKept are the fields of an object of which it was told that they do not keep what is applied.
	notKept *lru.Cache
}

func newSettled() settled { return settled{lru.New(maxSettled), lru.New(maxSettled)} }

// is tells whether the pair of a current and a desired object is settled.
func (s settled) is(key Key, pair serverside.Pair) bool {
	known, ok := s.pairs.Get(key)
	return ok && known == pair
}

func (s settled) remember(key Key, pair serverside.Pair) { s.pairs.Add(key, pair) }

func (s settled) forget(key Key) {
	s.pairs.Remove(key)
	s.notKept.Remove(key)
}

// told reports whether the last that was told of an object is that these fields do not keep what is applied.
func (s settled) told(key Key, fields string) bool {
	last, ok := s.notKept.Get(key)
	return ok && last == fields
}

func (s settled) tell(key Key, fields string) { s.notKept.Add(key, fields) }
