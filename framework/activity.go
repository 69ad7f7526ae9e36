package framework

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/operatorkit/operatorkit/informer"
)

// Activity is what a worker is doing.
type Activity struct {
	// Key is that of the object.
	Key informer.Key
	// Resource and Step are what is under way, and empty between two steps.
	Resource string
	Step     Step
	// For is how long that has been under way, and Stuck how long of it without a wait on purpose (see BeginWait): since it began, or
	// since the last such wait ended, or had to.
	For, Stuck time.Duration
	// Shadow is true for a comparison with shadows.
	Shadow bool
}

// String says it for people.
func (a Activity) String() string {
	text := "object " + keyString(a.Key)
	if a.Shadow {
		text = "shadows of " + text
	}
	if a.Resource != "" {
		text += fmt.Sprintf(": resource %q: %s", a.Resource, strings.ReplaceAll(string(a.Step), "_", " "))
	}
	return fmt.Sprintf("%s for %s", text, a.For.Round(time.Millisecond))
}

// Activities tells what the workers are doing that do anything. It may be called at any time, and is cheap.
func (f *Framework) Activities() []Activity {
	f.activities.mu.Lock()
	all := f.activities.workers
	f.activities.mu.Unlock()
	var busy []Activity
	for _, w := range all {
		if a, ok := w.read(f.metrics.now()); ok {
			busy = append(busy, a)
		}
	}
	return busy
}

// activities are what all workers of a framework are doing.
type activities struct {
	mu sync.Mutex
	// workers only grows.
	workers []*activity
}

type activityKey struct{}

// add returns a context by which what a new worker does is known.
func (a *activities) add(ctx context.Context, shadow bool) (context.Context, *activity) {
	worker := &activity{}
	worker.doing.Shadow = shadow
	a.mu.Lock()
	defer a.mu.Unlock()
	a.workers = append(a.workers, worker)
	return context.WithValue(ctx, activityKey{}, worker), worker
}

// activityOf returns that of the worker of a context, or nil.
func activityOf(ctx context.Context) *activity {
	worker, _ := ctx.Value(activityKey{}).(*activity)
	return worker
}

// activity is what one worker is doing. Its methods do nothing for nil.
type activity struct {
	mu    sync.Mutex
	busy  bool
	doing Activity
	since time.Duration
	// waits are how many waits on purpose there are, until is when the last of them is to end, and resumed when one ended last.
	waits          int
	until, resumed time.Duration
	// reconciliation is the one that is under way, and nil between two.
	reconciliation *reconciliation
	// why and waited are noted where there are spans.
	why    *waiting
	waited time.Duration
}

// begin notes that the worker begins with an object.
func (a *activity) begin(key informer.Key, now time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.busy, a.since = true, now
	a.doing.Key, a.doing.Resource, a.doing.Step = key, "", ""
}

// carryOut notes that a reconciliation begins, or with nil that it has ended.
func (a *activity) carryOut(r *reconciliation) {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.reconciliation = r
}

// broke is the result of a worker that was stopped by an error of what it was doing.
func (a *activity) broke(key informer.Key, err error) result {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.doing.Resource != "" {
		err = &StepError{Resource: a.doing.Resource, Step: a.doing.Step, Err: err}
	}
	if a.reconciliation == nil {
		return result{outcome: Failed, err: fmt.Errorf("reconcile %s: %w", keyString(key), err)}
	}
	return result{reconciliation: a.reconciliation, outcome: Failed, err: a.reconciliation.errorf("%w", err)}
}

// end notes that the worker has done with an object.
func (a *activity) end() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.busy, a.why = false, nil
}

// enter notes that the worker begins with a step, and returns the one around it.
func (a *activity) enter(info StepInfo, now time.Duration) (outer StepInfo) {
	if a == nil {
		return StepInfo{}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	outer = StepInfo{Resource: a.doing.Resource, Step: a.doing.Step}
	a.doing.Resource, a.doing.Step, a.since = info.Resource, info.Step, now
	return outer
}

// read tells what the worker is doing, if it does anything.
func (a *activity) read(now time.Duration) (Activity, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	doing, free := a.doing, max(a.since, a.resumed)
	if a.waits > 0 {
		free = max(free, min(now, a.until))
	}
	doing.For, doing.Stuck = now-a.since, now-free
	return doing, a.busy
}

// BeginWait says that the step of ctx waits on purpose from here on, for that long at most, until end is called: such as while a new version
// is watched. A worker that does so is not stuck (Activity.Stuck), for which an operator's /healthz would have it started anew. A step may wait
// for several things at once; each end is of its own wait, and does nothing when it is called again. Outside of a step that a Framework runs,
// BeginWait does nothing.
func BeginWait(ctx context.Context, limit time.Duration) (end func()) {
	s, worker := scopeOf(ctx), activityOf(ctx)
	if s == nil || worker == nil || s.reconciliation.in == nil {
		return func() {}
	}
	now := s.reconciliation.in.metrics.now
	worker.wait(now() + limit)
	return sync.OnceFunc(func() { worker.resume(now()) })
}

func (a *activity) wait(until time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.waits++
	a.until = max(a.until, until)
}

func (a *activity) resume(now time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.waits--
	if a.waits == 0 {
		a.until = 0
	}
	a.resumed = now
}

// stillRunning is the error of a Run that returns without what it started.
func (f *Framework) stillRunning(what ...string) error {
	return fmt.Errorf("%w %s after its context was cancelled: %s: return when the context ends",
		ErrStillRunning, f.config.CancelTimeout, strings.Join(what, "; "))
}

// endedWithin waits until a group has ended, and for d at most.
func endedWithin(group *sync.WaitGroup, d time.Duration) bool {
	ended := make(chan struct{})
	go func() {
		group.Wait()
		close(ended)
	}()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ended:
		return true
	case <-timer.C:
		return false
	}
}
