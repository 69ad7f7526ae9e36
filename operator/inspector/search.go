package inspector

import (
	"bytes"
	"cmp"
	"context"
	"runtime"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/operatorkit/operatorkit/framework"
)

const (
	// maxFailing is how many failing objects an overview names.
	maxFailing = 100
	// maxSearches is how many searches go on at once. Others wait for these: each takes memory and time for every object.
	maxSearches = 2
	// lookedAtOnce is after how many objects a search lets others have the processor: workers who come back from an API server have work for a
	// moment, and would wait for what a search may take in one go.
	lookedAtOnce = 32
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

// list returns the objects that are asked for, by name. The error is that of ctx.
func (i *Inspector) list(ctx context.Context, q query) (ObjectList, error) {
	select {
	case i.searches <- struct{}{}:
		defer func() { <-i.searches }()
	case <-ctx.Done():
		return ObjectList{}, ctx.Err()
	}
	defer i.memory.reading()()
	var all []found
	for _, s := range i.frameworks() {
		name, kind := s.framework.Name(), s.kindOf()
		if (q.framework == "" || q.framework == name) && ofKind(q.kind, name, kind) {
			all = i.search(s, q, all)
		}
	}
	slices.SortFunc(all, func(a, b found) int {
		return cmp.Or(strings.Compare(a.id.framework, b.id.framework), strings.Compare(a.id.key.Namespace, b.id.key.Namespace),
			strings.Compare(a.id.key.Name, b.id.key.Name))
	})
	list := ObjectList{Total: len(all), Objects: []ObjectSummary{}}
	for _, f := range all[min(q.offset, len(all)):min(q.offset+q.limit, len(all))] {
		list.Objects = append(list.Objects, i.summary(f))
	}
	return list, nil
}

// search appends the objects of a framework that are asked for: those that exist and those that are remembered. It holds
// nothing that workers need for longer than it takes to look at one object.
func (i *Inspector) search(s *statistics, q query, to []found) []found {
	name, kind := s.framework.Name(), s.kindOf()
	var text []byte
	looked := 0
	consider := func(f found) {
		if looked++; looked%lookedAtOnce == 0 {
			runtime.Gosched()
		}
		if q.state != "" && q.state != f.state {
			return
		}
		if len(q.words) > 0 {
			text = f.appendText(text[:0], kind)
			if slices.ContainsFunc(q.words, func(word []byte) bool { return !bytes.Contains(text, word) }) {
				return
			}
		}
		to = append(to, f)
	}
	exists := map[*history]bool{}
	for _, key := range s.framework.Keys() {
		id := objectID{name, key}
		if !q.matchesID(id) {
			continue
		}
		h := i.memory.history(id)
		if h != nil {
			exists[h] = true
		}
		consider(i.look(s, id, h, true))
	}
	for _, h := range i.memory.histories() {
		if h.id.framework == name && q.matchesID(h.id) && !exists[h] {
			consider(i.look(s, h.id, h, false))
		}
	}
	return to
}

// look tells how an object is doing, of which h is what is remembered, nil for nothing. Exists tells whether it is in its source.
func (i *Inspector) look(s *statistics, id objectID, h *history, exists bool) found {
	if h == nil {
		if _, fails := s.framework.FailingSince(id.key); fails {
			return found{id: id, state: Failing}
		}
		return found{id: id, state: Unseen}
	}
	f := found{id: id, last: h.last.Load()}
	f.state = stateOf(f.last.record.Outcome)
	if !exists && f.state != Failing && f.state != Waiting {
		f.state = Gone
	}
	return f
}

// appendText appends what a list shows of an object, in small letters, in which each word of a search must be somewhere.
func (f found) appendText(b []byte, kind string) []byte {
	b = appendSmall(b, f.id.framework, " ", kind, " ", f.id.key.Namespace, "/", f.id.key.Name, " ")
	if f.last != nil {
		b = appendSmall(b, f.last.reason(), " ", f.last.record.Error)
	}
	return b
}

func appendSmall(b []byte, texts ...string) []byte {
	for _, text := range texts {
		start, plain := len(b), true
		b = append(b, text...)
		for i, c := range b[start:] {
			if 'A' <= c && c <= 'Z' {
				b[start+i] = c + ('a' - 'A')
			}
			plain = plain && c < utf8.RuneSelf
		}
		if !plain {
			b = append(b[:start], strings.ToLower(text)...)
		}
	}
	return b
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
	} else if f.state == Failing {
		o.Reason = reasonForgotten
		o.FailingSince, _ = s.framework.FailingSince(f.id.key)
	}
	o.Kind = cmp.Or(o.Kind, s.kindOf())
	return o
}

// failing returns the objects that fail, those that failed last first, a hundred at most.
func (i *Inspector) failing() []ObjectSummary {
	defer i.memory.reading()()
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
	for h := m.failing.back; h != nil && len(all) < limit; h = h.prev {
		all = append(all, found{h.id, Failing, h.last.Load()})
	}
	return all
}

// find returns what is known of an object, and false if there is nothing to know.
func (i *Inspector) find(ctx context.Context, id objectID) (Object, bool) {
	s := i.framework(id.framework)
	if s == nil {
		return Object{}, false
	}
	_, exists, _ := s.framework.Sources()[0].Get(id.key)
	defer i.memory.reading()()
	h := i.memory.history(id)
	o := Object{
		ObjectSummary:   i.summary(i.look(s, id, h, exists)),
		Identity:        Identity{s.framework.Identity().Operator, s.framework.Name(), s.framework.Finalizer()},
		Reconciliations: []Reconciliation{},
		Shadows:         s.framework.ShadowsOf(id.key),
	}
	if r := i.sharedBy(); r != nil {
		o.Owner = r.Owner(id.key)
		o.Unreached, _ = ctx.Value(unreachedKey{}).(string)
	}
	if h == nil {
		return o, exists
	}
	entries := i.memory.entries(h)
	o.Object = *entries[len(entries)-1].object
	for _, e := range slices.Backward(entries) {
		i.memory.describe(h, e)
		o.Reconciliations = append(o.Reconciliations, Reconciliation{Record: e.record, Repeats: e.repeats, RepeatedSince: e.first})
	}
	return o, true
}
