package framework

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	apiwait "k8s.io/apimachinery/pkg/util/wait"

	"github.com/operatorkit/operatorkit/framework/internal/queue"
	"github.com/operatorkit/operatorkit/informer"
)

// What a deletion without a finalizer needs to be processed once when the object goes from one replica to another: the former owner works
// on until the next one sees what happens, processes what happened before (CatchUp, FinishDeletions), and leaves word of what it has
// processed that the next one saw too (ProcessedDeletions, PassOverDeletions).

// maxDone is how many deletions are remembered that were processed.
const maxDone = 1000

// handoverPeriod is how often it is looked whether something has come true that a hand-over waits for.
const handoverPeriod = 10 * time.Millisecond

// listPeriod is after which time a list, or another question that failed, is tried again.
const listPeriod = 250 * time.Millisecond

// Deletion names an object of which the deletion was processed.
type Deletion struct {
	Key informer.Key
	UID types.UID
}

// doneDeletions are the last deletions that were processed. One that is nil remembers nothing.
type doneDeletions struct {
	mu   sync.Mutex
	last []doneDeletion
}

type doneDeletion struct {
	Deletion
	at time.Time
}

func (d *doneDeletions) add(key informer.Key, uid types.UID) {
	if d == nil || uid == "" {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.last) == maxDone {
		d.last = append(d.last[:0], d.last[maxDone/2:]...)
	}
	d.last = append(d.last, doneDeletion{Deletion{key, uid}, time.Now()})
}

// since calls yield with what was processed since a time, the last one first.
func (d *doneDeletions) since(start time.Time, yield func(Deletion)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, one := range slices.Backward(d.last) {
		if one.at.Before(start) {
			return
		}
		yield(one.Deletion)
	}
}

// HandsOver tells whether deletions have to be handed over to who gets the objects next: a framework with finalizers loses none.
func (f *Framework) HandsOver() bool { return !f.usesFinalizer() }

// Subscribed is closed once the framework is told of what happens to its primary objects.
func (f *Framework) Subscribed() <-chan struct{} { return f.subscribed }

// CatchUp waits until the source has shown the framework the end of every one of these objects that is not there any more. It returns when that is
// so, or with an error when ctx ends.
func (f *Framework) CatchUp(ctx context.Context, of func(key informer.Key) bool) error {
	if source, ok := f.source.(informer.CatchUpper); ok {
		if err := untilDone(ctx, source.CatchUp); err != nil {
			return fmt.Errorf("framework %q: catch up: %w", f.Name(), err)
		}
		return nil
	}
	source, ok := f.source.(informer.Comparer)
	if !ok {
		f.settle()
		return nil
	}
	err := untilDone(ctx, func(ctx context.Context) error {
		behind, err := source.Behind(ctx, of)
		for key, lag := range behind {
			if lag.Gone {
				return fmt.Errorf("the source does not show the end of %s", keyString(key))
			}
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("framework %q: %w", f.Name(), err)
	}
	f.settle()
	return nil
}

// settle waits until the framework is told of what the store of its source does not have any more.
func (f *Framework) settle() {
	if source, ok := f.source.(informer.Settler); ok {
		source.Settle()
	}
}

// untilDone tries something again until it succeeds, or ctx ends.
func untilDone(ctx context.Context, try func(ctx context.Context) error) error {
	var err error
	ended := apiwait.PollUntilContextCancel(ctx, listPeriod, true, func(ctx context.Context) (bool, error) {
		err = try(ctx)
		return err == nil, nil
	})
	if ended != nil {
		return errors.Join(ended, err)
	}
	return nil
}

// FinishDeletions has those deletions of these objects processed that the source has shown, although the objects are not to be begun any
// more. It returns when that is done, or with an error when ctx ends.
func (f *Framework) FinishDeletions(ctx context.Context, of func(key informer.Key) bool) error {
	left := slices.DeleteFunc(f.tombstones.gone.Keys(), func(key informer.Key) bool { return !of(key) })
	if len(left) == 0 {
		return nil
	}
	for _, key := range left {
		f.finishing.Update(key, func(waiting int, _ bool) (int, bool) { return waiting + 1, true })
		defer f.finishing.Update(key, func(waiting int, _ bool) (int, bool) { return waiting - 1, waiting > 1 })
		f.queue.Add(key, queue.Backlog, reason{Trigger: Trigger{Cause: CauseBacklog, Source: f.source.Name()}})
	}
	err := apiwait.PollUntilContextCancel(ctx, handoverPeriod, true, func(context.Context) (bool, error) {
		left = slices.DeleteFunc(left, func(key informer.Key) bool {
			_, waits := f.tombstones.gone.Get(key)
			return !waits
		})
		return len(left) == 0, nil
	})
	if err != nil {
		return fmt.Errorf("framework %q: %d deletions are not processed: %w", f.Name(), len(left), err)
	}
	return nil
}

// isFinishing tells whether a deletion of this key is still to be processed.
func (f *Framework) isFinishing(key informer.Key) bool {
	_, finishing := f.finishing.Get(key)
	return finishing
}

// ProcessedDeletions are those of these objects that were processed and that may be processed once more by who gets the objects next: of
// objects that still exist, and of those that have gone since a time. Of the latter the last ones are remembered, and one that is there again
// is not told of.
func (f *Framework) ProcessedDeletions(of func(key informer.Key) bool, since time.Time) (done []Deletion) {
	for _, key := range f.tombstones.processed.Keys() {
		if uid, ok := f.tombstones.processed.Get(key); ok && of(key) {
			done = append(done, Deletion{key, uid})
		}
	}
	f.tombstones.done.since(since, func(d Deletion) {
		if of(d.Key) && !f.holdsAlive(d) {
			done = append(done, d)
		}
	})
	return done
}

// holdsAlive tells whether the source holds an object, and nobody deletes it.
func (f *Framework) holdsAlive(d Deletion) bool {
	obj, exists, err := f.source.Get(d.Key)
	return err == nil && exists && uidOf(obj) == d.UID && !beingDeleted(obj)
}

// PassOverDeletions has deletions passed over that somebody else has processed, be it that they have been shown or not.
func (f *Framework) PassOverDeletions(done []Deletion) {
	// Also if its end is shown just now, it is found in one place or in the other.
	for _, d := range done {
		if obj, exists, err := f.source.Get(d.Key); err == nil && exists && uidOf(obj) == d.UID {
			f.tombstones.markProcessed(d.Key, obj)
		}
	}
	f.settle()
	for _, d := range done {
		f.tombstones.gone.Update(d.Key, func(gone []tombstone, _ bool) ([]tombstone, bool) {
			left := slices.DeleteFunc(slices.Clone(gone), func(last tombstone) bool { return uidOf(last.obj) == d.UID })
			if len(left) < len(gone) {
				f.tombstones.processed.Delete(d.Key)
			}
			return left, len(left) > 0
		})
	}
}
