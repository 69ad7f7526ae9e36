package inspector

import (
	"cmp"
	"context"
	"runtime"
	"slices"
	"strings"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer"
	engines "github.com/operatorkit/operatorkit/internal/access"
	"github.com/operatorkit/operatorkit/internal/panics"
)

const (
	// maxFailing is how many failing objects an overview names, and how many fights.
	maxFailing = 100
	// maxTogether is how many searches go through the objects together at most.
	maxTogether = 32
	// lookedAtOnce is after how many looks at objects a search lets others have the processor:
	// workers that come back from an API server have work for a moment.
	lookedAtOnce = 200
)

// reasonForgotten is why nothing more is told of an object that fails.
const reasonForgotten = "its reconciliations are forgotten: more objects fail than the inspector has memory for"

// found is an object that was found. It is small: there may be many.
type found struct {
	id    objectID
	state State
	// last is the last reconciliation, nil if it is not known.
	last *entry
}

// byName orders objects as lists do.
func byName(a, b found) int {
	return cmp.Or(strings.Compare(a.id.framework, b.id.framework), strings.Compare(a.id.key.Namespace, b.id.key.Namespace),
		strings.Compare(a.id.key.Name, b.id.key.Name))
}

// batch has the queries that are answered by one pass over all objects. One pass goes on at a time,
// because it takes time for every object. Queries that arrive meanwhile share the next one: live
// pages ask again at the same moment.
type batch struct {
	queries map[wanted]query
	// done is closed when lists or err are there.
	done  chan struct{}
	lists map[wanted]ObjectList
	err   error
}

// list returns the objects that are asked for, by name, as they are after the call began. It may be
// the list of others who ask for the same, and must not be changed. The error is that of ctx, or of
// a search that panicked.
//
// Everybody who may look at the page may look at all of it: lists differ by what is asked for only.
func (i *Inspector) list(ctx context.Context, q query) (ObjectList, error) {
	b := i.join(q)
	select {
	case <-b.done:
		return b.lists[q.wanted], b.err
	case <-ctx.Done():
		return ObjectList{}, ctx.Err()
	}
}

// join adds a query to a batch that has not begun.
func (i *Inspector) join(q query) *batch {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.next == nil || len(i.next.queries) == maxTogether {
		i.next = &batch{queries: map[wanted]query{}, done: make(chan struct{})}
		go i.answerBatch(i.next)
	}
	i.next.queries[q.wanted] = q
	return i.next
}

// answerBatch waits until no other batch is searched for, and answers one.
func (i *Inspector) answerBatch(b *batch) {
	i.searching <- struct{}{}
	defer func() { <-i.searching }()
	i.mu.Lock()
	if i.next == b {
		i.next = nil
	}
	i.mu.Unlock()
	defer close(b.done)
	b.err = panics.Recovered(func() error {
		b.lists = i.search(b.queries)
		return nil
	})
}

// search goes through all objects for several queries.
func (i *Inspector) search(queries map[wanted]query) map[wanted]ObjectList {
	searches := make([]*search, 0, len(queries))
	for _, q := range queries {
		searches = append(searches, &search{query: q, words: strings.Fields(q.words)})
	}
	for _, s := range i.frameworks() {
		i.searchIn(s, searches)
	}
	lists := make(map[wanted]ObjectList, len(queries))
	for _, s := range searches {
		slices.SortFunc(s.found, byName)
		list := ObjectList{Total: len(s.found), Objects: []ObjectSummary{}}
		for _, f := range s.found[min(s.offset, list.Total):min(s.offset+s.limit, list.Total)] {
			list.Objects = append(list.Objects, i.summary(f))
		}
		lists[s.wanted] = list
	}
	return lists
}

// search looks for what is asked for.
type search struct {
	query
	words []string
	found []found
}

// searchIn looks at the objects of a framework: those that exist and those that are remembered. It
// holds no lock that workers need for longer than it takes to look at one object.
func (i *Inspector) searchIn(s *statistics, all []*search) {
	name, kind := s.framework.Name(), s.kindOf()
	searches := slices.DeleteFunc(slices.Clone(all), func(q *search) bool {
		return q.framework != "" && q.framework != name || !ofKind(q.kind, name, kind)
	})
	if len(searches) == 0 {
		return
	}
	looked := 0
	consider := func(f found) {
		text := ""
		for _, q := range searches {
			if !q.matchesID(f.id) || q.state != "" && q.state != f.state {
				continue
			}
			if text == "" && len(q.words) > 0 {
				text = f.text(kind)
			}
			if !slices.ContainsFunc(q.words, func(word string) bool { return !strings.Contains(text, word) }) {
				q.found = append(q.found, f)
			}
		}
		if looked += len(searches); looked >= lookedAtOnce {
			looked = 0
			runtime.Gosched()
		}
	}
	exist := map[informer.Key]bool{}
	for _, key := range s.framework.Keys() {
		exist[key] = true
	}
	for _, h := range i.memory.histories() {
		if h.id.framework == name {
			consider(i.look(s, h.id, h, exist[h.id.key]))
			delete(exist, h.id.key)
		}
	}
	for key := range exist {
		consider(i.look(s, objectID{name, key}, nil, true))
	}
}

