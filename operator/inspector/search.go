package inspector

import (
	"cmp"
	"context"
	"runtime"
	"slices"
	"strings"

	"github.com/operatorkit/operatorkit/framework"
	engines "github.com/operatorkit/operatorkit/internal/access"
)

const (
	// maxFailing is how many failing objects an overview names.
	maxFailing = 100
	// lookedAtOnce is after how many looks at objects searches let others have the processor: workers who come back from an API server have work
	// for a moment, and would wait for what a search may take in one go. Often is worse than seldom: each time costs them, too.
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

// list returns the objects that are asked for, by name. It may be the list of others who ask for the same, and is not changed. The error is
// that of ctx, or tells that a search of others failed.
//
// Everybody who may look at the page may look at all of it: lists differ by what is asked for only.
func (i *Inspector) list(ctx context.Context, q query) (ObjectList, error) {
	return i.searches.take(ctx, q, func(all []query) []ObjectList {
		p := pass{run: i.searched.Add(1)}
		for _, q := range all {
			p.searches = append(p.searches, newSearch(q))
		}
		for _, of := range i.frameworks() {
			p.through(i, of)
		}
		lists := make([]ObjectList, len(all))
		for n, s := range p.searches {
			first := s.first()
			lists[n] = ObjectList{Total: s.total, Objects: []ObjectSummary{}}
			for _, f := range first[min(s.offset, len(first)):] {
				lists[n].Objects = append(lists[n].Objects, i.summary(f))
			}
		}
		return lists
	})
}

// pass goes through all objects for one search or for several.
type pass struct {
	searches []*search
	// run numbers the passes.
	run uint64
	// looked is how often an object was looked at since others had the processor.
	looked int
}

// through looks at the objects of a framework: those that exist and those that are remembered. It holds nothing that workers need for longer
// than it takes to look at one object. What is remembered is looked at in a row, which a processor is fast at.
func (p *pass) through(i *Inspector, of *statistics) {
	name, kind := of.framework.Name(), of.kindOf()
	var searches []*search
	for _, s := range p.searches {
		if s.begin(name, kind) {
			searches = append(searches, s)
		}
	}
	if len(searches) == 0 {
		return
	}
	for _, key := range of.framework.Keys() {
		id := objectID{name, key}
		if !slices.ContainsFunc(searches, func(s *search) bool { return s.matchesID(id) }) {
			continue
		}
		p.share(1)
		if h := i.memory.history(id); h != nil {
			h.seen = p.run
		} else {
			p.consider(searches, i.look(of, id, nil, true))
		}
	}
	for _, h := range i.memory.histories() {
		if h.id.framework == name {
			p.consider(searches, i.look(of, h.id, h, h.seen == p.run))
		}
	}
}

// consider has searches consider an object.
func (p *pass) consider(searches []*search, f found) {
	reason, failure := "", ""
	if f.last != nil {
		reason, failure = f.last.reason(), f.last.record.Error
	}
	for _, s := range searches {
		if s.matchesID(f.id) {
			s.consider(f, reason, failure)
		}
	}
	p.share(len(searches))
}

// share lets others have the processor now and then, when so many more looks were taken.
func (p *pass) share(looks int) {
	if p.looked += looks; p.looked >= lookedAtOnce {
		p.looked = 0
		runtime.Gosched()
	}
}

// search looks for what is asked for.
type search struct {
	query
	words []word
	// left are those of the words that have to be in what differs among the objects of a framework.
	left []word
	// total is how many objects there are that are asked for, and best the first of them and some more, in no order. Those that come after
	// last, if there is one, are not among the first.
	total int
	best  []found
	last  *found
}

func newSearch(q query) *search {
	s := &search{query: q}
	for text := range strings.FieldsSeq(q.words) {
		s.words = append(s.words, newWord(text))
	}
	return s
}

// begin begins with the objects of a framework, and tells whether some of them may be asked for.
func (s *search) begin(name, kind string) bool {
	s.left = slices.DeleteFunc(slices.Clone(s.words), func(w word) bool { return w.in(name) || w.in(kind) })
	return (s.framework == "" || s.framework == name) && ofKind(s.kind, name, kind)
}

// consider counts an object if it is one that is asked for, and keeps it if it may be one of the first. Reason and failure are what a list
// shows of it beside its name.
func (s *search) consider(f found, reason, failure string) {
	if s.state != "" && s.state != f.state || !f.has(s.left, reason, failure) {
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
		if _, fails := engines.EngineOf(s.framework).FailingSince(id.key); fails {
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
func (f found) has(words []word, reason, failure string) bool {
	key := f.id.key
	return !slices.ContainsFunc(words, func(w word) bool {
		return !w.in(key.Name) && !w.in(failure) && !w.in(key.Namespace) && !w.in(reason) &&
			(!strings.Contains(string(w), "/") || !w.in(key.Namespace+"/"+key.Name))
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
	entries := i.memory.show(h)
	o.Object = entries[len(entries)-1].object
	for _, e := range slices.Backward(entries) {
		o.Reconciliations = append(o.Reconciliations, Reconciliation{Record: e.record, Repeats: e.repeats, RepeatedSince: e.first})
	}
	return o, true
}
