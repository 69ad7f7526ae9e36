package framework

import (
	"fmt"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"

	"github.com/operatorkit/operatorkit/informer"
)

// unmatched remembers the objects that no resource set handles.
type unmatched struct {
	mu sync.Mutex
	// held tells of each whether it has a finalizer of the framework.
	held map[informer.Key]bool
	// known is len(held), for those who only ask whether there is anything.
	known atomic.Int64
}

func newUnmatched() *unmatched { return &unmatched{held: map[informer.Key]bool{}} }

// note takes note of what became of an object, and tells whether that is news of an object that is handled by no set.
func (u *unmatched) note(key informer.Key, matches, held bool) (news bool) {
	if matches && u.known.Load() == 0 {
		return false
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	before, known := u.held[key]
	if matches {
		delete(u.held, key)
	} else {
		u.held[key] = held
	}
	u.known.Store(int64(len(u.held)))
	return !matches && (!known || before != held)
}

func (u *unmatched) count() (objects, held int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, h := range u.held {
		if h {
			held++
		}
	}
	return len(u.held), held
}

// noteMatch tells of an object that no resource set handles, once, on the object itself.
func (f *Framework) noteMatch(key informer.Key, res result) {
	r := res.reconciliation
	unmatched := r != nil && (res.reason == reasonNoResourceSet || IsNoResourceSet(res.err))
	held := unmatched && f.hasFinalizer(r.object)
	if !f.unmatched.note(key, !unmatched, held) || res.err != nil {
		return
	}
	record := f.reporter.recordOn(r.object)
	if record == nil {
		return
	}
	kind, message := corev1.EventTypeNormal, fmt.Sprintf("no resource set of %s handles it: it is left alone", f.Identity())
	if held {
		kind = corev1.EventTypeWarning
		message += fmt.Sprintf(". It keeps the finalizer %q, and its deletion will wait: give it back the labels by which a resource set "+
			"handled it, or have a set with HandlesRest", f.finalizer)
	}
	record(kind, ReasonNoResourceSet, clip(message))
}
