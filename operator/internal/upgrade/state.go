// Package upgrade limits how many objects a new build of an operator changes at a time.
//
// [State] is what the replicas share: one value of a ConfigMap, which is written by compare and swap
// before each write to an object that it admits. Its methods are pure. [Controller] is the part of a
// replica: a policy of its frameworks, and the loop that writes the state.
package upgrade

import (
	"cmp"
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

// String returns the version and the beginning of the ID.
func (b Build) String() string {
	id := b.ID[:min(len(b.ID), 16)]
	switch {
	case id == "":
		return "an unknown build"
	case b.Version == "":
		return id
	}
	return fmt.Sprintf("%s (%s)", b.Version, id)
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
	// Time is when the report last changed between zero and another number.
	Time  time.Time `json:"time"`
	Build string    `json:"build"`
	// Written is when the report was last written.
	Written time.Time `json:"written"`
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

// similar reports whether two reports lead to the same decisions.
func (r Report) similar(other Report) bool {
	zero := func(a, b int) bool { return (a == 0) == (b == 0) }
	return r.Build == other.Build && zero(r.Unseen, other.Unseen) && zero(r.Held, other.Held) &&
		zero(r.Canaries, other.Canaries)
}

// sameNumbers reports whether two reports have the same numbers.
func (r Report) sameNumbers(other Report) bool {
	return r.Objects == other.Objects && r.Unseen == other.Unseen && r.Held == other.Held && r.Canaries == other.Canaries
}

// reportPeriod is the shortest time after which other numbers alone are reason enough for a write.
const reportPeriod = 5 * time.Second

// State is the state of the upgrade of an operator.
type State struct {
	From  Build     `json:"from"`
	To    Build     `json:"to"`
	Phase Phase     `json:"phase"`
	Since time.Time `json:"since"`
	// Reason says why the upgrade is halted.
	Reason string `json:"reason,omitempty"`
	// Places are the admitted objects that are not ready yet: never more than the budget.
	Places []Place `json:"places,omitempty"`
	// Done is the number of objects that were admitted and became ready. Failures is the number of
	// failures since the upgrade has started or was resumed.
	Done     int `json:"done"`
	Failures int `json:"failures"`
	// Reports are the reports of the replicas.
	Reports map[string]Report `json:"reports,omitempty"`
	// OnHold are objects that an annotation held when the upgrade finished.
	OnHold []string `json:"onHold,omitempty"`
	// Left is when a replica last left.
	Left time.Time `json:"left,omitzero"`
}

// Has reports whether an object has a place.
func (s *State) Has(o Object) bool { return s.place(o) >= 0 }

func (s *State) place(o Object) int {
	return slices.IndexFunc(s.Places, func(p Place) bool { return p.Object == o })
}

// Begin starts the upgrade to another build, and reports whether the state has changed. Objects that
// have a place keep it: the new build continues with them.
func (s *State) Begin(to Build, now time.Time) bool {
	if s.To.ID == to.ID {
		return false
	}
	places := slices.Clone(s.Places)
	for i := range places {
		places[i].Since, places[i].Failed = now, ""
	}
	*s = State{From: s.To, To: to, Phase: Running, Since: now, Places: places}
	return true
}

// Set is a change of the phase that a person requests.
func (s *State) Set(phase Phase, now time.Time) error {
	switch {
	case s.Phase == "":
		return fmt.Errorf("no upgrade is known: the operator has not run with a budget here")
	case s.Phase == Finished:
		return fmt.Errorf("the upgrade to %s is finished", s.To)
	case phase == Paused && s.Phase == Halted:
		return fmt.Errorf("the upgrade is halted already: %s", s.Reason)
	}
	s.Phase, s.Reason = phase, ""
	switch phase {
	case Running:
		s.Failures = 0
		for i := range s.Places {
			s.Places[i].Since, s.Places[i].Failed = now, ""
		}
	case Finished:
		s.finish()
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
	// Unready reports whether the object is not ready now. It is called if the object gets a place.
	Unready func() bool
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

// Apply applies a round, and reports whether the state has changed. All that it adds to Places is
// admitted once the state is written.
func (s *State) Apply(rules Rules, r Round) bool {
	if s.To.ID != r.Build.ID || s.Phase == Finished {
		return false
	}
	changed := s.report(r)
	for _, o := range r.Ready {
		if i := s.place(o); i >= 0 {
			s.Places, s.Done, changed = slices.Delete(s.Places, i, i+1), s.Done+1, true
		}
	}
	for _, o := range r.Gone {
		if i := s.place(o); i >= 0 {
			s.Places, changed = slices.Delete(s.Places, i, i+1), true
		}
	}
	for o, why := range r.Failed {
		if i := s.place(o); i >= 0 && s.Places[i].Failed == "" {
			s.Places[i].Failed, s.Failures, changed = why, s.Failures+1, true
		}
	}
	if s.Phase == Running && (s.Failures >= rules.MaxFailures || s.isStuck(rules, r)) {
		s.Phase, s.Reason, changed = Halted, s.failures(), true
	}
	if s.Phase == Running {
		granted := s.grant(rules, r)
		changed = granted || changed
		if r.Finishes && !granted && s.over(rules, r) {
			s.finish()
			changed = true
		}
	}
	return changed
}

// report replaces the report of the replica, and drops those of replicas that are gone.
func (s *State) report(r Round) (changed bool) {
	for name := range s.Reports {
		if !slices.Contains(r.Live, name) {
			delete(s.Reports, name)
			s.Left, changed = r.Now, true
		}
	}
	before, known := s.Reports[r.Replica]
	now := r.Report
	now.Build, now.Time, now.Written = r.Build.ID, before.Time, r.Now
	switch {
	case !known || !now.similar(before):
		now.Time, changed = r.Now, true
	case !now.sameNumbers(before) && r.Now.Sub(before.Written) >= reportPeriod:
		changed = true
	}
	if s.Reports == nil {
		s.Reports = map[string]Report{}
	}
	s.Reports[r.Replica] = now
	return changed
}

// isStuck reports whether failed objects have all places.
func (s *State) isStuck(rules Rules, r Round) bool {
	if len(s.Places) == 0 || len(s.Places) < rules.Budget(s.objects(r)) {
		return false
	}
	return !slices.ContainsFunc(s.Places, func(p Place) bool { return p.Failed == "" })
}

// objects returns the number of objects of all replicas.
func (s *State) objects(r Round) (n int) {
	for _, name := range r.Live {
		n += s.Reports[name].Objects
	}
	return n
}

// grant gives the free places to objects that wait.
func (s *State) grant(rules Rules, r Round) (granted bool) {
	canaries := false
	for _, name := range r.Live {
		report, known := s.Reports[name]
		unknown := !known || report.Build != s.To.ID
		canaries = canaries || report.Canaries > 0 || rules.Canaries && unknown
	}
	free := rules.Budget(s.objects(r)) - len(s.Places)
	for _, c := range r.Waiting {
		if free <= 0 || canaries && !c.Canary {
			break
		}
		if s.Has(c.Object) {
			continue
		}
		s.Places = append(s.Places, Place{Object: c.Object, Since: r.Now, Unready: c.Unready != nil && c.Unready()})
		free, granted = free-1, true
	}
	return granted
}

// over reports whether nothing is left to do.
func (s *State) over(rules Rules, r Round) bool {
	if len(s.Places) > 0 || r.Now.Sub(s.Left) < rules.Settle {
		return false
	}
	for _, name := range r.Live {
		report, known := s.Reports[name]
		if !known || report.Build != s.To.ID || report.Unseen+report.Held > 0 || r.Now.Sub(report.Time) < rules.Settle {
			return false
		}
	}
	return true
}

func (s *State) failures() string {
	var failed []string
	for _, p := range s.Places {
		if p.Failed != "" {
			failed = append(failed, fmt.Sprintf("%s %s", p.Object, p.Failed))
		}
	}
	slices.SortFunc(failed, cmp.Compare[string])
	return strings.Join(failed, "; ")
}

// Total returns the sums of the last reports.
func (s *State) Total() (total Report) {
	for _, r := range s.Reports {
		total.Objects, total.Unseen, total.Held = total.Objects+r.Objects, total.Unseen+r.Unseen, total.Held+r.Held
	}
	return total
}
