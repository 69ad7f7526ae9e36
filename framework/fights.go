package framework

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/operatorkit/operatorkit/context/reconciliationcanceledcontext"
	"github.com/operatorkit/operatorkit/context/requeuecontext"
	"github.com/operatorkit/operatorkit/context/resourcecanceledcontext"
	"github.com/operatorkit/operatorkit/context/secretscontext"
	"github.com/operatorkit/operatorkit/framework/internal/keyed"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/internal/cut"
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
	// maxKeptChanges limits the changes that are remembered of one resource for one object.
	maxKeptChanges = 1000
	// managersTimeout limits the time in which managers are found for fights that start at once.
	managersTimeout = 5 * time.Second
	// maxFightFields limits the fields that a text names.
	maxFightFields = 10
	// maxPassed is the size of fights.passed.
	maxPassed = 4096
)

// Fight is a change that a resource has applied five times within ten minutes, and found undone
// each time: by a webhook or another controller, or because a default does not converge. The
// resource pauses between two tries, for a minute at first and for an hour at most.
//
// A field counts with its value: a field that gets another value each time is in no fight, and
// neither is an object that the resource creates and deletes in turn. Values that must not be shown
// are not counted. The counts start over with a new generation of the
// reconciled object, and with another object of its name.
//
// Not covered are resources that can't predict their changes, [Concluder]s, resources that another
// resource calls, the clean-up of an object that is being deleted, and changes whose resource asks
// for a requeue while it applies them. A [Planner] is covered if it runs more often than every two
// minutes. Then it is planned before it runs.
type Fight struct {
	// Key is the key of the reconciled object in the primary source.
	Key informer.Key `json:"-"`
	// Resource is the name of the resource.
	Resource string `json:"resource"`
	// Action and Object say what is undone.
	Action plan.Action `json:"action"`
	Object plan.Object `json:"object"`
	// Fields are the paths of the undone fields, sorted. They are empty unless Action is an update.
	Fields []string `json:"fields,omitempty"`
	// Managers are the other field managers of the fields, with the times of their last writes. It
	// is empty if none is known.
	Managers []string `json:"managers,omitempty"`
	// Since is when the change was first applied, Last is when it was last found undone, and Next
	// is when it is tried again.
	Since time.Time `json:"since"`
	Last  time.Time `json:"last"`
	Next  time.Time `json:"next"`
	// Times is how often the change was found undone.
	Times int `json:"times"`
}

// String returns what is undone and by what, without values.
func (f Fight) String() string { return f.subject() + ": " + f.undoer() }

// undoer says what undoes the change.
func (f Fight) undoer() string {
	if len(f.Managers) == 0 {
		return "what undoes it is not known"
	}
	return "also written by " + strings.Join(f.Managers, ", ")
}

// subject returns what is undone.
func (f Fight) subject() string {
	text := fmt.Sprintf("%s of %s", f.Action, f.Object)
	if len(f.Fields) == 0 {
		return text
	}
	text += " (" + strings.Join(f.Fields[:min(len(f.Fields), maxFightFields)], ", ")
	if more := len(f.Fields) - maxFightFields; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text + ")"
}

// fights is a [Policy] that holds changes which are undone again and again. As an observer it sees
// which changes were applied.
type fights struct {
	unobserved
	framework *Framework
	seed      maphash.Seed
	// passed remembers which resources passed the gate lately, by hash. It has a fixed size, so
	// that a start costs no memory: an entry may be overwritten by another one.
	passed  [maxPassed]atomic.Uint64
	objects keyed.Map[*changedObject]
	// swept is the time of the last sweep, in nanoseconds of Unix time.
	swept atomic.Int64
	// managers returns the other managers of the fields of an object. Nil knows none.
	managers func(ctx context.Context, resource string, object plan.Object, fields []string) []string

	mu sync.Mutex
	// started are the fights that have started, and some that are over.
	started []*fight
}

// changedObject has the recent changes for one state of a reconciled object. It is guarded by
// fights.objects. Another state starts over.
type changedObject struct {
	objectState
	resources []*changedResource
}

type objectState struct {
	uid        types.UID
	generation int64
}

