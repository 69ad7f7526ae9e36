package upgrade_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/operatorkit/operatorkit/operator/internal/upgrade"
)

// world is a model of replicas of builds that share the state of upgrades. Each replica does rounds
// with what it knows, and changes the objects that the state has admitted.
type world struct {
	t        *rapid.T
	budget   int
	now      time.Time
	state    upgrade.State
	objects  []*object
	replicas []*replica
	builds   int
	// shift moves the objects to other replicas.
	shift int
}

type object struct {
	name upgrade.Object
	// build is the build that changed the object last, and ready is whether it is ready.
	build string
	ready bool
	// changed is true from a change by an upgrade until the object was seen ready.
	changed bool
}

// replica is a process of a build. Its state is that of its last round.
type replica struct {
	name  string
	build upgrade.Build
	state upgrade.State
	// seen and done are the objects that this process has reconciled, and those that were done.
	seen map[upgrade.Object]bool
}

func newWorld(t *rapid.T) *world {
	w := &world{t: t, budget: rapid.IntRange(1, 4).Draw(t, "budget"), now: time.Unix(1e9, 0)}
	for i := range rapid.IntRange(1, 12).Draw(t, "objects") {
		w.objects = append(w.objects, &object{
			name: upgrade.Object{Framework: "f", Namespace: fmt.Sprint("n", i%3), Name: fmt.Sprint("o", i)}, build: "0", ready: true,
		})
	}
	w.state.Begin(upgrade.Build{ID: "0"}, w.now)
	if err := w.state.Set(upgrade.Finished, w.now); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) rules() upgrade.Rules {
	return upgrade.Rules{Budget: func(int) int { return w.budget }, MaxFailures: 2}
}

// owner returns the replica that reconciles an object: the work is shared by position.
func (w *world) owner(i int) *replica { return w.replicas[(i+w.shift)%len(w.replicas)] }

// round does a round of a replica.
func (w *world) round(r *replica) {
	leads := w.replicas[0] == r
	if leads {
		w.state.Begin(r.build, w.now)
	}
	round := upgrade.Round{
		Now: w.now, Replica: r.name, Build: r.build, Finishes: leads, Failed: map[upgrade.Object]string{},
	}
	for _, other := range w.replicas {
		round.Live = append(round.Live, other.name)
	}
	for i, o := range w.objects {
		if w.owner(i) != r {
			continue
		}
		round.Report.Objects++
		if !r.seen[o.name] {
			round.Report.Unseen++
			continue
		}
		switch {
		case w.state.Has(o.name) && o.build == r.build.ID && o.ready:
			round.Ready = append(round.Ready, o.name)
		case w.state.Has(o.name) && o.build == r.build.ID && rapid.Bool().Draw(w.t, "fails"):
			round.Failed[o.name] = "is not ready"
		case o.build != r.build.ID:
			round.Report.Held++
			round.Waiting = append(round.Waiting, upgrade.Candidate{Object: o.name})
		}
	}
	before := w.copied()
	w.state.Apply(w.rules(), round)
	for _, p := range w.state.Places {
		if before.Phase != upgrade.Running && !before.Has(p.Object) {
			w.t.Fatalf("%s got a place while the upgrade was %s", p.Object, before.Phase)
		}
	}
	for _, o := range round.Ready {
		if !w.state.Has(o) {
			w.object(o).changed = false
		}
	}
	r.state = w.copied()
}

func (w *world) object(name upgrade.Object) *object {
	return w.objects[slices.IndexFunc(w.objects, func(o *object) bool { return o.name == name })]
}

func (w *world) copied() upgrade.State {
	s := w.state
	s.Places = slices.Clone(s.Places)
	return s
}

// reconcile reconciles an object with what its replica knows of the state.
func (w *world) reconcile(i int) {
	o, r := w.objects[i], w.owner(i)
	r.seen[o.name] = true
	if o.build == r.build.ID {
		return
	}
	ours := r.state.To.ID == r.build.ID
	if ours && r.state.Phase == upgrade.Finished || ours && r.state.Has(o.name) {
		o.build, o.ready = r.build.ID, false
		o.changed = r.state.Phase != upgrade.Finished
	}
}

func TestNoMoreObjectsAreChangedAtATimeThanTheBudgetAllows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		deploy := func(t *rapid.T) {
			// All replicas of the former build have ended: the fence sees to that.
			w.builds++
			build := upgrade.Build{ID: fmt.Sprint(rapid.IntRange(0, 3).Draw(t, "build"))}
			w.replicas = nil
			for i := range rapid.IntRange(1, 3).Draw(t, "replicas") {
				w.replicas = append(w.replicas, &replica{name: fmt.Sprint("r", w.builds, "-", i), build: build, seen: map[upgrade.Object]bool{}})
			}
		}
		deploy(t)
		t.Repeat(map[string]func(*rapid.T){
			"deploy": func(t *rapid.T) {
				if rapid.IntRange(0, 4).Draw(t, "again") == 0 {
					deploy(t)
				}
			},
			"round": func(t *rapid.T) {
				w.now = w.now.Add(time.Second)
				w.round(rapid.SampledFrom(w.replicas).Draw(t, "replica"))
			},
			"reconcile": func(t *rapid.T) { w.reconcile(rapid.IntRange(0, len(w.objects)-1).Draw(t, "object")) },
			"ready":     func(t *rapid.T) { rapid.SampledFrom(w.objects).Draw(t, "object").ready = true },
			"move": func(t *rapid.T) {
				w.shift++
				for i, o := range w.objects {
					for _, r := range w.replicas {
						if r != w.owner(i) {
							delete(r.seen, o.name)
						}
					}
				}
			},
			"resume": func(t *rapid.T) {
				if w.state.Phase == upgrade.Halted {
					_ = w.state.Set(upgrade.Running, w.now)
				}
			},
			"": func(t *rapid.T) {
				for i, p := range w.state.Places {
					if slices.ContainsFunc(w.state.Places[:i], func(q upgrade.Place) bool { return p.Object == q.Object }) {
						t.Fatalf("%s has two places", p.Object)
					}
				}
				if len(w.state.Places) > w.budget {
					t.Fatalf("%d places with a budget of %d", len(w.state.Places), w.budget)
				}
				changed := 0
				for _, o := range w.objects {
					if o.changed && !o.ready {
						changed++
						if !w.state.Has(o.name) {
							t.Fatalf("%s was changed, is not ready, and has no place: %+v", o.name, w.state)
						}
					}
				}
				if changed > w.budget {
					t.Fatalf("%d objects are changed and not ready with a budget of %d", changed, w.budget)
				}
			},
		})
	})
}

