package framework

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/operatorkit/operatorkit/informer"
)

// Activity is the current work of a worker.
type Activity struct {
	// Key is the key of the object.
	Key informer.Key
	// Resource and Step are the step in progress. They are empty between two steps.
	Resource string
	Step     Step
	// For is the time since the step started. Stuck is the same time, but it restarts when an
	// intended wait (see BeginWait) ends or reaches its limit. It is 0 during such a wait.
	For, Stuck time.Duration
	// Shadow is true for a comparison with shadows.
	Shadow bool
}

// String describes the activity for people.
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

// Activities returns what the busy workers are doing. It may be called at any time and is cheap.
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

// activities are the activities of all workers of a framework.
type activities struct {
	mu sync.Mutex
	// workers only grows.
	workers []*activity
}

// workers tells the worker of a reconciliation, if any, what it is doing.
type workers struct{ unobserved }

func (workers) began(r *reconciliation) { r.activity.carryOut(r) }

func (workers) stepBegan(s *scope, info StepInfo, at time.Duration) {
	s.reconciliation.activity.enter(info, at)
}

func (workers) stepEnded(s *scope, e endedStep) {
	s.reconciliation.activity.leave(e.StepInfo, e.start+e.took)
}

func (workers) ended(e ended) {
	if e.reconciliation != nil {
		e.reconciliation.activity.carryOut(nil)
	}
}

type activityKey struct{}

// add registers a new worker. The returned context carries the activity of the worker.
func (a *activities) add(ctx context.Context, shadow bool) (context.Context, *activity) {
	worker := &activity{}
	worker.doing.Shadow = shadow
	a.mu.Lock()
	defer a.mu.Unlock()
	a.workers = append(a.workers, worker)
	return context.WithValue(ctx, activityKey{}, worker), worker
}

// activityOf returns the activity of the worker of a context, or nil.
func activityOf(ctx context.Context) *activity {
	worker, _ := ctx.Value(activityKey{}).(*activity)
	return worker
}

// activity is the current work of one worker. Its methods do nothing for nil.
type activity struct {
	mu    sync.Mutex
	busy  bool
	doing Activity
	// steps are the steps in progress, the innermost last.
	steps []StepInfo
	since time.Duration
	// waits counts the intended waits in progress. until is the latest of their limits. resumed is
	// when such a wait last ended.
	waits          int
	until, resumed time.Duration
	// reconciliation is the reconciliation in progress. It is nil between two.
	reconciliation *reconciliation
	// why and waited are recorded only with tracing.
	why    *waiting
	waited time.Duration
}

// begin records that the worker starts on an object.
func (a *activity) begin(key informer.Key, now time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.busy, a.since, a.steps = true, now, a.steps[:0]
	a.doing.Key = key
}

// carryOut records the start of a reconciliation, or its end if r is nil.
func (a *activity) carryOut(r *reconciliation) {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.reconciliation = r
}

// broke returns the result of a worker that an error interrupted.
func (a *activity) broke(key informer.Key, err error) result {
	a.mu.Lock()
	defer a.mu.Unlock()
	if step := a.step(); step.Resource != "" {
		err = &StepError{Resource: step.Resource, Step: step.Step, Err: err}
	}
	if a.reconciliation == nil {
		return result{outcome: Failed, err: fmt.Errorf("reconcile %s: %w", keyString(key), err)}
	}
	return result{reconciliation: a.reconciliation, outcome: Failed, err: a.reconciliation.errorf("%w", err)}
}

// end records that the worker has finished with an object.
func (a *activity) end() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.busy, a.why = false, nil
}

// enter records that the worker starts a step.
func (a *activity) enter(info StepInfo, now time.Duration) {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.steps, a.since = append(a.steps, info), now
}

// leave records that a step has ended. Authors may run steps at the same time.
func (a *activity) leave(info StepInfo, now time.Duration) {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for i := len(a.steps) - 1; i >= 0; i-- {
		if a.steps[i] == info {
			a.steps, a.since = slices.Delete(a.steps, i, i+1), now
			return
		}
	}
}

// step returns the innermost step.
func (a *activity) step() (info StepInfo) {
	if len(a.steps) > 0 {
		info = a.steps[len(a.steps)-1]
	}
	return info
}

// read returns the activity, and whether the worker is busy.
func (a *activity) read(now time.Duration) (Activity, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	doing, free := a.doing, max(a.since, a.resumed)
	step := a.step()
	doing.Resource, doing.Step = step.Resource, step.Step
	if a.waits > 0 {
		free = max(free, min(now, a.until))
	}
	doing.For, doing.Stuck = now-a.since, now-free
	return doing, a.busy
}

// BeginWait declares that the step of ctx waits on purpose, until end is called but at most for
// limit, for example while a new version is watched. Such a worker is not stuck (Activity.Stuck),
// so an operator's /healthz does not have it restarted. A step may wait for several things at once.
// Each end ends its own wait; further calls of it do nothing. Outside a step that a Framework runs,
// BeginWait does nothing.
func BeginWait(ctx context.Context, limit time.Duration) (end func()) {
	s, worker := scopeOf(ctx), activityOf(ctx)
	if s == nil || worker == nil || s.reconciliation.framework == nil {
		return func() {}
	}
	now := s.reconciliation.framework.metrics.now
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

// stillRunning is the error of a Run that returns while something it started still runs.
func (f *Framework) stillRunning(what ...string) error {
	return fmt.Errorf("%w %s after its context was cancelled: %s: return when the context ends",
		ErrStillRunning, f.config.CancelTimeout, strings.Join(what, "; "))
}

// endedWithin waits until a group has ended, at most for d, and reports whether it has.
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