// text has all that words are searched for in, in small letters.
func (f found) text(kind string) string {
	texts := []string{f.id.framework, kind, f.id.key.Namespace + "/" + f.id.key.Name}
	if f.last != nil {
		texts = append(texts, f.last.record.Error, f.last.reason())
	}
	return strings.ToLower(strings.Join(texts, "\n"))
}

// look tells how an object is doing, of which h is what is remembered, nil for nothing. Exists tells whether it is in its source.
func (i *Inspector) look(s *statistics, id objectID, h *history, exists bool) found {
	if h == nil {
		if _, fails := engines.EngineOf(s.framework).FailingSince(id.key); fails {
			return found{id: id, state: failing}
		}
		return found{id: id, state: unseen}
	}
	f := found{id: id, last: h.last.Load()}
	f.state = stateOf(f.last.record.Outcome)
	if !exists && f.state != failing && f.state != waiting {
		f.state = gone
	}
	return f
}

// reason says in words why an object is left alone or waits.
func (e *entry) reason() string {
	switch e.record.Outcome {
	case framework.Waiting, framework.Canceled:
		return strings.Join(e.record.Signals, ", ")
	}
	return e.record.Reason
}

// summary says what is known of an object in short.
func (i *Inspector) summary(f found) ObjectSummary {
	o := ObjectSummary{Framework: f.id.framework, Namespace: f.id.key.Namespace, Name: f.id.key.Name, State: f.state}
	s := i.framework(f.id.framework)
	if e := f.last; e != nil {
		r := e.record
		o.Kind, o.Reason, o.Error, o.Last, o.NextTry = e.object.Kind, e.reason(), r.Error, r.Started, r.NextTry
		o.FailingSince, o.Failures = e.failure.since, e.failure.count
	} else if f.state == failing {
		o.Reason = reasonForgotten
		o.FailingSince, _ = engines.EngineOf(s.framework).FailingSince(f.id.key)
	}
	o.Kind = cmp.Or(o.Kind, s.kindOf())
	return o
}

// failing returns the objects that fail, those that failed last first, a hundred at most.
func (i *Inspector) failing() []ObjectSummary {
	all := make([]ObjectSummary, 0, maxFailing)
	for _, f := range i.memory.lastFailing(maxFailing) {
		all = append(all, i.summary(f))
	}
	return all
}

// lastFailing returns those objects among the remembered ones that failed last.
func (m *memory) lastFailing(limit int) []found {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []found
	for at := m.failing.Back(); at != nil && len(all) < limit; at = at.Prev() {
		h := at.Value.(*history)
		all = append(all, found{h.id, failing, h.last.Load()})
	}
	return all
}

// find returns what is known of an object, or an error if there is nothing to know.
func (i *Inspector) find(ctx context.Context, id objectID) (Object, error) {
	s := i.framework(id.framework)
	if s == nil {
		return Object{}, errNoObject(id)
	}
	_, exists, _ := s.framework.Sources()[0].Get(id.key)
	h := i.memory.history(id)
	if h == nil && !exists {
		return Object{}, errNoObject(id)
	}
	o := Object{
		ObjectSummary:   i.summary(i.look(s, id, h, exists)),
		Reconciliations: []Reconciliation{},
		Shadows:         s.framework.ShadowsOf(id.key),
	}
	o.Identity.Operator, o.Identity.Framework = s.framework.Identity().Operator, s.framework.Name()
	o.Identity.Finalizer = s.framework.Finalizer()
	for _, fight := range s.framework.Fights() {
		if fight.Key == id.key {
			o.Fights = append(o.Fights, fight)
		}
	}
	if r := i.sharedBy(); r != nil {
		o.Owner = r.Owner(id.key)
		o.Unreached, _ = ctx.Value(unreachedKey{}).(string)
	}
	if h == nil {
		return o, nil
	}
	entries := i.memory.show(h)
	o.Object = entries[len(entries)-1].object
	for _, e := range slices.Backward(entries) {
		o.Reconciliations = append(o.Reconciliations, Reconciliation{
			Record: e.record, Repeats: e.repeats, RepeatedSince: e.first,
		})
	}
	return o, nil
}
