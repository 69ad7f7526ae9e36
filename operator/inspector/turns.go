package inspector

import (
	"context"
	"errors"
	"sync"
)

// errSearchFailed is for those who waited for a search of others that ended with a panic.
var errSearchFailed = errors.New("the search failed")

// turns lets one search go on at a time: each takes time for every object, and several that share the processors take longer each, and leave
// none to workers. Those who wait for the same list share one search, which begins after the last of them has asked: live pages ask again
// at the same moment. It is safe for concurrent use.
type turns struct {
	// busy is full while a search goes on.
	busy chan struct{}

	mu      sync.Mutex
	waiting map[wanted]*turn
}

// turn is a search that somebody waits for.
type turn struct {
	// asking is how many wait for it to begin. It is guarded by the lock of turns.
	asking int
	// done is closed when list and err are there.
	done chan struct{}
	list ObjectList
	err  error
}

func newTurns() *turns {
	return &turns{busy: make(chan struct{}, 1), waiting: map[wanted]*turn{}}
}

// take returns what search finds, which one of those calls who wait for the same. The list is that of all of them, and is not changed. The
// error is that of ctx, or errSearchFailed.
func (t *turns) take(ctx context.Context, w wanted, search func() ObjectList) (ObjectList, error) {
	one := t.ask(w)
	select {
	case t.busy <- struct{}{}:
		if t.begin(w, one) {
			defer t.end()
			one.run(search)
			return one.list, nil
		}
		t.end()
	case <-one.done:
	case <-ctx.Done():
		t.leave(w, one)
		return ObjectList{}, ctx.Err()
	}
	select {
	case <-one.done:
		return one.list, one.err
	case <-ctx.Done():
		return ObjectList{}, ctx.Err()
	}
}

// ask returns the search for which the caller waits with those who ask for the same.
func (t *turns) ask(w wanted) *turn {
	t.mu.Lock()
	defer t.mu.Unlock()
	one := t.waiting[w]
	if one == nil {
		one = &turn{done: make(chan struct{})}
		t.waiting[w] = one
	}
	one.asking++
	return one
}

// leave is called by who waits no longer for a search.
func (t *turns) leave(w wanted, one *turn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if one.asking--; one.asking == 0 && t.waiting[w] == one {
		delete(t.waiting, w)
	}
}

// begin tells whether the search is the caller's to do. Who asks from now on waits for another one.
func (t *turns) begin(w wanted, one *turn) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.waiting[w] != one {
		return false
	}
	delete(t.waiting, w)
	return true
}

// end has the next search begin.
func (t *turns) end() { <-t.busy }

func (one *turn) run(search func() ObjectList) {
	one.err = errSearchFailed
	defer close(one.done)
	one.list = search()
	one.err = nil
}
