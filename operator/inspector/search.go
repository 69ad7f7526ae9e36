package inspector

import (
	"cmp"
	"context"
	"runtime"
	"slices"
	"strings"

	"github.com/operatorkit/operatorkit/framework"
)

const (
	// maxFailing is how many failing objects an overview names.
	maxFailing = 100
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

// byName orders objects as lists do.
func byName(a, b found) int {
	return cmp.Or(strings.Compare(a.id.framework, b.id.framework), strings.Compare(a.id.key.Namespace, b.id.key.Namespace),
		strings.Compare(a.id.key.Name, b.id.key.Name))
}

// list returns the objects that are asked for, by name. It may be the list of others who ask for the same, and is not changed. The error is
// that of ctx, or tells that a search of others failed.
//
// Everybody who may look at the page may look at all of it: lists differ by what is asked for only.
func (i *Inspector) list(ctx context.Context, q query) (ObjectList, error) {
	return i.searches.take(ctx, q.wanted, func() ObjectList {
		defer i.memory.reading()()
		s := &search{query: q, run: i.searched.Add(1)}
		for text := range strings.FieldsSeq(q.words) {
			s.words = append(s.words, newWord(text))
		}
		for _, of := range i.frameworks() {
			name, kind := of.framework.Name(), of.kindOf()
			if (q.framework == "" || q.framework == name) && ofKind(q.kind, name, kind) {
				s.in(i, of)
			}
		}
		first := s.first()
		list := ObjectList{Total: s.total, Objects: []ObjectSummary{}}
		for _, f := range first[min(q.offset, len(first)):] {
			list.Objects = append(list.Objects, i.summary(f))
		}
		return list
	})
}

// search looks for what is asked for.
type search struct {
	query
	words []word
	// run numbers the searches.
	run    uint64
	looked int
	// total is how many objects there are that are asked for, and best the first of them and some more, in no order. Those that come after
	// last, if there is one, are not among the first.
	total int
	best  []found
	last  *found
}

// in looks at the objects of a framework: those that exist and those that are remembered. It holds nothing that workers need for longer
// than it takes to look at one object. What is remembered is looked at in a row, which a processor is fast at.
func (s *search) in(i *Inspector, of *statistics) {
	name, kind := of.framework.Name(), of.kindOf()
	for _, key := range of.framework.Keys() {
		id := objectID{name, key}
		if !s.matchesID(id) {
			continue
		}
		s.share()
		if h := i.memory.history(id); h != nil {
			h.seen = s.run
		} else {
			s.consider(i.look(of, id, nil, true), kind)
		}
	}
	for _, h := range i.memory.histories() {
		if h.id.framework == name && s.matchesID(h.id) {
			s.share()
			s.consider(i.look(of, h.id, h, h.seen == s.run), kind)
		}
	}
}

// share lets others have the processor now and then.
func (s *search) share() {
	if s.looked++; s.looked%lookedAtOnce == 0 {
		runtime.Gosched()
	}
}

// consider counts an object if it is one that is asked for, and keeps it if it may be one of the first.
func (s *search) consider(f found, kind string) {
	if s.state != "" && s.state != f.state || !f.has(s.words, kind) {
		return
	}
	s.total++
	if s.last != nil && byName(*s.last, f) < 0 {
		return
	}
	if s.best = append(s.best, f); len(s.best) == 2*(s.offset+s.limit) {
		s.best = s.first()
		last := s.best[len(s.best)-1]
		s.last = &last
	}
}

// first are those that are asked for until the end of the page, in order.
func (s *search) first() []found {
	slices.SortFunc(s.best, byName)
	return s.best[:min(len(s.best), s.offset+s.limit)]
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

// has tells whether each of the words is somewhere in what a list shows of an object.
func (f found) has(words []word, kind string) bool {
	texts := []string{f.id.framework, kind, f.id.key.Namespace, f.id.key.Name, "", ""}
	if f.last != nil {
		texts[4], texts[5] = f.last.reason(), f.last.record.Error
	}
	return !slices.ContainsFunc(words, func(w word) bool {
		if strings.Contains(w.small, "/") && w.in(f.id.key.Namespace+"/"+f.id.key.Name) {
			return false
		}
		return !slices.ContainsFunc(texts, w.in)
	})
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
