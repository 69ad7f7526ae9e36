package operator

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/operator/inspector"
	"github.com/operatorkit/operatorkit/operator/internal/ring"
)

// division has the sources of an operator hold the part of the objects that this replica has. It is safe for concurrent use.
type division struct {
	sources []divided
	// changed is called, without a lock, when all sources have listed what they were told to hold.
	changed func()
	// ready is what they have listed and hold.
	ready atomic.Pointer[[]ring.Span]
	// filter is who leaves out the objects of others, and empty until that is known.
	filter atomic.Value

	mu sync.Mutex
	// held is what the sources were told to hold, for the round-th time, and waiting is how many of them have not listed that.
	held           []ring.Span
	round, waiting int
}

// divided is a source that holds a part of the objects if primaries, those of the frameworks that use it, have namespaces.
type divided struct {
	*informer.Kubernetes
	primaries []*informer.Kubernetes
}

// newDivision finds the sources that can be divided: primary ones, and those of watches that stay in their namespace. Everything that
// others read or watch too is held in full.
func newDivision(config Config, changed func()) *division {
	d := &division{changed: changed}
	d.ready.Store(&[]ring.Span{})
	primaries := map[informer.Source][]*informer.Kubernetes{}
	whole := map[informer.Source]bool{}
	for _, s := range config.Sources {
		whole[s] = true
	}
	use := func(s informer.Source, f *framework.Framework) {
		if primary, ok := f.Sources()[0].(*informer.Kubernetes); ok {
			primaries[s] = append(primaries[s], primary)
			return
		}
		whole[s] = true
	}
	for _, f := range config.Frameworks {
		use(f.Sources()[0], f)
		for _, w := range f.Watches() {
			use(w.Source, f)
			whole[w.Source] = whole[w.Source] || !w.SameNamespace
		}
	}
	for source, of := range primaries {
		if k, ok := source.(*informer.Kubernetes); ok && !whole[source] {
			d.sources = append(d.sources, divided{k, of})
		}
	}
	return d
}

// applies is informer.Part.Applies.
func (d divided) applies() (bool, error) {
	for _, primary := range d.primaries {
		if namespaced, err := primary.Namespaced(); err != nil || !namespaced {
			return false, err
		}
	}
	return true, nil
}

// hold has the sources hold the objects in these spans, and tells whether there are any that they have to forget.
func (d *division) hold(spans []ring.Span) (lost bool) {
	d.mu.Lock()
	before := d.held
	if d.round > 0 && slices.Equal(before, spans) {
		d.mu.Unlock()
		return false
	}
	d.round++
	d.held, d.waiting = spans, len(d.sources)
	ready := ring.Intersection(d.listed(), spans)
	if len(d.sources) == 0 {
		ready = spans
	}
	d.ready.Store(&ready)
	round := d.round
	d.mu.Unlock()

	part := informer.Part{
		Has:      func(namespace string) bool { return contains(spans, ring.HashOf(namespace)) },
		Selector: ring.Selector(ring.FieldNamespace, spans),
	}
	for _, s := range d.sources {
		part.Applies = s.applies
		s.Limit(part, !ring.Covers(before, spans), func() { d.done(round) })
	}
	return !ring.Covers(spans, before)
}

// ask asks the API server, until it has answered once, whether it leaves out the objects of others.
func (d *division) ask(ctx context.Context) {
	if d.filter.Load() != nil {
		return
	}
	for _, s := range d.sources {
		if s.Holds("") {
			continue
		}
		switch filters, err := s.ServerFilters(ctx); {
		case err != nil:
		case filters:
			d.filter.Store(inspector.FilteredByServer)
		default:
			d.filter.Store(inspector.FilteredByReplica)
		}
		return
	}
}

// done notes that a source has listed what it was told to hold in a round.
func (d *division) done(round int) {
	d.mu.Lock()
	if round == d.round {
		d.waiting--
	}
	complete := round == d.round && d.waiting == 0
	if held := d.held; complete {
		d.ready.Store(&held)
	}
	d.mu.Unlock()
	if complete {
		d.changed()
	}
}

// listed returns in which spans all sources hold all objects.
func (d *division) listed() []ring.Span { return *d.ready.Load() }
