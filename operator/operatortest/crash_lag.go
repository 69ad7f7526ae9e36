package operatortest

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// lags are those of the lives of an operator in a run. All methods may be called on nil: then nothing lags.
type lags struct {
	phases  []Phase
	changes *changes
	witness *witness

	mu     sync.Mutex
	epochs []int64    // the resource version before the user's part of each phase so far
	then   func(*Lag) // what the next life begins with; nil for the truth
}

// next returns the lag of the next life.
func (l *lags) next() *Lag {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	lag := NewLag()
	lag.changes, lag.witness = l.changes, l.witness
	if l.then != nil {
		l.then(lag)
		l.then = nil
	}
	return lag
}

// meet has a mishap happen to the lag of a life, or to that of the next one, and returns what it does in particular.
func (l *lags) meet(point runPoint, lag *Lag) (detail string) {
	if l == nil {
		return ""
	}
	switch point.mishap {
	case RestartBehind:
		n := 1 + point.n%4
		version := l.changes.before(n)
		l.begin(func(lag *Lag) { lag.GoBackTo(version) })
		return fmt.Sprintf("%d changes back", n)
	case RestartInThePast:
		version, phase := l.epoch(point.n % 2)
		l.begin(func(lag *Lag) { lag.GoBackTo(version) })
		return fmt.Sprintf("before phase %q", phase)
	case RestartWarm:
		n := 1 + point.n%4
		version := l.changes.before(n)
		l.begin(func(lag *Lag) { lag.Warm(version) })
		return fmt.Sprintf("%d changes back", n)
	case EventsHeld:
		lag.Hold(nil)
	case EventsReordered:
		watched := lag.watched()
		if len(watched) == 0 {
			return "nothing is watched"
		}
		kind := watched[point.n%len(watched)]
		lag.Hold(func(r Request) bool { return r.resource() == kind })
		return kind
	case EventsDropped:
		lag.Drop(nil)
	case EventsRepeated:
		lag.Repeat(nil)
	case WatchesRefused:
		lag.Refuse(Answer(apierrors.NewResourceExpired("injected fault")), TooManyRequests(0), InternalError())
	case CrashBefore, CrashAfter, AnswerLost, AnswerNotFound, AnswerConflict, AnswerInternalError, TenantMeddles:
	}
	return ""
}

func (l *lags) begin(then func(*Lag)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.then = then
}

// epoch returns the resource version before the user's part of the phase that is under way, or of an earlier one where there is one.
func (l *lags) epoch(earlier int) (version int64, phase string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.epochs) == 0 {
		return 0, l.phases[0].Name
	}
	i := max(0, len(l.epochs)-1-earlier)
	return l.epochs[i], l.phases[i].Name
}

// beginLags notes the state of the world before a phase, to go back to it.
func (r *crashRun) beginLags(ctx context.Context, phase int) error {
	version, err := r.version(ctx)
	if err != nil {
		return fmt.Errorf("before a phase: %w", err)
	}
	l := r.operator.lags
	l.witness.begin(phase)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.epochs = append(l.epochs, version)
	return nil
}

// version is the resource version of now.
func (r *crashRun) version(ctx context.Context) (int64, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMapList"})
	if err := r.user.List(ctx, list, client.InNamespace(r.namespace), client.Limit(1)); err != nil {
		return 0, fmt.Errorf("look up the resource version: %w", err)
	}
	version, err := strconv.ParseInt(list.ResourceVersion, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("the resource version is no number: %w", err)
	}
	return version, nil
}

// hasCaughtUp has the API server catch up once the operator has acted on what it shows: it writes nothing more, or not for long. It tells whether it
// has caught up before.
func (r *crashRun) hasCaughtUp(quiet time.Duration) bool {
	lag := r.operator.lag()
	if lag == nil || !lag.Lags() {
		r.lagged = time.Time{}
		return true
	}
	if r.lagged.IsZero() {
		r.lagged = time.Now()
	}
	if quiet >= r.scenario.Settle || time.Since(r.lagged) >= 2*patience*r.scenario.Settle {
		lag.Release()
	}
	return false
}

// lag is that of the life that is up; nil when there is none.
func (o *crashOperator) lag() *Lag {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.life == nil || !o.life.up {
		return nil
	}
	return o.life.lag
}

// restarts are the plans of a sweep with lags that samples are taken of: two for each write.
func restarts(writes int) [][]runPoint {
	all := make([][]runPoint, 0, 2*writes)
	for n := 1; n <= writes; n++ {
		all = append(all, []runPoint{{RestartBehind, 1, n}}, []runPoint{{RestartInThePast, 1, n}})
	}
	return all
}

// eventLags are what may happen to watches.
var eventLags = []Mishap{EventsHeld, EventsDropped, EventsRepeated, EventsReordered, WatchesRefused}

// lagPlans are the runs of a sweep with lags: all of them, or a sample.
func lagPlans(writes int, scenario Scenario, seed uint64) [][]runPoint {
	all := restarts(writes)
	if scenario.Sample {
		all = sample(all, seed)
		for i := 1; i < len(all)-1; i++ {
			n := all[i][0].n
			turn := int((seed + uint64(i)) % uint64(len(eventLags))) //nolint:gosec // both are small
			switch {
			case i%3 == 2:
				all[i] = []runPoint{{RestartWarm, 1, n}}
			case n > 1:
				all[i] = []runPoint{{eventLags[turn], 1, 1 + turn%(n-1)}, all[i][0]}
			}
		}
	} else {
		for n := 1; n <= writes; n++ {
			turn := int((seed + uint64(n)) % uint64(len(eventLags))) //nolint:gosec // both are small
			all = append(all, []runPoint{{RestartWarm, 1, n}}, []runPoint{{eventLags[turn], 1, n}})
		}
	}
	return all
}

// without leaves mishaps out of plans, and plans that have none left.
func without(plans [][]runPoint, mishaps []Mishap) [][]runPoint {
	for i, plan := range plans {
		plans[i] = slices.DeleteFunc(plan, func(p runPoint) bool { return slices.Contains(mishaps, p.mishap) })
	}
	return slices.DeleteFunc(plans, func(plan []runPoint) bool { return len(plan) == 0 })
}
