package framework

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/operatorkit/operatorkit/framework/internal/keyed"
	"github.com/operatorkit/operatorkit/framework/internal/queue"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/internal/panics"
)

// takeover keeps a framework from acting on an old state when it adopts objects from another
// process: at its start, and when it gains objects from another replica. The other process may have
// acted on newer states than the source holds. So the source is compared with the existing objects
// (informer.Comparer), and a key that differs waits for its event. A source that can't compare is
// trusted.
type takeover struct {
	mu sync.Mutex
	// due are the parts of the objects that are not compared yet. They are not reconciled. Only the
	// first started of them may be compared.
	due     []takenPart
	started int
	// more has a value when there may be more of them.
	more chan struct{}
	// behind are the keys whose event the source has yet to deliver.
	behind keyed.Map[informer.Lag]
	// ends has the objects whose deletion is delivered during a comparison, and is nil otherwise.
	ends map[endedObject]bool
}

type endedObject struct {
	key informer.Key
	uid types.UID
}

type takenPart struct {
	has func(key informer.Key) bool
	// queued is true when its keys wait in the queue already.
	queued bool
	// lost is true when they are about to be passed to another process.
	lost bool
}

func newTakeover() *takeover {
	everything := func(informer.Key) bool { return true }
	return &takeover{due: []takenPart{{has: everything, queued: true}}, started: 1, more: make(chan struct{}, 1)}
}

// add adds a part of the objects, to be compared and then reconciled, once start is called.
func (t *takeover) add(p takenPart) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.due = append(t.due, p)
}

// start lets all parts be compared.
func (t *takeover) start() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.started = len(t.due)
	select {
	case t.more <- struct{}{}:
	default:
	}
}

// parts returns the parts that may be compared.
func (t *takeover) parts() []takenPart {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.due[:t.started])
}

// compared removes the first n parts.
func (t *takeover) compared(n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.due, t.started = t.due[n:], t.started-n
}

// isDue reports whether a key is not compared yet.
func (t *takeover) isDue(key informer.Key) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.ContainsFunc(t.due, func(p takenPart) bool { return p.has(key) })
}

// endedBefore reports whether an object that is gone ended before this process adopted it.
func (t *takeover) endedBefore(key informer.Key, obj any) bool {
	lag, known := t.behind.Get(key)
	if known && lag.UID == uidOf(obj) {
		return lag.Gone
	}
	return known || t.isDue(key)
}

// ended records that the source has delivered the end of an object.
func (t *takeover) ended(key informer.Key, obj any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ends != nil {
		t.ends[endedObject{key, uidOf(obj)}] = true
	}
	if lag, known := t.behind.Get(key); known && lag.UID == uidOf(obj) {
		t.behind.Delete(key)
	}
}

// compare replaces the lags of the keys that has accepts by those that list returns.
func (t *takeover) compare(has func(key informer.Key) bool, list func() (map[informer.Key]informer.Lag, error)) error {
	t.mu.Lock()
	t.ends = map[endedObject]bool{}
	for _, key := range t.behind.Keys() {
		if has(key) {
			t.behind.Delete(key)
		}
	}
	t.mu.Unlock()
	behind, err := list()
	t.mu.Lock()
	defer t.mu.Unlock()
	for key, lag := range behind {
		if !t.ends[endedObject{key, lag.UID}] {
			t.behind.Set(key, lag)
		}
	}
	t.ends = nil
	return err
}

// comparePause is the time between two tries to compare.
const comparePause = time.Second

// takeOver compares all parts that are due, and enqueues their keys. It retries failures until ctx
// ends.
func (f *Framework) takeOver(ctx context.Context) {
	told := ""
	for ctx.Err() == nil {
		parts := f.takeover.parts()
		if len(parts) == 0 {
			return
		}
		within := func(parts []takenPart) func(key informer.Key) bool {
			return func(key informer.Key) bool {
				return slices.ContainsFunc(parts, func(p takenPart) bool { return p.has(key) })
			}
		}
		if err := panics.Recovered(func() error { return f.compare(ctx, within(parts)) }); err != nil {
			if err.Error() != told && ctx.Err() == nil {
				f.log("error", "nothing is reconciled before the source was compared with what there is",
					"source", f.source.Name(), "error", err.Error())
			}
			told = err.Error()
			wait(ctx, comparePause)
			continue
		}
		f.takeover.compared(len(parts))
		parts = slices.DeleteFunc(parts, func(p takenPart) bool { return p.queued })
		if len(parts) == 0 {
			continue
		}
		gained := within(parts)
		if f.remover != nil {
			for key, last := range f.remover.Deletions() {
				if gained(key) {
					f.tombstones.add(key, tombstone{last, true})
				}
			}
		}
		for _, key := range slices.Concat(f.tombstones.gone.Keys(), f.Keys()) {
			if gained(key) {
				f.queue.Add(key, queue.Backlog, byTakeover(f.source.Name()))
			}
		}
	}
}

// takeOverMore calls takeOver for parts that are added while the framework works.
func (f *Framework) takeOverMore(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-f.takeover.more:
			f.takeOver(ctx)
		}
	}
}

// compare finds the keys whose event the source has yet to deliver.
func (f *Framework) compare(ctx context.Context, has func(key informer.Key) bool) error {
	source, ok := f.source.(informer.Comparer)
	if !ok {
		return nil
	}
	return f.takeover.compare(has, func() (map[informer.Key]informer.Lag, error) { return source.Behind(ctx, has) })
}

// waitsForSource reports whether a key waits for its event.
func (f *Framework) waitsForSource(key informer.Key) bool {
	if f.takeover.isDue(key) {
		return true
	}
	if _, known := f.takeover.behind.Get(key); !known {
		return false
	}
	obj, exists, err := f.source.Get(key)
	return err == nil && f.takeover.isBehind(key, obj, exists)
}

// isBehind reports whether the source, which holds obj now, has yet to deliver the event of a key.
func (t *takeover) isBehind(key informer.Key, obj any, exists bool) bool {
	lag, known := t.behind.Get(key)
	switch {
	case !known:
		return t.isDue(key)
	case lag.Gone:
		return exists && uidOf(obj) == lag.UID // Without it, its end is being delivered.
	case !exists, informer.IsOlder(seenOf(obj).version, lag.Version):
		return true
	}
	t.behind.Delete(key)
	return false
}
