package operatortest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

const (
	// patience is how many times Settle an operator may be silent that has not asked the API server for anything yet.
	patience = 5
	// grace is how many times Settle an operator has to mend a state that is not the expected one, counted from the last change: only runs
	// that fail take so long, and on a busy machine an operator that begins anew may be silent for seconds.
	grace = 20
)

// crashRun is a scenario gone through once.
type crashRun struct {
	*sweep
	plan      []runPoint
	namespace string
	operator  *crashOperator
	neighbour *crashOperator // nil when there is none
	recovered int            // after how many mishaps a phase came to its end
	lagged    time.Time      // since when the server lags behind; zero when it does not
}

// runResult is how far a run came and what it saw.
type runResult struct {
	states    []snapshot // of each phase that came to its end
	counts    []int      // the first life's writes at the end of each phase
	writes    []Write    // the first life's
	met       []Point    // the mishaps that there were
	deeds     []deed     // where the sweep has lags
	wrong     int        // how many of those are wrong
	converged bool       // all phases came to their end
	failure   *Failure
}

// play goes through the scenario. An error means that the run says nothing about
// the operator: ctx ended, or the API server did not do its part.
func (s *sweep) play(ctx context.Context, plan []runPoint) (result runResult, err error) {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "crash-"}}
	if err := s.user.Create(ctx, namespace); err != nil {
		return result, fmt.Errorf("create a namespace for a run: %w", err)
	}
	r := &crashRun{sweep: s, plan: plan, namespace: namespace.Name}
	r.operator = newCrashOperator(s.scenario, s.configOf(theOperator, r.namespace), r.namespace, plan)
	r.operator.tenant = func() error { return s.scenario.Tenant(ctx, s.user, r.namespace) }
	if s.lags {
		r.operator.lags = &lags{phases: s.scenario.Phases, changes: &changes{}, witness: newWitness(r.namespace)}
	}
	r.operator.run(ctx)
	if s.scenario.Neighbour != nil {
		beside := s.scenario
		beside.Start = r.startNeighbour
		r.neighbour = newCrashOperator(beside, s.configOf(theNeighbour, r.namespace), r.namespace, nil)
		r.neighbour.run(ctx)
	}
	first := r.operator.firstFaults
	defer func() {
		r.operator.stop()
		if r.neighbour != nil {
			r.neighbour.stop()
		}
		result.writes = first.Writes()
		result.met = r.operator.mishaps()
		result.failure = s.trespassed(r.namespace, result.failure)
		if r.operator.lags != nil {
			result.deeds = r.operator.lags.witness.seen()
			result.failure, result.wrong = s.wronged(result)
		}
		err = errors.Join(err, s.cleanUp(ctx, namespace))
	}()

	for i, phase := range s.scenario.Phases {
		state, failure := r.phase(ctx, i)
		if failure == nil && ctx.Err() == nil && s.afterPhase != nil {
			failure = s.afterPhase(ctx, r, phase)
		}
		if ctx.Err() != nil {
			return result, ctx.Err()
		}
		if failure != nil {
			failure.Phase = phase.Name
			result.failure = failure
			return result, nil
		}
		result.states = append(result.states, state)
		result.counts = append(result.counts, first.Count())
	}
	result.converged = true
	return result, nil
}

// startNeighbour runs the neighbour, once it may come. Until then no state is final, as its progress is not seen.
func (r *crashRun) startNeighbour(ctx context.Context, cfg *rest.Config, namespace string) error {
	for r.scenario.NeighbourAfter != nil && r.scenario.NeighbourAfter(ctx, r.user, namespace) != nil {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(firstPause):
		}
	}
	return r.scenario.Neighbour(ctx, cfg, namespace)
}

// trespassed adds to a failure, which may be nil, what one of the two operators did to what is the other's.
func (s *sweep) trespassed(run string, failure *Failure) *Failure {
	trespasses := s.ledger.of(run)
	if len(trespasses) == 0 {
		return failure
	}
	if failure == nil {
		failure = &Failure{Phase: s.scenario.Phases[len(s.scenario.Phases)-1].Name}
	} else {
		trespasses = append(trespasses, failure.Reason)
	}
	failure.Reason = strings.Join(trespasses, "; ")
	return failure
}

// wronged adds to the failure of a run, which may be nil, what the operator wrote that no end of it makes good, and counts that.
func (s *sweep) wronged(result runResult) (*Failure, int) {
	if s.expected == nil {
		return result.failure, 0
	}
	deeds := wrong(slices.Clone(result.deeds), s.calm, s.expected, s.user.RESTMapper())
	if len(deeds) == 0 {
		return result.failure, 0
	}
	texts := make([]string, len(deeds))
	for i, d := range deeds {
		texts[i] = d.String()
	}
	failure := &Failure{Phase: s.scenario.Phases[deeds[0].phase].Name}
	if result.failure != nil {
		failure = result.failure
		texts = append(texts, failure.Reason)
	}
	failure.Reason = strings.Join(texts, "; ")
	return failure, len(deeds)
}

