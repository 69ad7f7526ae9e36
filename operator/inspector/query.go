package inspector

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer"
)

// defaultLimit and maxLimit are how many objects are answered at once.
const (
	defaultLimit = 50
	maxLimit     = 1000
)

// maxFailing is how many failing objects an overview names.
const maxFailing = 100

// query says which objects are asked for.
type query struct {
	framework     string
	kind          string
	namespace     string
	name          string
	words         []string
	state         State
	offset, limit int
}

func queryOf(values url.Values) (query, error) {
	q := query{
		framework: values.Get("framework"), kind: values.Get("kind"), namespace: values.Get("namespace"), name: values.Get("name"),
		words: strings.Fields(strings.ToLower(values.Get("q"))), state: State(values.Get("state")), limit: defaultLimit,
	}
	if q.state != "" && !slices.Contains(States(), q.state) {
		return q, fmt.Errorf("state must be one of %q, is %q", States(), q.state)
	}
	number := func(name string, to *int, least, most int) error {
		text := values.Get(name)
		if text == "" {
			return nil
		}
		n, err := strconv.Atoi(text)
		if err != nil || n < least || n > most {
			return fmt.Errorf("%s must be a number from %d to %d, is %q", name, least, most, text)
		}
		*to = n
		return nil
	}
	return q, errors.Join(number("offset", &q.offset, 0, 1<<30), number("limit", &q.limit, 1, maxLimit))
}

// matchesID tells what can be told of an object without its history.
func (q query) matchesID(id objectID) bool {
	return (q.namespace == "" || q.namespace == id.key.Namespace) && (q.name == "" || q.name == id.key.Name)
}

// matches tells whether an object is asked for. Each word must be somewhere in what a list shows of it.
func (q query) matches(s *ObjectSummary) bool {
	if q.state != "" && q.state != s.State {
		return false
	}
	if len(q.words) == 0 {
		return true
	}
	text := strings.ToLower(s.Framework + " " + s.Kind + " " + s.Namespace + "/" + s.Name + " " + s.Reason + " " + s.Error)
	return !slices.ContainsFunc(q.words, func(word string) bool { return !strings.Contains(text, word) })
}

// ofKind tells whether a framework is meant by a kind: the kind of its objects, or its name or the beginning of that, as
// in "websites" for "websites.example.com".
func ofKind(kind, frameworkName, frameworkKind string) bool {
	if kind == "" || strings.EqualFold(kind, frameworkKind) || strings.EqualFold(kind, frameworkName) {
		return true
	}
	first, _, _ := strings.Cut(frameworkName, ".")
	return strings.EqualFold(kind, first)
}

// list returns the objects that are asked for, by name.
func (i *Inspector) list(q query) ObjectList {
	var found []ObjectSummary
	for _, s := range i.frameworks() {
		name, kind := s.framework.Name(), s.kindOf()
		if q.framework != "" && q.framework != name || !ofKind(q.kind, name, kind) {
			continue
		}
		for _, summary := range i.memory.summaries(name, s.framework.Keys(), q) {
			summary.Kind = cmp.Or(summary.Kind, kind)
			if q.matches(&summary) {
				found = append(found, summary)
			}
		}
	}
	slices.SortFunc(found, func(a, b ObjectSummary) int {
		return cmp.Or(cmp.Compare(a.Framework, b.Framework), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	page := found[min(q.offset, len(found)):min(q.offset+q.limit, len(found))]
	return ObjectList{Total: len(found), Objects: append([]ObjectSummary{}, page...)}
}

// summaries returns those of all objects of a framework whose names match: those with the given keys and those that are
// remembered.
func (m *memory) summaries(frameworkName string, keys []informer.Key, q query) []ObjectSummary {
	m.mu.Lock()
	defer m.mu.Unlock()
	var found []ObjectSummary
	exists := make(map[informer.Key]bool, len(keys))
	for _, key := range keys {
		exists[key] = true
		id := objectID{frameworkName, key}
		if !q.matchesID(id) {
			continue
		}
		if h := m.objects[id]; h != nil {
			found = append(found, h.summary())
			continue
		}
		found = append(found, ObjectSummary{Framework: frameworkName, Namespace: key.Namespace, Name: key.Name, State: Unseen})
	}
	for id, h := range m.objects {
		if id.framework == frameworkName && !exists[id.key] && q.matchesID(id) {
			found = append(found, h.summaryOfGone())
		}
	}
	return found
}

// summary says how an object is doing that exists.
func (h *history) summary() ObjectSummary {
	r := h.entries[len(h.entries)-1].record
	s := ObjectSummary{
		Framework: h.id.framework, Namespace: h.id.key.Namespace, Name: h.id.key.Name, Kind: h.object.Kind,
		Reason: r.Reason, Error: r.Error, Last: r.Started, NextTry: r.NextTry,
	}
	switch r.Outcome {
	case framework.Failed:
		s.State, s.FailingSince, s.Failures = Failing, h.failure.since, h.failure.count
	case framework.Waiting, framework.Canceled:
		s.State = Waiting
		s.Reason = strings.Join(r.Signals, ", ")
	case framework.Planned:
		s.State = Planned
	case framework.Ignored:
		s.State = LeftAlone
	default:
		s.State = Fine
	}
	return s
}

// summaryOfGone is summary for an object that is not in its source.
func (h *history) summaryOfGone() ObjectSummary {
	s := h.summary()
	if s.State != Failing && s.State != Waiting {
		s.State = Gone
	}
	return s
}

// failingObjects returns the objects that fail, those that failed last first, and how many there are.
func (m *memory) failingObjects(limit int) ([]ObjectSummary, int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	found := make([]ObjectSummary, 0, min(limit, m.failing.Len()))
	for e := m.failing.Back(); e != nil && len(found) < limit; e = e.Prev() {
		found = append(found, e.Value.(*history).summary())
	}
	return found, m.failing.Len()
}

// find returns what is known of an object, and false if there is nothing to know.
func (i *Inspector) find(id objectID) (Object, bool) {
	s := i.framework(id.framework)
	if s == nil {
		return Object{}, false
	}
	_, exists, _ := s.framework.Sources()[0].Get(id.key)
	o, known := i.memory.object(id, exists)
	o.Shadows = s.framework.ShadowsOf(id.key)
	o.Identity = Identity{s.framework.Identity().Operator, s.framework.Name(), s.framework.Finalizer()}
	if o.Kind == "" {
		o.Kind = s.kindOf()
	}
	return o, known || exists
}

// object returns what is remembered of an object.
func (m *memory) object(id objectID, exists bool) (o Object, known bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	h := m.objects[id]
	if h == nil {
		o.ObjectSummary = ObjectSummary{Framework: id.framework, Namespace: id.key.Namespace, Name: id.key.Name, State: Unseen}
		o.Reconciliations = []Reconciliation{}
		return o, false
	}
	o.ObjectSummary, o.Object = h.summary(), h.object
	if !exists {
		o.ObjectSummary = h.summaryOfGone()
	}
	for n := len(h.entries) - 1; n >= 0; n-- {
		e := &h.entries[n]
		m.describe(h, e)
		o.Reconciliations = append(o.Reconciliations, Reconciliation{Record: e.record, Repeats: e.repeats, RepeatedSince: e.first})
	}
	return o, true
}

// versionOf returns a number that changes when something is added to what is remembered of an object.
func (m *memory) versionOf(id objectID) uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	if h := m.objects[id]; h != nil {
		return h.version
	}
	return 0
}
