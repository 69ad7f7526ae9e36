package framework

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/operatorkit/operatorkit/context/reconciliationcanceledcontext"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/informer"
)

// ErrOutdated is in the chain of the error of Confirm.
var ErrOutdated = errors.New("the object is not any more what the reconciliation has it for")

// Confirm makes sure that the object of a reconciliation is still what the reconciliation has it for, before something that exists is
// changed or deleted for it: that it is the same object and in the same version, or, in a deletion, that it is gone or being deleted.
// What the source says may be of an earlier time, when the list was that it began with. Where the source is an informer.LiveReader
// it is asked, once in a reconciliation; elsewhere, and outside of a Framework, the error is nil.
//
// The Framework does so itself before it applies a patch with a delete part, and before EnsureDeleted of resources that are no CRUD
// resources. For patches with an update part it asks once for each object as long as it runs. So it does for those that only create, if
// the object had its finalizer before: what is made for an object whose deletion was processed already, nobody would ever take away. To put
// the finalizer on is an answer too, and where many objects are to be asked for, as after the start of an operator that has something new
// to do for each, one list answers for all if the source is an informer.LiveLister. Confirm is for what changes or deletes in other
// places: in ApplyCreateChange, or in EnsureCreated of a plain resource.
//
// With an error for which errors.Is(err, ErrOutdated) holds the reconciliation is cancelled, and the resource is to return. It is no
// error of the object: its reconciliation begins anew with the object as it is now.
func Confirm(ctx context.Context) error {
	on, err := confirm(ctx, plan.Delete)
	if err == nil && !on {
		err = ErrOutdated
	}
	return err
}

// confirm tells whether an action may be carried out on what is there. If not, the reconciliation has been cancelled.
func confirm(ctx context.Context, action plan.Action) (on bool, err error) {
	if action == "" {
		return true, nil
	}
	r, _ := ctx.Value(lifeKey{}).(*reconciliation)
	if r == nil {
		return true, nil
	}
	on, err = r.confirm(ctx, action)
	if !on && err == nil {
		reconciliationcanceledcontext.SetCanceled(ctx)
	}
	return on, err
}

// seen is a state of an object that was seen.
type seen struct {
	// uid tells the lives of a name apart. It is empty where the source does not.
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

// sameVersion is true also where one has none.
func (s seen) sameVersion(other seen) bool {
	return s.version == other.version || s.version == "" || other.version == ""
}

// life is what a reconciliation knows of its object beyond what the source says.
type life struct {
	// seen is what the reconciliation is computed from.
	seen seen

	mu sync.Mutex
	// live is true when what was seen has been confirmed in this reconciliation.
	live bool
	// newer is the object as it is, if that is newer, and endReason is why the reconciliation ends without another one.
	newer     any
	endReason string
}

type lifeKey struct{}

// answer is a context value: the state that the other side of the source answered with just now, or about.
type answer struct {
	framework *Framework
	key       informer.Key
	seen      seen
}

type answerKey struct{}

// answered returns a context in which a reconciliation of the object has confirmed it already.
func (f *Framework) answered(ctx context.Context, key informer.Key, obj any) context.Context {
	return context.WithValue(ctx, answerKey{}, answer{f, key, seenOf(obj)})
}

// beginLife returns a reconciliation, yet to be filled in, that knows what it is computed from where somebody can be asked.
func (f *Framework) beginLife(ctx context.Context, key informer.Key, obj any) *reconciliation {
	if f.live == nil {
		return &reconciliation{}
	}
	both := &struct {
		reconciliation
		life
	}{}
	l := &both.life
	both.reconciliation.life, l.seen = l, seenOf(obj)
	a, ok := ctx.Value(answerKey{}).(answer)
	l.live = ok && a == answer{f, key, l.seen}
	return &both.reconciliation
}

// wrote notes the answer to a write of the object, from which the reconciliation is computed then.
func (r *reconciliation) wrote(obj any) {
	if r.life != nil {
		r.life.seen, r.life.live = seenOf(obj), true
		r.in.confirmed.Set(r.key, r.life.seen)
	}
}

func (r *reconciliation) confirm(ctx context.Context, action plan.Action) (on bool, err error) {
	l, f := r.life, r.in
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.newer != nil || l.endReason != "":
		return false, nil
	case l.live, action == plan.Create && !f.usesFinalizer():
		return true, nil
	case action != plan.Delete && r.event == updateEvent && (f.isCurrent(r.key, l.seen) || f.census.take(ctx, f) && f.isCurrent(r.key, l.seen)):
		return true, nil
	}
	now, exists, err := f.live.GetLive(ctx, r.key)
	if err != nil {
		return false, fmt.Errorf("look for %s before acting for it: %w", keyString(r.key), err)
	}
	switch f.judge(r.event, r.key, l.seen, now, exists) {
	case distrusted:
		return false, fmt.Errorf("look for %s before acting for it: %w", keyString(r.key), errOlderAnswer)
	case replaced:
		l.endReason = reasonReplaced
		return false, nil
	case changed:
		l.newer = now
	case confirmed:
		l.live = true
	}
	if exists && l.seen.sameLife(seenOf(now)) {
		f.confirmed.Set(r.key, seenOf(now))
	}
	return l.live, nil
}

// errOlderAnswer is what a server lags with, or a proxy that answers for it.
var errOlderAnswer = errors.New("the answer is older than what was seen before")

// verdict says what a live object means for a reconciliation.
type verdict string

const (
	// confirmed: it goes on.
	confirmed verdict = "confirmed"
	// changed: it begins anew with the live object.
	changed verdict = "changed"
	// replaced: the object is gone, or it is another one that lives. The source has yet to tell.
	replaced verdict = "replaced"
	// distrusted: the answer can't be true.
	distrusted verdict = "distrusted"
)

