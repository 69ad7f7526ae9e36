package framework

import (
	"context"
	"sync"

	"github.com/operatorkit/operatorkit/informer"
)

const (
	// fewConfirmed is how many objects are always asked for one by one.
	fewConfirmed = 10
	// confirmedShare is which part of all objects has to be asked for, one by one, before all are at once: one answer costs what some
	// dozens of entries of a list do.
	confirmedShare = 50
)

// census confirms all objects at once when many have to be confirmed, as when an operator starts that has something new to do for
// each: what was asked for before that costs a fraction of the one list, and a list is never read for a few.
type census struct {
	mu sync.Mutex
	// asked is how many objects were asked for one by one, of due, which is 0 when it isn't known yet.
	asked, due int
	taken      bool
}

// begin has the objects counted anew, because there are more of them that were never confirmed. While they are being confirmed it does
// nothing: the others are asked for one by one.
func (c *census) begin() {
	if !c.mu.TryLock() {
		return
	}
	defer c.mu.Unlock()
	c.asked, c.due, c.taken = 0, 0, false
}

// take counts an object that has to be confirmed, and returns true if all objects that were there at some time have been. While they are,
// others wait.
func (c *census) take(ctx context.Context, f *Framework) (taken bool) {
	lister, ok := f.live.(informer.LiveLister)
	if !ok {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.taken {
		return true
	}
	if c.due == 0 {
		c.due = max(fewConfirmed, f.source.Status().Objects/confirmedShare)
	}
	if c.asked++; c.asked <= c.due {
		return false
	}
	err := lister.ListLive(ctx, func(key informer.Key, obj any) {
		f.confirmed.Update(key, func(before seen, known bool) (seen, bool) {
			if now := seenOf(obj); !known || before.isOlder(now) {
				return now, true
			}
			return before, true
		})
	})
	if err != nil {
		c.due *= 2 // Each is asked for, which tells what is wrong.
		return false
	}
	c.taken = true
	return true
}