func TestAnUpgradeFinishesOnceNothingIsLeft(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		for i := range rapid.IntRange(1, 3).Draw(t, "replicas") {
			w.replicas = append(w.replicas, &replica{name: fmt.Sprint("r", i), build: upgrade.Build{ID: "1"}, seen: map[upgrade.Object]bool{}})
		}
		for range 200 {
			for _, r := range w.replicas {
				w.now = w.now.Add(time.Second)
				w.round(r)
			}
			switch w.state.Phase {
			case upgrade.Halted:
				_ = w.state.Set(upgrade.Running, w.now)
			case upgrade.Finished:
				for _, o := range w.objects {
					if o.build != "1" {
						t.Fatalf("%s is still of build %s", o.name, o.build)
					}
				}
				return
			}
			for i, o := range w.objects {
				w.reconcile(i)
				o.ready = o.ready || rapid.Bool().Draw(t, "ready")
			}
		}
		t.Fatalf("not finished: %+v", w.state)
	})
}

func TestAReplicaOfAnotherBuildChangesNothing(t *testing.T) {
	now := time.Unix(1e9, 0)
	s := upgrade.State{}
	s.Begin(upgrade.Build{ID: "new"}, now)
	other := upgrade.Round{
		Now: now, Replica: "old", Build: upgrade.Build{ID: "old"}, Live: []string{"old", "new"},
		Waiting: []upgrade.Candidate{{Object: upgrade.Object{Name: "a"}}},
	}
	if s.Apply(upgrade.Rules{Budget: func(int) int { return 9 }, MaxFailures: 1}, other); len(s.Places)+len(s.Reports) > 0 {
		t.Errorf("state %+v", s)
	}
}

func TestCanariesGoFirstOnAllReplicas(t *testing.T) {
	now := time.Unix(1e9, 0)
	rules := upgrade.Rules{Budget: func(int) int { return 9 }, MaxFailures: 1, Canaries: true}
	s := upgrade.State{}
	s.Begin(upgrade.Build{ID: "new"}, now)
	round := func(replica string, canaries int, waiting ...upgrade.Candidate) {
		s.Apply(rules, upgrade.Round{
			Now: now, Replica: replica, Build: upgrade.Build{ID: "new"}, Live: []string{"a", "b"},
			Report: upgrade.Report{Objects: 5, Held: len(waiting), Canaries: canaries}, Waiting: waiting,
		})
	}
	object := upgrade.Candidate{Object: upgrade.Object{Name: "object"}}
	canary := upgrade.Candidate{Object: upgrade.Object{Name: "canary"}, Canary: true}
	round("a", 0, object)
	if len(s.Places) > 0 {
		t.Error("an object has a place before the other replica has reported its canaries")
	}
	round("b", 1, canary)
	round("a", 0, object)
	if len(s.Places) != 1 || s.Places[0].Name != "canary" {
		t.Errorf("places %v", s.Places)
	}
	round("b", 0)
	round("a", 0, object)
	if len(s.Places) != 2 {
		t.Errorf("places %v", s.Places)
	}
}

func TestAnUpgradeIsNotFinishedWhileTheObjectsOfAReplicaThatHasLeftMove(t *testing.T) {
	start := time.Unix(1e9, 0)
	rules := upgrade.Rules{Budget: func(int) int { return 9 }, MaxFailures: 1, Settle: 10 * time.Second}
	s := upgrade.State{}
	s.Begin(upgrade.Build{ID: "new"}, start)
	round := func(after time.Duration, replica string, live ...string) upgrade.Phase {
		s.Apply(rules, upgrade.Round{
			Now: start.Add(after), Replica: replica, Build: upgrade.Build{ID: "new"}, Live: live, Finishes: replica == "a",
		})
		return s.Phase
	}
	round(0, "a", "a", "b")
	round(0, "b", "a", "b")
	if phase := round(9*time.Second, "a", "a", "b"); phase != upgrade.Running {
		t.Errorf("it is %s before the reports have settled", phase)
	}
	if phase := round(11*time.Second, "a", "a"); phase != upgrade.Running {
		t.Errorf("it is %s right after a replica has left", phase)
	}
	if phase := round(22*time.Second, "a", "a"); phase != upgrade.Finished {
		t.Errorf("it is %s after the reports have settled again", phase)
	}
}
