package framework

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/operatorkit/operatorkit/context/reconciliationcanceledcontext"
	"github.com/operatorkit/operatorkit/context/requeuecontext"
	"github.com/operatorkit/operatorkit/context/resourcecanceledcontext"
	"github.com/operatorkit/operatorkit/context/secretscontext"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/internal/jitter"
)

const (
	// fightTimes is how often a change is applied and found undone within fightWindow before it is
	// a fight.
	fightTimes  = 5
	fightWindow = 10 * time.Minute
	// fightPause is the first pause of a fight. Each next one is twice as long, up to maxFightPause.
	fightPause    = time.Minute
	maxFightPause = time.Hour
	// maxKeptChanges limits the changes that are remembered for one object.
	maxKeptChanges = 1000
)

// fights is a [Policy] that holds changes which are undone again and again. As an observer it sees
// which changes were applied.
type fights struct {
	unobserved
	framework *Framework
	seed      maphash.Seed
	// managers returns the other managers of the fields of an object. Nil knows none.
	managers func(ctx context.Context, resource string, object plan.Object, fields []string) []string

	mu sync.Mutex
	// passed has the times of the last runs with changes, by their hashes. An entry is small, because
	// a start makes one for every object.
	passed  map[uint64]time.Time
	objects map[informer.Key]*changedObject
	// swept is the time of the last sweep.
	swept time.Time
}

// changedObject has the recent changes for one state of a reconciled object. Another state starts
// over.
type changedObject struct {
	objectState
	changes map[place]*appliedChange
}

type objectState struct {
	uid        types.UID
	generation int64
}

// run identifies the runs of a resource for one state of an object.
type run struct {
	key      informer.Key
	resource string
	objectState
}

// place is what a change is about: a field, or the existence of an object.
type place struct {
	resource, path string
	object         plan.Object
}

// proposedChange is a part of a proposal. The value is the hash of what is there afterwards: it may
// be a secret. A value that is not known has another hash each time.
type proposedChange struct {
	place
	value  uint64
	action plan.Action
}

// appliedChange is a change that was applied to a place. Another value there starts over.
type appliedChange struct {
	value uint64
	// at are the last times of its application, 1 to fightTimes.
	at []time.Time
	// fight is nil unless the change is in one. Fields that were undone together share it.
	fight *Fight
}

func newFights(f *Framework) *fights {
	return &fights{
		framework: f, seed: maphash.MakeSeed(), passed: map[uint64]time.Time{}, objects: map[informer.Key]*changedObject{},
	}
}

// Admit implements [Policy].
func (f *fights) Admit(ctx context.Context, p Proposal) Verdict {
	s := scopeOf(ctx)
	nested := !p.plain && (!s.crud || s.resource != p.Resource)
	if nested || s.concludes || p.Opaque || p.Event == plan.DeleteEvent || !p.plain && p.parts == 0 {
		return Go()
	}
	run := run{s.reconciliation.key, s.resource, stateOf(p.Object)}
	now, within := time.Now(), fightWindow
	if p.plain {
		within = fightWindow / fightTimes
	}
	if !f.recurs(run, now, within) {
		return Go()
	}
	var changes []plan.Change
	err := recoveredIn(ctx, func(context.Context) (err error) {
		changes, err = p.Changes()
		return err
	})
	if err != nil || len(changes) == 0 {
		return Go()
	}
	s.proposed = f.split(s.resource, changes)
	s.requeued, _ = requeuecontext.After(ctx)
	started, held := f.judge(s, run, now)
	asking, cancel := context.WithTimeout(ctx, managersTimeout)
	defer cancel()
	for _, of := range started {
		f.report(asking, of)
	}
	if held == nil {
		return Go()
	}
	requeuecontext.SetAfter(ctx, held.Next.Sub(now))
	reason := fmt.Sprintf("the change is undone again and again: %s; next try at %s",
		held.subject(), held.Next.Format(time.RFC3339))
	return Hold(secretscontext.Scrub(ctx, reason))
}

// recurs reports whether a resource passes the gate again within a time. The changes of a first pass
// are not described: a start costs nothing. A [Planner] is described only if it runs so often that
// its changes can be a fight, because its plan may send requests.
func (f *fights) recurs(r run, now time.Time, within time.Duration) bool {
	hash := maphash.Comparable(f.seed, r)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sweep(now)
	if o := f.objects[r.key]; o != nil && o.objectState != r.objectState {
		delete(f.objects, r.key)
	}
	last, passed := f.passed[hash]
	f.passed[hash] = now
	return passed && now.Sub(last) <= within
}

func stateOf(obj any) (state objectState) {
	state.uid = uidOf(obj)
	if g, ok := obj.(interface{ GetGeneration() int64 }); ok && !isNil(obj) {
		state.generation = g.GetGeneration()
	}
	return state
}

// split returns the parts of changes. Only updates count with their values.
func (f *fights) split(resource string, changes []plan.Change) (parts []proposedChange) {
	for _, c := range changes {
		c = c.Bare()
		c.Object.UID = ""
		fields := c.Fields
		if c.Action != plan.Update || len(fields) == 0 {
			fields = []plan.FieldChange{{New: c.Action}}
		}
		for _, field := range fields {
			value := rand.Uint64()
			if encoded, err := json.Marshal(field.New); err == nil && !field.Sensitive {
				value = maphash.Bytes(f.seed, encoded)
			}
			parts = append(parts, proposedChange{place{resource, field.Path, c.Object}, value, c.Action})
		}
	}
	return parts
}