// phase does the user's part of a phase and waits for what comes of it.
func (r *crashRun) phase(ctx context.Context, i int) (snapshot, *Failure) {
	phase := r.scenario.Phases[i]
	if r.operator.lags != nil {
		if err := r.beginLags(ctx, i); err != nil {
			return snapshot{}, &Failure{Reason: err.Error()}
		}
	}
	if phase.Do != nil {
		if err := phase.Do(ctx, r.user, r.namespace); err != nil {
			return snapshot{}, &Failure{Reason: fmt.Sprintf("the user's part failed: %v", err)}
		}
	}

	timer := time.NewTimer(r.scenario.Timeout)
	defer timer.Stop()
	var l looks
	for {
		switch r.lookWhenDue(ctx, i, &l) {
		case stateFinal:
			return l.state, nil
		case stateWrong:
			return snapshot{}, &Failure{
				Reason: fmt.Sprintf("the state is another than without a mishap, and has not changed for %s", l.quiet.Round(time.Millisecond)),
				Diff:   r.expected[i].diff(l.state),
			}
		case stateOpen:
		}
		paused := time.Now()
		select {
		case <-time.After(firstPause):
			l.calm.overslept(paused)
		case <-ctx.Done():
			return snapshot{}, nil
		case err := <-r.operator.failed:
			return snapshot{}, &Failure{Reason: err.Error()}
		case err := <-r.neighbourFailed():
			return snapshot{}, &Failure{Reason: fmt.Sprintf("the neighbour: %v", err)}
		case <-timer.C:
			return snapshot{}, &Failure{Reason: fmt.Sprintf("did not converge within %s: %v", r.scenario.Timeout, r.why(l.missing))}
		}
	}
}

// looks are what a run has seen in a phase.
type looks struct {
	calm     calm
	progress progress
	due      time.Time // of the next look
	pause    time.Duration

	state   snapshot
	missing error // what the state lacks still
	quiet   time.Duration
}

// lookWhenDue looks at the state when an operator has done something, and else more and more seldom: a look lists all objects.
func (r *crashRun) lookWhenDue(ctx context.Context, i int, l *looks) verdict {
	if now := r.progress(); time.Now().Before(l.due) && (now == l.progress || now.busy) {
		return stateOpen
	}
	l.progress = r.progress()
	met := len(r.operator.mishaps())
	began := time.Now()
	l.state, l.missing = r.look(ctx, r.scenario.Phases[i])
	l.calm.overslept(began) // an API server that takes its time with us does so with the operator
	l.quiet = l.calm.since(r.progress(), l.state.text)
	l.pause = min(2*l.pause, r.scenario.Settle/2)
	if l.quiet < firstPause {
		l.pause = firstPause
	}
	l.due = time.Now().Add(l.pause)
	if !r.hasCaughtUp(l.quiet) || l.missing != nil {
		return stateOpen
	}
	verdict := r.judge(i, l.state, met, l.quiet)
	if verdict == stateFinal {
		r.recovered = met
	}
	return verdict
}

// progress is that of the operator and its neighbour.
func (r *crashRun) progress() progress {
	p := r.operator.progress()
	if r.neighbour != nil {
		beside := r.neighbour.progress()
		p.writes += beside.writes
		p.busy = p.busy || beside.busy
		p.seen = p.seen && beside.seen
	}
	return p
}

// neighbourFailed has an error when the neighbour ended by itself.
func (r *crashRun) neighbourFailed() <-chan error {
	if r.neighbour == nil {
		return nil
	}
	return r.neighbour.failed
}

// look returns the state, or what is still missing.
func (r *crashRun) look(ctx context.Context, phase Phase) (snapshot, error) {
	if err := phase.Until(ctx, r.user, r.namespace); err != nil {
		return snapshot{}, err
	}
	state, err := r.snapshots.take(ctx, r.namespace)
	if err != nil {
		return snapshot{}, err
	}
	return state, state.passing
}

func (r *crashRun) why(missing error) error {
	if missing == nil {
		return errors.New("the operator never stopped writing, or never ended")
	}
	return missing
}

type verdict int

const (
	stateOpen verdict = iota
	stateFinal
	stateWrong
)

// judge decides whether a state that the phase's Until accepts is the one that
// counts. Where nothing is known yet about what may follow, a state must stand for
// a while: without a mishap before it, any state; around a mishap, also the expected
// one, since an operator that has just been started may be about to spoil it.
func (r *crashRun) judge(i int, state snapshot, met int, quiet time.Duration) verdict {
	settled := quiet >= r.scenario.Settle
	if r.expected == nil {
		return when(settled, stateFinal)
	}
	if state.text != r.expected[i].text {
		return when(quiet >= grace*r.scenario.Settle, stateWrong)
	}
	// The writes of a phase are waited for, so that the n-th one is the same in each
	// run, and the one to crash at is reached even when it changes nothing.
	pending := len(r.plan) > 0 && met == 0 && (r.plan[0].n <= r.counts[i] || r.operator.firstFaults.Count() < r.counts[i])
	recovering := met > r.recovered
	return when(settled || !pending && !recovering, stateFinal)
}

func when(condition bool, then verdict) verdict {
	if condition {
		return then
	}
	return stateOpen
}

// calm measures for how long nothing has changed. Where a machine is so busy that looks come late, what an operator does is late as well: that
// much is taken off.
type calm struct {
	progress progress
	state    string
	changed  time.Time
	late     time.Duration // of looks since then
}

// overslept notes that a look comes after a pause, which was to be as long as firstPause.
func (c *calm) overslept(paused time.Time) { c.late += max(0, time.Since(paused)-2*firstPause) }

// since returns for how long the operator has been up and done nothing while the
// state stayed the same. A life that has not asked the API server anything yet
// is not calm, it is about to begin; only a long silence counts, as one short of
// what patience allows.
func (c *calm) since(p progress, state string) time.Duration {
	if p != c.progress || state != c.state || !p.up || p.busy {
		c.progress, c.state, c.changed, c.late = p, state, time.Now(), 0
	}
	quiet := time.Since(c.changed) - c.late
	if !p.seen {
		quiet /= patience
	}
	return quiet
}
