package inspector

import (
	"context"
	"errors"
	"sync"
)

// errSearchFailed is for those who waited for a search of others that ended with a panic.
var errSearchFailed = errors.New("the search failed")

// maxTogether is how many searches go through the objects together at most.
const maxTogether = 32

// turns lets one go through all objects at a time: each takes time for every object, and several that share the processors take longer each,
// and leave none to workers. Those who wait meanwhile are searched for together, and those who wait for the same list share one search, which
// begins after the last of them has asked: live pages ask again at the same moment. It is safe for concurrent use.
type turns struct {
	// busy is full while searches go on.
	busy chan struct{}

	mu      sync.Mutex
	waiting map[wanted]*turn
}

// turn is a search that somebody waits for.
type turn struct {
	query query
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

// take returns what search finds for a query, which one of those calls who wait, with the queries of all of them: it answers each in its place.
// The list is that of all who ask for the same, and is not changed. The error is that of ctx, or errSearchFailed.
func (t *turns) take(ctx context.Context, q query, search func(all []query) []ObjectList) (ObjectList, error) {
	one := t.ask(q)
	for {
		select {
		case t.busy <- struct{}{}:
			t.run(one, search)
		case <-one.done:
			return one.list, one.err
		case <-ctx.Done():
			t.leave(one)
			return ObjectList{}, ctx.Err()
		}
	}
}

// ask returns the search for which the caller waits with those who ask for the same.
func (t *turns) ask(q query) *turn {
	t.mu.Lock()
	defer t.mu.Unlock()
	one := t.waiting[q.wanted]
	if one == nil {
		one = &turn{query: q, done: make(chan struct{})}
		t.waiting[q.wanted] = one
	}
	one.asking++
	return one
}

// leave is called by who waits no longer for a search.
func (t *turns) leave(one *turn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if one.asking--; one.asking == 0 && t.waiting[one.query.wanted] == one {
		delete(t.waiting, one.query.wanted)
	}
}

// begin returns a search and others that wait. Who asks from now on waits for others.
func (t *turns) begin(one *turn) []*turn {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.waiting, one.query.wanted)
	together := []*turn{one}
	for w, other := range t.waiting {
		if len(together) == maxTogether {
			break
		}
		delete(t.waiting, w)
		together = append(together, other)
	}
	return together
}

// run does a search, unless it is done, together with others, and tells those who wait for them. The caller has the turn, and has it no more.
func (t *turns) run(one *turn, search func(all []query) []ObjectList) {
	defer func() { <-t.busy }()
	if one.isDone() {
		return
	}
	together := t.begin(one)
	queries := make([]query, len(together))
	for n, one := range together {
		queries[n], one.err = one.query, errSearchFailed
		defer close(one.done)
	}
	for n, list := range search(queries) {
		together[n].list, together[n].err = list, nil
	}
}

func (one *turn) isDone() bool {
	select {
	case <-one.done:
		return true
	default:
		return false
	}
}
