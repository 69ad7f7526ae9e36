package natsresource

import (
	"math"
	"sync"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/operatorkit/operatorkit/informer"
)

// writes remembers what was written and has not come back through the source yet, so that nothing is computed from a state
// older than the resource's own writes. It holds an entry for such a key, and is safe for concurrent use. It spares work
// and conflicts; that no write is lost or done twice is the revisions' doing.
type writes struct {
	mu     sync.Mutex
	byKey  map[string]*write
	owners map[owner]sets.Set[string]
}

// write is the newest that is known of a key from writing it.
type write struct {
	owner owner
	// open is set while the key is being written.
	open bool
	// revision is what the source has to have reached: that of what was written or, with purged, of what was purged. It is
	// 0 while the first write is under way.
	revision uint64
	purged   bool
	// came is what came through the source while the key was being written: before the acknowledgement, perhaps.
	came sight
}

// sight is a key as the source shows it.
type sight struct {
	exists   bool
	revision uint64
}

func newWrites() *writes {
	return &writes{byKey: map[string]*write{}, owners: map[owner]sets.Set[string]{}}
}

// begin must be called before a key is written, and end afterwards.
func (w *writes) begin(key string, o owner) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := w.byKey[key]
	if p != nil && p.owner != o {
		w.drop(key, p)
		p = nil
	}
	if p == nil {
		p = &write{owner: o}
		w.byKey[key] = p
		if w.owners[o] == nil {
			w.owners[o] = sets.New[string]()
		}
		w.owners[o].Insert(key)
	}
	p.open, p.came = true, sight{}
}

// end notes what became of a write: the revision that the source has to reach, or 0 if it is not known.
func (w *writes) end(key string, revision uint64, purged bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := w.byKey[key]
	if p == nil {
		return
	}
	p.open = false
	if revision > p.revision || purged {
		p.revision, p.purged = revision, purged
	}
	if p.revision == 0 || p.reachedBy(p.came) {
		w.drop(key, p)
	}
}

// seen is the handler of the source's events.
func (w *writes) seen(e informer.Event) {
	s := sight{exists: e.Type != informer.Deleted, revision: revisionOf(e.Object)}
	if !s.exists && s.revision == 0 {
		s.revision = math.MaxUint64 // A deletion without a revision is taken for the newest: there may be no other event.
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	p := w.byKey[e.Key.Name]
	switch {
	case p == nil:
	case p.open:
		p.came = s
	case p.reachedBy(s):
		w.drop(e.Key.Name, p)
	}
}

// standing is what a state of the source is worth.
type standing uint8

const (
	// current: nothing newer is known.
	current standing = iota
	// behind: something newer was written.
	behind
	// purged: it was purged since.
	purged
)

// compare tells what the source's state of a key is worth.
func (w *writes) compare(key string, s sight) standing {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := w.byKey[key]
	switch {
	case p == nil || p.revision == 0 || p.reachedBy(s):
		return current
	case p.purged:
		return purged
	}
	return behind
}

// forget drops a key of which neither the source nor the bucket knows anything.
func (w *writes) forget(key string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if p := w.byKey[key]; p != nil && !p.open {
		w.drop(key, p)
	}
}

// of returns the keys that were written for an owner.
func (w *writes) of(o owner) sets.Set[string] {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.owners[o].Clone()
}

func (w *writes) drop(key string, p *write) {
	delete(w.byKey, key)
	if w.owners[p.owner].Delete(key).Len() == 0 {
		delete(w.owners, p.owner)
	}
}

// reachedBy tells whether the source shows what was written, or something newer. That a key is gone says nothing by
// itself: it may not have been there yet. With the revision of what was last there it does.
func (p *write) reachedBy(s sight) bool {
	if p.purged && s.exists {
		return s.revision > p.revision
	}
	return s.revision >= p.revision
}

// revisionOf returns the revision of what a source holds, and 0 for what has none.
func revisionOf(obj any) uint64 {
	if e, ok := obj.(interface{ Revision() uint64 }); ok {
		return e.Revision()
	}
	return 0
}
