// Package upgrade limits how many objects a new build of an operator changes at a time.
//
// [State] is what the replicas share: one value of a ConfigMap, which is written by compare and swap
// before each write to an object that it admits. Its methods are pure. [Controller] is the part of a
// replica: a policy of its frameworks, and the loop that writes the state.
package upgrade

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/operatorkit/operatorkit/informer"
)

// Build identifies an executable with its arguments.
type Build struct {
	ID string `json:"id"`
	// Version is the version of the operator, for people.
	Version string `json:"version,omitempty"`
}

// String returns the version and the ID.
func (b Build) String() string {
	switch {
	case b.ID == "":
		return "an unknown build"
	case b.Version == "":
		return b.ID
	}
	return fmt.Sprintf("%s (%s)", b.Version, b.ID)
}

// Phase is the phase of an upgrade.
type Phase string

// The phases. What is held stays held while an upgrade is Paused or Halted; nothing is held when it
// is Finished.
const (
	Running  Phase = "Running"
	Paused   Phase = "Paused"
	Halted   Phase = "Halted"
	Finished Phase = "Finished"
)

// Object names a primary object.
type Object struct {
	Framework string    `json:"framework"`
	Namespace string    `json:"namespace,omitempty"`
	Name      string    `json:"name"`
	UID       types.UID `json:"uid,omitempty"`
}

// String returns the object for people.
func (o Object) String() string {
	return o.Framework + " " + strings.TrimPrefix(o.Namespace+"/"+o.Name, "/")
}

func (o Object) key() informer.Key { return informer.Key{Namespace: o.Namespace, Name: o.Name} }

func (o Object) id() id { return id{o.Framework, o.key()} }

// Place is an object that the upgrade has admitted, and that is not ready yet.
type Place struct {
	Object
	Since time.Time `json:"since"`
	// Unready is true if the object was not ready before the upgrade changed it. It is no failure
	// then if it does not become ready.
	Unready bool `json:"unready,omitempty"`
	// Failed says why the object counts as a failure. It is empty if it doesn't.
	Failed string `json:"failed,omitempty"`
}

// Report is what a replica reports about its part of the objects.
type Report struct {
	// Idle is since when no object is Unseen or Held. It is zero if one is.
	Idle time.Time `json:"idle,omitzero"`
	// Objects is the number of objects, Unseen of those that are not reconciled yet, and Held of
	// those that wait for a place. Canaries is the number of canaries among the last two and among
	// the objects with a place that have not failed.
	Objects  int `json:"objects"`
	Unseen   int `json:"unseen"`
	Held     int `json:"held"`
	Canaries int `json:"canaries"`
	// OnHold names objects that an annotation holds, MaxOnHold at most.
	OnHold []string `json:"onHold,omitempty"`
}

// MaxOnHold is how many objects on hold a replica names. It bounds the size of the state.
const MaxOnHold = 100

// State is the state of the upgrade of an operator.
type State struct {
	From  Build     `json:"from"`
	To    Build     `json:"to"`
	Phase Phase     `json:"phase"`
	Since time.Time `json:"since"`
	// Run counts how often an upgrade was started or resumed. What replicas know about the objects is
	// about one run.
	Run int `json:"run"`
	// Reason says why the upgrade is halted.
	Reason string `json:"reason,omitempty"`
	// Places are the admitted objects that are not ready yet: never more than the budget.
	Places []Place `json:"places,omitempty"`
	// Done is the number of objects that were admitted and became ready. Failures is the number of
	// failures since the upgrade has started or was resumed.
	Done     int `json:"done"`
	Failures int `json:"failures"`
	// Reports are the reports of the replicas of the build, by name.
	Reports map[string]Report `json:"reports,omitempty"`
	// OnHold are objects that an annotation held when the upgrade finished.
	OnHold []string `json:"onHold,omitempty"`
}

// Has reports whether an object has a place.
func (s *State) Has(o Object) bool {
	return slices.ContainsFunc(s.Places, func(p Place) bool { return p.Object == o })
}

// Begin starts the upgrade to another build, unless it has started. Objects that have a place keep it:
// the new build continues with them.
func (s *State) Begin(to Build, now time.Time) {
	if s.To.ID != to.ID {
		*s = State{From: s.To, To: to, Since: now, Run: s.Run, Places: s.Places}
		s.run(now)
	}
}

// run starts an upgrade, or continues it. Everything is tried again.
func (s *State) run(now time.Time) {
	s.Run++
	s.Phase, s.Failures = Running, 0
	for i := range s.Places {
		s.Places[i].Since, s.Places[i].Failed = now, ""
	}
}

// Set is a change of the phase that a person requests.
func (s *State) Set(phase Phase, now time.Time) error {
	switch {
	case s.Phase == phase:
		return nil
	case s.Phase == "":
		return fmt.Errorf("no upgrade is known: the operator has not run with a budget here")
	case s.Phase == Finished:
		return fmt.Errorf("the upgrade to %s is finished", s.To)
	case phase == Paused && s.Phase == Halted:
		return fmt.Errorf("the upgrade is halted already: %s", s.Reason)
	}
	s.Reason = ""
	switch phase {
	case Running:
		s.run(now)
	case Finished:
		s.finish()
	default:
		s.Phase = phase
	}
	return nil
}