// changedResource has the recent changes of one resource.
type changedResource struct {
	name string
	// last is when changes of it were last compared.
	last    time.Time
	changes map[uint64]*appliedChange
	// proposed are the changes that are about to be applied.
	proposed []proposedChange
	// asked is the requested requeue when the changes were proposed; 0 is none.
	asked time.Duration
}

// proposedChange is a part of a proposal: a field with its new value, or a creation or deletion.
type proposedChange struct {
	// place is the hash of the object, and of the path of the field. value is the hash of what is
	// there afterwards: the value of the field, or whether the object exists. The value may be a
	// secret, and is not kept.
	place, value uint64
	// hidden is true if the value is not known: the change is not counted.
	hidden bool
	action plan.Action
	object plan.Object
	path   string
}

// appliedChange is a change that was applied to a place. Another value there starts over.
type appliedChange struct {
	value uint64
	// at are the last times of its application, fightTimes at most.
	at []time.Time
	// fight is nil unless the change is in one.
	fight *fight
}

// fight is a fight about one object: its fields that were undone together.
type fight struct {
	Fight
	pause time.Duration
	// tried is true if the change was applied after the last pause.
	tried bool
}

// Admit implements [Policy].
func (f *fights) Admit(ctx context.Context, p Proposal) Verdict {
	s := scopeOf(ctx)
	nested := !p.plain && (!s.crud || s.resource != p.Resource)
	if nested || s.concludes || p.Opaque || p.Event == plan.DeleteEvent || !p.plain && p.parts == 0 {
		return Go()
	}
	now := time.Now()
	f.sweep(now)
	state := objectState{uidOf(p.Object), generationOf(p.Object)}
	if !f.described(s, p, state, now) {
		return Go()
	}
	var changes []plan.Change
	err := recoveredIn(ctx, func(context.Context) (err error) {
		changes, err = p.Changes()
		return err
	})
	proposed := f.split(changes)
	if err != nil || len(proposed) == 0 {
		return Go()
	}
	asked, _ := requeuecontext.After(ctx)
	started, held := f.judge(s, state, changedResource{proposed: proposed, asked: asked, last: now})
	f.report(ctx, s, started)
	if held == nil {
		return Go()
	}
	requeuecontext.SetAfter(ctx, held.Next.Sub(now))
	reason := fmt.Sprintf("the change is undone again and again: %s; next try at %s",
		held.subject(), held.Next.Format(time.RFC3339))
	return Hold(secretscontext.Scrub(ctx, reason))
}

// described reports whether the changes of a resource are described. A first change is not: a start
// costs nothing. A [Planner] is described only if it runs so often that its changes can be a fight,
// because its plan may send requests.
func (f *fights) described(s *scope, p Proposal, state objectState, now time.Time) (again bool) {
	key, within := s.reconciliation.key, fightWindow
	if p.plain {
		within = fightWindow / fightTimes
	}
	hash := maphash.Comparable(f.seed, struct {
		key      informer.Key
		resource string
		state    objectState
	}{key, s.resource, state})
	const seconds = 1<<32 - 1
	at := uint64(now.Unix()) & seconds
	before := f.passed[hash%maxPassed].Swap(hash&^seconds | at)
	again = before&^seconds == hash&^seconds && at-before&seconds <= uint64(within/time.Second)
	if _, known := f.objects.Get(key); !known {
		return again
	}
	f.objects.Update(key, func(o *changedObject, known bool) (*changedObject, bool) {
		if !known || o.objectState != state {
			return nil, false
		}
		if r := o.resource(s.resource); r != nil {
			r.proposed = nil
			again = again || r.fights(now)
		}
		return o, true
	})
	return again
}

func generationOf(obj any) int64 {
	if g, ok := obj.(interface{ GetGeneration() int64 }); ok && !isNil(obj) {
		return g.GetGeneration()
	}
	return 0
}

func (o *changedObject) resource(name string) *changedResource {
	for _, r := range o.resources {
		if r.name == name {
			return r
		}
	}
	return nil
}

// fights reports whether the resource is in a fight.
func (r *changedResource) fights(now time.Time) bool {
	for _, a := range r.changes {
		if a.fight != nil && !a.fight.over(now) {
			return true
		}
	}
	return false
}