// judge compares what a reconciliation is computed from with the live object.
func (f *Framework) judge(e event, key informer.Key, s seen, now any, exists bool) verdict {
	live := seenOf(now)
	same := exists && s.sameLife(live)
	switch {
	case same && live.isOlder(s):
		return distrusted
	case e == updateEvent && !same, e == deleteEvent && exists && !same && f.mayOwn(key, s, now):
		return replaced
	case e == updateEvent && !s.sameVersion(live):
		return changed
	case e == deleteEvent && same && !beingDeleted(now):
		return distrusted
	}
	return confirmed
}

// mayOwn tells whether the object that lives now under the name of another one may have things already, which the deletion of the
// other one must not take away. It has none when nobody has reconciled it: when the other one lived while the framework ran,
// which has not come to its successor, or when the successor has no finalizer.
func (f *Framework) mayOwn(key informer.Key, gone seen, now any) bool {
	return !f.hasConfirmed(key, gone) && (!f.usesFinalizer() || f.hasFinalizer(now))
}

// hasConfirmed tells whether it is known that the object lived while the framework ran.
func (f *Framework) hasConfirmed(key informer.Key, s seen) bool {
	known, ok := f.confirmed.Get(key)
	return ok && known.uid == s.uid
}

// isCurrent tells whether it is known that the object lived while the framework ran, and nothing newer of it than what was seen.
func (f *Framework) isCurrent(key informer.Key, s seen) bool {
	known, ok := f.confirmed.Get(key)
	return ok && known.uid == s.uid && !s.isOlder(known)
}

// isBehind tells whether a state is older than the one in which the object, or another one of its name, was confirmed.
func (f *Framework) isBehind(key informer.Key, obj any) bool {
	known, ok := f.confirmed.Get(key)
	return ok && seenOf(obj).isOlder(known)
}

// forget ends what is remembered of an object that is gone.
func (f *Framework) forget(key informer.Key, gone seen) {
	if f.hasConfirmed(key, gone) {
		f.confirmed.Delete(key)
	}
}

// concluded returns the result of a reconciliation that has ended with res, with what its confirmation means for that.
func (r *reconciliation) concluded(res result) result {
	l := r.life
	if l == nil {
		return res
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.newer != nil:
		return result{reconciliation: r, outcome: Ignored, reason: reasonOutdated, newer: l.newer}
	case l.endReason != "":
		return result{reconciliation: r, outcome: Waiting, reason: l.endReason}
	case r.event == deleteEvent && res.outcome == Succeeded:
		r.in.forget(r.key, l.seen)
	}
	return res
}

// reconcileCurrent reconciles the object that the source holds under the key, and once more as it is now if that turns out to be old.
func (f *Framework) reconcileCurrent(ctx context.Context, e *waiting, start time.Duration) result {
	res := f.reconcileStored(ctx, e.Key)
	start = f.metrics.reconciled(res, start)
	if res.newer != nil {
		f.observe(e.Key, res, e, 0)
		res = f.reconcileLive(ctx, e.Key, res.newer)
		f.metrics.reconciled(res, start)
	}
	return res
}

// reconcileAhead reconciles the object as it is where the source reads from, because the source is behind of what is known of it.
func (f *Framework) reconcileAhead(ctx context.Context, key informer.Key) result {
	now, exists, err := f.live.GetLive(ctx, key)
	if err == nil && exists && f.isBehind(key, now) {
		err = errOlderAnswer
	}
	switch {
	case err != nil:
		return result{outcome: Failed, err: fmt.Errorf("read %s past source %q, which is behind: %w", keyString(key), f.source.Name(), err)}
	case !exists:
		return result{outcome: Waiting, reason: reasonReplaced}
	}
	return f.reconcileLive(ctx, key, now)
}

// reconcileLive reconciles an object that was read past the source, unless the source does not select it any more, which it will tell.
func (f *Framework) reconcileLive(ctx context.Context, key informer.Key, now any) result {
	if selector, ok := f.live.(informer.LiveSelector); ok {
		selected, err := selector.SelectsLive(ctx, now)
		if err != nil {
			return result{outcome: Failed, err: fmt.Errorf("look whether %s is selected: %w", describe(now, key), err)}
		}
		if !selected {
			return result{outcome: Waiting, reason: reasonUnselected}
		}
	}
	return f.reconcileObject(f.answered(ctx, key, now), key, now)
}

// conflicting makes a conflict of a result after which the reconciliation has to begin anew, for those who look after that themselves.
func (f *Framework) conflicting(s subject, res result) result {
	if res.newer == nil && res.reason != reasonReplaced {
		return res
	}
	res.outcome, res.reason = Failed, ""
	res.err = apierrors.NewConflict(schema.GroupResource{Resource: f.source.Name()}, keyString(s.key), ErrOutdated)
	return res
}

// liveOf returns an object that the source holds as it is now, or an error that wraps ErrPlanChanged if it is gone.
func (f *Framework) liveOf(ctx context.Context, key informer.Key, obj any) (any, error) {
	if f.live == nil {
		return obj, nil
	}
	now, exists, err := f.live.GetLive(ctx, key)
	switch {
	case err != nil:
		return nil, fmt.Errorf("look for %s: %w", keyString(key), err)
	case !exists || !seenOf(obj).sameLife(seenOf(now)):
		return nil, fmt.Errorf("plan of %s: %w: it is gone", keyString(key), ErrPlanChanged)
	case seenOf(now).isOlder(seenOf(obj)):
		return nil, fmt.Errorf("look for %s: %w", keyString(key), errOlderAnswer)
	}
	return now, nil
}