func (s *State) finish() {
	for _, r := range s.Reports {
		s.OnHold = append(s.OnHold, r.OnHold...)
	}
	slices.Sort(s.OnHold)
	s.Phase, s.Places, s.Reports = Finished, nil, nil
}

// Rules are the rules of an upgrade.
type Rules struct {
	// Budget returns how many objects may have a place, of a number of objects.
	Budget func(objects int) int
	// MaxFailures is the number of failures at which the upgrade halts.
	MaxFailures int
	// Canaries is true if some objects go first.
	Canaries bool
	// Settle is how long all reports must say that nothing is left.
	Settle time.Duration
}

// Candidate is an object that waits for a place.
type Candidate struct {
	Object
	Canary bool
	// Unready is true if the object is not ready now.
	Unready bool
}

// Round is what a replica contributes to the state.
type Round struct {
	Now     time.Time
	Replica string
	Build   Build
	// Live are the replicas at work, this one included.
	Live []string
	// Finishes is true for the replica that may finish the upgrade.
	Finishes bool
	Report   Report
	// Ready and Gone are objects that need their places no more. Failed are objects with places
	// that have failed, and why.
	Ready, Gone []Object
	Failed      map[Object]string
	// Waiting are the objects of this replica that wait for a place, the first one first, without
	// those on hold.
	Waiting []Candidate
}

// Apply applies a round. All that it adds to Places is admitted once the state is written.
func (s *State) Apply(rules Rules, r Round) {
	if s.To.ID != r.Build.ID || s.Phase == Finished {
		return
	}
	s.report(r)
	for _, o := range r.Ready {
		if s.leave(o) {
			s.Done++
		}
	}
	for _, o := range r.Gone {
		s.leave(o)
	}
	for i := range s.Places {
		if p := &s.Places[i]; p.Failed == "" && r.Failed[p.Object] != "" {
			p.Failed = r.Failed[p.Object]
			s.Failures++
		}
	}
	failed := s.failed()
	budget := rules.Budget(s.Total().Objects)
	switch {
	case s.Phase != Running:
	case s.Failures >= rules.MaxFailures, len(failed) >= budget:
		s.Phase, s.Reason = Halted, strings.Join(failed, "; ")
	default:
		s.grant(rules, r, budget-len(s.Places))
		if r.Finishes && s.isOver(rules, r) {
			s.finish()
		}
	}
}

// report replaces the report of the replica, and drops those of replicas that are gone.
func (s *State) report(r Round) {
	before, now := s.Reports[r.Replica], r.Report
	for name := range s.Reports {
		if !slices.Contains(r.Live, name) {
			delete(s.Reports, name)
			before.Idle = time.Time{} // Another replica is about to get its objects.
		}
	}
	if now.Unseen+now.Held == 0 {
		if now.Idle = before.Idle; now.Idle.IsZero() {
			now.Idle = r.Now
		}
	}
	if s.Reports == nil {
		s.Reports = map[string]Report{}
	}
	s.Reports[r.Replica] = now
}

// leave takes the place of an object back, and reports whether it had one.
func (s *State) leave(o Object) bool {
	had := len(s.Places)
	s.Places = slices.DeleteFunc(s.Places, func(p Place) bool { return p.Object == o })
	return len(s.Places) < had
}

// grant gives free places to objects that wait.
func (s *State) grant(rules Rules, r Round, free int) {
	canariesOnly := rules.Canaries && !s.all(r, func(other Report) bool { return other.Canaries == 0 })
	for _, c := range r.Waiting {
		if free <= 0 || canariesOnly && !c.Canary {
			return
		}
		if !s.Has(c.Object) {
			s.Places = append(s.Places, Place{Object: c.Object, Since: r.Now, Unready: c.Unready})
			free--
		}
	}
}

// isOver reports whether nothing is left to do.
func (s *State) isOver(rules Rules, r Round) bool {
	return len(s.Places) == 0 && s.all(r, func(other Report) bool {
		return !other.Idle.IsZero() && r.Now.Sub(other.Idle) >= rules.Settle
	})
}

// all reports whether all replicas at work have reported something.
func (s *State) all(r Round, something func(Report) bool) bool {
	return !slices.ContainsFunc(r.Live, func(name string) bool {
		report, known := s.Reports[name]
		return !known || !something(report)
	})
}

// failed returns the objects that have failed, and why.
func (s *State) failed() (failed []string) {
	for _, p := range s.Places {
		if p.Failed != "" {
			failed = append(failed, fmt.Sprintf("%s %s", p.Object, p.Failed))
		}
	}
	slices.Sort(failed)
	return failed
}

// Total returns the sums of the last reports.
func (s *State) Total() (total Report) {
	for _, r := range s.Reports {
		total.Objects, total.Unseen, total.Held = total.Objects+r.Objects, total.Unseen+r.Unseen, total.Held+r.Held
	}
	return total
}