// split returns the parts of changes. Only updates count with their values.
func (f *fights) split(changes []plan.Change) (parts []proposedChange) {
	add := func(c plan.Change, path string, value any, sensitive bool) {
		part := proposedChange{action: c.Action, object: c.Object, path: path}
		part.object.UID, part.object.Version = "", ""
		encoded, err := json.Marshal(value)
		part.hidden = err != nil || sensitive
		part.place = maphash.Comparable(f.seed, [...]any{part.object, c.Action == plan.Update, path})
		part.value = maphash.Bytes(f.seed, encoded)
		parts = append(parts, part)
	}
	for _, c := range changes {
		for _, field := range c.Fields {
			if c.Action == plan.Update {
				add(c, field.Path, field.New, field.Sensitive)
			}
		}
		if c.Action != plan.Update || len(c.Fields) == 0 {
			add(c, "", c.Action, false)
		}
	}
	return parts
}

// judge compares the proposed changes with the applied ones. It returns the fights that start, and,
// if all changes are paused, the fight that is tried next.
func (f *fights) judge(
	s *scope, state objectState, now changedResource,
) (started []*fight, held *Fight) {
	f.objects.Update(s.reconciliation.key, func(o *changedObject, known bool) (*changedObject, bool) {
		if !known {
			o = &changedObject{objectState: state}
		}
		r := o.resource(s.resource)
		if r == nil {
			r = &changedResource{name: s.resource}
			o.resources = append(o.resources, r)
		}
		r.last, r.proposed, r.asked = now.last, now.proposed, now.asked
		paused, next := true, (*fight)(nil)
		for _, c := range r.proposed {
			a := r.changes[c.place]
			if !a.isUndone(c, r.last) {
				paused = false
				continue
			}
			if a.fight == nil {
				started = joined(started, a, c, r.last)
			}
			a.fight.undone(r.last)
			paused = paused && r.last.Before(a.fight.Next)
			if next == nil || a.fight.Next.Before(next.Next) {
				next = a.fight
			}
		}
		if paused {
			r.proposed = nil
			held = &next.Fight
		}
		return o, true
	})
	for _, of := range started {
		of.Key, of.Resource = s.reconciliation.key, s.resource
		slices.Sort(of.Fields)
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

// joined adds a change to the fight that starts about its object.
func joined(started []*fight, a *appliedChange, c proposedChange, now time.Time) []*fight {
	i := slices.IndexFunc(started, func(f *fight) bool {
		return f.Action == c.action && f.Object == c.object
	})
	if i < 0 {
		i = len(started)
		started = append(started, &fight{pause: fightPause, Fight: Fight{
			Action: c.action, Object: c.object, Since: a.at[0], Last: now, Times: fightTimes,
			Next: now.Add(jitter.Of(fightPause)),
		}})
	}
	a.fight = started[i]
	if c.path != "" {
		a.fight.Fields = append(a.fight.Fields, c.path)
	}
	return started
}

// undone records that the change of a fight is found undone, after a try or still.
func (f *fight) undone(now time.Time) {
	f.Last = now
	if f.tried {
		f.Times++
		f.tried, f.pause = false, min(2*f.pause, maxFightPause)
		f.Next = now.Add(jitter.Of(f.pause))
	}
}

// over reports whether the change has not been found undone for long enough.
func (f *fight) over(now time.Time) bool { return now.Sub(f.Last) > fightWindow+2*f.pause }

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
	if !applies || action == "" && s.crud || e.err != nil || e.Resource != s.resource ||
		resourcecanceledcontext.IsCanceled(s) || reconciliationcanceledcontext.IsCanceled(s) {
		return
	}
	if _, known := f.objects.Get(s.reconciliation.key); !known {
		return
	}
	after, _ := requeuecontext.After(s)
	f.objects.Update(s.reconciliation.key, func(o *changedObject, known bool) (*changedObject, bool) {
		if known {
			if r := o.resource(s.resource); r != nil && r.asked == after {
				r.applied(action, time.Now())
			}
		}
		return o, known
	})
}

// applied remembers the application of the proposed changes of an action; none is all.
func (r *changedResource) applied(action plan.Action, now time.Time) {
	for _, c := range r.proposed {
		a := r.changes[c.place]
		switch {
		case action != "" && c.action != action, c.hidden, a == nil && len(r.changes) >= maxKeptChanges:
			continue
		case a == nil || a.value != c.value:
			if a = (&appliedChange{value: c.value}); r.changes == nil {
				r.changes = map[uint64]*appliedChange{}
			}
			r.changes[c.place] = a
		}
		if len(a.at) == fightTimes {
			a.at = slices.Delete(a.at, 0, 1)
		}
		a.at = append(a.at, now)
		if a.fight != nil && !now.Before(a.fight.Next) {
			a.fight.tried = true
		}
	}
}

// report finds the other managers of fights that start. It reports each fight by an event and a log
// message.
func (f *fights) report(ctx context.Context, s *scope, started []*fight) {
	if len(started) == 0 {
		return
	}
	asking, cancel := context.WithTimeout(ctx, managersTimeout)
	defer cancel()
	for _, of := range started {
		if f.managers != nil {
			f.framework.guard("find the managers of fields", func() {
				of.Managers = f.managers(asking, of.Resource, of.Object, of.Fields)
			}, "object", of.Object.String())
		}
		for j, path := range of.Fields {
			of.Fields[j] = secretscontext.Scrub(ctx, path)
		}
		f.framework.log("warning", "a change is undone again and again", "resource", of.Resource,
			"object", describe(s.reconciliation.object, of.Key), "change", of.String())
		message := fmt.Sprintf("resource %q applied the %s %d times, and found it undone each time: %s; "+
			"it is tried again after growing pauses", of.Resource, of.subject(), of.Times, of.undoer())
		if record := f.framework.reporter.recordOn(s.reconciliation.object); record != nil {
			record(corev1.EventTypeWarning, ReasonChangeUndone, cut.Text(message, maxEventMessage))
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.started = append(f.started, started...)
}

// Fights returns the changes that are undone again and again, the earliest first. It may be called
// at any time. The slice is the caller's, but the fields and managers must not be changed.
func (f *Framework) Fights() []Fight { return f.fights.list() }

// list returns the fights, and forgets those that are over.
func (f *fights) list() (all []Fight) {
	now := time.Now()
	f.sweep(now)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.started = slices.DeleteFunc(f.started, func(of *fight) (over bool) {
		f.objects.Update(of.Key, func(o *changedObject, known bool) (*changedObject, bool) {
			if over = !known || !o.has(of) || of.over(now); !over {
				all = append(all, of.Fight)
			}
			return o, known
		})
		return over
	})
	return all
}

// has reports whether a fight is about the object as it is now.
func (o *changedObject) has(of *fight) bool {
	r := o.resource(of.Resource)
	if r == nil {
		return false
	}
	for _, a := range r.changes {
		if a.fight == of {
			return true
		}
	}
	return false
}

// ended implements observer.
func (f *fights) ended(e ended) {
	if e.reason == reasonGone {
		f.objects.Delete(e.key)
	}
}

// sweep forgets what is too old to matter, once in a window.
func (f *fights) sweep(now time.Time) {
	last := f.swept.Load()
	if now.UnixNano()-last < int64(fightWindow) || !f.swept.CompareAndSwap(last, now.UnixNano()) {
		return
	}
	for _, key := range f.objects.Keys() {
		f.objects.Update(key, func(o *changedObject, known bool) (*changedObject, bool) {
			if !known {
				return nil, false
			}
			o.resources = slices.DeleteFunc(o.resources, func(r *changedResource) bool {
				return r.isOld(now)
			})
			return o, len(o.resources) > 0
		})
	}
}

// isOld forgets the old changes of a resource, and reports whether nothing is left to remember.
func (r *changedResource) isOld(now time.Time) bool {
	for hash, a := range r.changes {
		if now.Sub(a.at[len(a.at)-1]) > fightWindow && (a.fight == nil || a.fight.over(now)) {
			delete(r.changes, hash)
		}
	}
	return len(r.changes) == 0 && now.Sub(r.last) > fightWindow
}

// FindManagers implements access.Engine.
func (f engine) FindManagers(
	find func(ctx context.Context, resource string, object plan.Object, fields []string) []string,
) {
	f.fights.managers = find
}