// judge compares the proposed changes with the applied ones. It returns the fights that start, and,
// if all changes are paused, the fight that is tried next.
func (f *fights) judge(s *scope, r run, now time.Time) (started []*Fight, held *Fight) {
	hash := maphash.Comparable(f.seed, r)
	f.mu.Lock()
	defer f.mu.Unlock()
	o := f.objects[r.key]
	if o == nil {
		o = &changedObject{r.objectState, map[place]*appliedChange{}}
		f.objects[r.key] = o
	}
	paused, next := true, (*Fight)(nil)
	for _, c := range s.proposed {
		a := o.changes[c.place]
		if !a.isUndone(c, now) {
			paused = false
			continue
		}
		if a.fight == nil {
			i := slices.IndexFunc(started, func(of *Fight) bool { return of.Action == c.action && of.Object == c.object })
			if i < 0 {
				i = len(started)
				started = append(started, &Fight{
					Key: r.key, Resource: r.resource, Action: c.action, Object: c.object, Since: a.at[0], Times: fightTimes - 1, started: now,
				})
			}
			if a.fight = started[i]; c.path != "" {
				a.fight.Fields = append(a.fight.Fields, s.reconciliation.secrets.Scrub(c.path))
				slices.Sort(a.fight.Fields)
			}
		}
		a.fight.undone(now, a.at[len(a.at)-1])
		f.passed[hash] = now.Add(2 * a.fight.pause()) // It is described until the fight is over.
		paused = paused && now.Before(a.fight.Next)
		if next == nil || a.fight.Next.Before(next.Next) {
			next = a.fight
		}
	}
	if paused {
		held = next
	}
	return started, held
}

// isUndone reports whether a change that is proposed again is in a fight, or starts one.
func (a *appliedChange) isUndone(c proposedChange, now time.Time) bool {
	if a == nil || a.value != c.value {
		return false
	}
	if a.fight != nil && a.fight.over(now) {
		a.fight = nil
	}
	return a.fight != nil || len(a.at) == fightTimes && now.Sub(a.at[0]) <= fightWindow
}

// undone records that the change of a fight, which was last applied at that time, is found undone:
// after a try, or still.
func (f *Fight) undone(now, applied time.Time) {
	f.Last = now
	if !applied.Before(f.Next) {
		f.Times++
		f.Next = now.Add(jitter.Of(f.pause()))
	}
}

// pause is the pause after so many times.
func (f *Fight) pause() time.Duration {
	doubled := min(f.Times-fightTimes, 6) // After 6 times it is more than an hour.
	return min(fightPause<<doubled, maxFightPause)
}

// over reports whether the change has not been found undone for long enough.
func (f *Fight) over(now time.Time) bool { return now.Sub(f.Last) > fightWindow+2*f.pause() }

// held implements observer: what is held is not applied.
func (f *fights) held(s *scope, _ string) { s.proposed = nil }

// actionOf is what the steps of resources apply. The whole run of a plain resource applies all of
// its changes.
var actionOf = map[Step]plan.Action{
	StepApplyCreateChange: plan.Create,
	StepApplyUpdateChange: plan.Update,
	StepApplyDeleteChange: plan.Delete,
	StepEnsureCreated:     "",
}

// stepEnded implements observer. It remembers the changes that were applied. A resource that
// cancels itself or asks for a requeue while it applies them is not done: the next try continues.
func (f *fights) stepEnded(s *scope, e endedStep) {
	action, applies := actionOf[e.Step]
	after, _ := requeuecontext.After(s)
	if !applies || after != s.requeued || len(s.proposed) == 0 || action == "" && s.crud || e.err != nil || e.Resource != s.resource ||
		resourcecanceledcontext.IsCanceled(s) || reconciliationcanceledcontext.IsCanceled(s) {
		return
	}
	f.apply(s, action, time.Now())
}

// apply remembers the application of the proposed changes of an action; none is all.
func (f *fights) apply(s *scope, action plan.Action, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	o := f.objects[s.reconciliation.key]
	if o == nil {
		return // The object was given away meanwhile.
	}
	for _, c := range s.proposed {
		a := o.changes[c.place]
		switch {
		case action != "" && c.action != action, a == nil && len(o.changes) >= maxKeptChanges:
			continue
		case a == nil || a.value != c.value:
			a = &appliedChange{value: c.value}
			o.changes[c.place] = a
		}
		a.at = append(slices.Clone(a.at[max(0, len(a.at)-fightTimes+1):]), now)
	}
}

// ended implements observer.
func (f *fights) ended(e ended) {
	if e.reason == reasonGone {
		f.forget(e.key)
	}
}

// forget forgets the changes for an object.
func (f *fights) forget(key informer.Key) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.objects, key)
}

// keys returns the objects with remembered changes.
func (f *fights) keys() []informer.Key {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Collect(maps.Keys(f.objects))
}

// sweep forgets what is too old to matter, once in a window. The mutex is held.
func (f *fights) sweep(now time.Time) {
	if now.Sub(f.swept) < fightWindow {
		return
	}
	f.swept = now
	isOld := func(at time.Time) bool { return now.Sub(at) > fightWindow }
	maps.DeleteFunc(f.passed, func(_ uint64, at time.Time) bool { return isOld(at) })
	maps.DeleteFunc(f.objects, func(_ informer.Key, o *changedObject) bool {
		maps.DeleteFunc(o.changes, func(_ place, a *appliedChange) bool {
			return isOld(a.at[len(a.at)-1]) && (a.fight == nil || a.fight.over(now))
		})
		return len(o.changes) == 0
	})
}
