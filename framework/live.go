package framework

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/operatorkit/operatorkit/context/reconciliationcanceledcontext"
	"github.com/operatorkit/operatorkit/informer"
)

// ErrOutdated is in the chain of the error of [Confirm].
var ErrOutdated = errors.New("the object changed since this reconciliation read it")

// Confirm does a live read of the object of a reconciliation. It makes sure that the object has not
// changed since this reconciliation read it: the same object in the same version or, in a deletion,
// that it is gone or being deleted. It is for resources that delete or replace things by other
// means than a delete part: the framework does the same before it applies one, and before
// EnsureDeleted of plain resources. The object is read once in a reconciliation. If the source does
// not implement [informer.LiveReader], and outside a Framework, the error is nil.
//
// If errors.Is(err, ErrOutdated) holds, the reconciliation is cancelled, and the resource must
// return the error. The object is reconciled when the source has delivered its newer state.
func Confirm(ctx context.Context) error {
	on, err := confirm(ctx)
	if err == nil && !on {
		err = ErrOutdated
	}
	return err
}

// confirm reports whether the object is unchanged since the reconciliation read it. If not, it has
// cancelled the reconciliation.
func confirm(ctx context.Context) (on bool, err error) {
	r, _ := ctx.Value(liveKey{}).(*reconciliation)
	if r == nil {
		return true, nil
	}
	on, err = r.confirm(ctx)
	if !on && err == nil {
		reconciliationcanceledcontext.SetCanceled(ctx)
	}
	return on, err
}

type liveKey struct{}

// seen is an observed state of an object.
type seen struct {
	// uid distinguishes successive objects of a name. It is empty if the source does not
	// distinguish them.
	uid     types.UID
	version string
}

func seenOf(obj any) seen {
	s := seen{uid: uidOf(obj)}
	if v, ok := obj.(interface{ GetResourceVersion() string }); ok && !isNil(obj) {
		s.version = v.GetResourceVersion()
	}
	return s
}

func (s seen) isOlder(than seen) bool { return informer.IsOlder(s.version, than.version) }

func (s seen) sameLife(other seen) bool { return s.uid == other.uid || s.uid == "" || other.uid == "" }

// sameVersion is true also if one of them has no version.
func (s seen) sameVersion(other seen) bool {
	return s.version == other.version || s.version == "" || other.version == ""
}

// confirmation is what a reconciliation knows of its object beyond the state of the source.
type confirmation struct {
	mu sync.Mutex
	// seen is the state from which the reconciliation is computed. confirmed is true if it comes
	// from a live read, or from the response to a write.
	seen      seen
	confirmed bool
	// outdated says why the reconciliation ends.
	outdated string
}

// hasSeen records the response to a write of the object. The reconciliation continues with that
// state.
func (r *reconciliation) hasSeen(obj any) {
	r.live.mu.Lock()
	defer r.live.mu.Unlock()
	r.live.seen, r.live.confirmed = seenOf(obj), true
}

func (r *reconciliation) confirm(ctx context.Context) (on bool, err error) {
	c := &r.live
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.confirmed || c.outdated != "" {
		return c.outdated == "", nil
	}
	now, exists, same, err := r.framework.readLive(ctx, r.key, c.seen)
	if err != nil {
		return false, fmt.Errorf("look for %s before acting for it: %w", keyString(r.key), err)
	}
	deleting := r.event == deleteEvent
	switch {
	case exists && !same, !exists && !deleting:
		c.outdated = reasonReplaced
	case same && deleting && !beingDeleted(now), !deleting && !c.seen.sameVersion(seenOf(now)):
		c.outdated = reasonOutdated
	default:
		c.confirmed = true
	}
	return c.confirmed, nil
}

// errOlderAnswer is the error of a server that lags.
var errOlderAnswer = errors.New("the answer is older than what was seen before")

// readLive does a live read of an object, and reports whether it is the same object as s. A state
// older than s is an error.
func (f *Framework) readLive(ctx context.Context, key informer.Key, s seen) (now any, exists, same bool, err error) {
	now, exists, err = f.live.GetLive(ctx, key)
	same = err == nil && exists && s.sameLife(seenOf(now))
	if same && seenOf(now).isOlder(s) {
		err = errOlderAnswer
	}
	return now, exists, same, err
}

// unlessOutdated returns res, or a Waiting result if the confirmation found the object outdated.
func (r *reconciliation) unlessOutdated(res result) result {
	r.live.mu.Lock()
	defer r.live.mu.Unlock()
	if r.live.outdated != "" {
		return result{reconciliation: r, outcome: Waiting, reason: r.live.outdated, outdated: true}
	}
	return res
}

// liveOf returns the live state of an object that the source holds, or an error that wraps
// ErrPlanChanged if it is gone.
func (f *Framework) liveOf(ctx context.Context, key informer.Key, obj any) (any, error) {
	if f.live == nil {
		return obj, nil
	}
	now, _, same, err := f.readLive(ctx, key, seenOf(obj))
	switch {
	case err != nil:
		return nil, fmt.Errorf("look for %s: %w", keyString(key), err)
	case !same:
		return nil, fmt.Errorf("plan of %s: %w: it is gone", keyString(key), ErrPlanChanged)
	}
	return now, nil
}
