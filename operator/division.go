package operator

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/operator/internal/slots"
)

// resolvePeriod is the interval at which the API server is asked whether kinds have namespaces,
// until it answers.
const resolvePeriod = time.Second

// division limits the sources of an operator to the objects in the slots of this replica. It is
// safe for concurrent use.
type division struct {
	sources []divided
	// changed is called, without a lock, when all sources have listed the held slots.
	changed func()

	mu sync.Mutex
	// resolved is true once it is known which sources hold a part.
	resolved bool
	// held is the part that the sources were last set to hold, and round counts the changes of
	// held. waiting is the number of sources that have not listed held. listed is the part that all
	// sources have listed and hold.
	held, listed   slots.Set
	round, waiting int
}

// divided is a source that holds only a part of its objects if they, and the primaries of all
// frameworks that use it, have namespaces.
type divided struct {
	*informer.Kubernetes
	primaries []*informer.Kubernetes
}

// newDivision finds the sources that can be divided: primary sources, and sources of watches that
// stay in their namespace. A source that is also read or watched otherwise is held in full.
func newDivision(config Config, changed func()) *division {
	d := &division{changed: changed}
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
			d.sources = append(d.sources, divided{k, append(of, k)})
			k.Limit(func(informer.Key) bool { return false }, false, func() {})
		}
	}
	d.resolved = len(d.sources) == 0
	return d
}

// resolve finds out which sources hold a part, and makes the others hold everything. It returns
// when it knows, or when ctx ends.
func (d *division) resolve(ctx context.Context) {
	for _, s := range d.sources {
		err := wait.PollUntilContextCancel(ctx, resolvePeriod, true, func(context.Context) (bool, error) {
			for _, of := range s.primaries {
				switch namespaced, err := of.Namespaced(); {
				case err != nil:
					// The kind is not defined yet, or the API server is unreachable. The source
					// reports it.
					return false, nil
				case !namespaced:
					s.HoldAll()
					return true, nil
				}
			}
			return true, nil
		})
		if err != nil {
			return
		}
	}
	d.mu.Lock()
	d.resolved = true
	d.mu.Unlock()
	d.changed()
}

// hold limits the sources to the objects in these slots. It returns the slots that all sources have
// listed.
func (d *division) hold(held slots.Set) (listed slots.Set) {
	d.mu.Lock()
	before := d.held
	if !d.resolved || d.round > 0 && before == held {
		defer d.mu.Unlock()
		return d.listed
	}
	d.round++
	d.held, d.waiting = held, len(d.sources)
	d.listed = d.listed.And(held)
	if len(d.sources) == 0 {
		d.listed = held
	}
	round := d.round
	d.mu.Unlock()

	has := func(key informer.Key) bool { return held.Has(slotOf(key)) }
	for _, s := range d.sources {
		s.Limit(has, held.Without(before) != slots.Set{}, func() { d.done(round) })
	}
	return d.ready()
}

// done records that a source has completed the listing of a round.
func (d *division) done(round int) {
	d.mu.Lock()
	if round == d.round {
		d.waiting--
	}
	complete := round == d.round && d.waiting == 0
	if complete {
		d.listed = d.held
	}
	d.mu.Unlock()
	if complete {
		d.changed()
	}
}

// ready returns the slots that all sources hold in full.
func (d *division) ready() slots.Set {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.listed
}

// slotOf returns the slot of an object, by its namespace, or by its name if it has none. What
// belongs to an object is in its namespace, and so in the same slot.
func slotOf(key informer.Key) int { return slots.Of(key.Namespace, key.Name) }

// primariesOf returns the primary sources of frameworks, each once.
func primariesOf(frameworks []*framework.Framework) (sources []informer.Source) {
	for _, f := range frameworks {
		if primary := f.Sources()[0]; !slices.Contains(sources, primary) {
			sources = append(sources, primary)
		}
	}
	return sources
}
