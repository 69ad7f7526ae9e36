package plantest

import (
	"context"
	"fmt"

	"github.com/google/go-cmp/cmp"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/plan"
)

// T is what a check needs of a test. *testing.T and *rapid.T are one.
type T interface {
	Helper()
	Context() context.Context
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// World is what resources change.
type World interface {
	// Things returns what there is, by its name: an object without UID and version.
	Things(ctx context.Context) (map[plan.Object]Thing, error)
	// Writes returns the requests so far that wrote something, or tried to, in their order.
	Writes() ([]Write, error)
}

// Thing is one thing of a world.
type Thing struct {
	// Fields are those that a plan can show, as JSON values.
	Fields map[string]any
	// Object is its name, with its UID and its version, which changes whenever it is written.
	Object plan.Object
	// Defaulted are the places in which there may be fields after a creation that nobody asked for.
	Defaulted []string
	// Terminating is true for what is being deleted and waits for somebody.
	Terminating bool
}

// Write is a request that wrote something.
type Write struct {
	Object plan.Object
	Delete bool
}

// Update checks the plan of an update of obj, and carries it out. It returns the plan.
func Update(t T, w World, obj any, resources ...framework.Resource) *plan.Plan {
	t.Helper()
	return check(t, w, obj, resources, framework.PlanUpdate, framework.ProcessUpdate)
}

// Delete is Update for a deletion.
func Delete(t T, w World, obj any, resources ...framework.Resource) *plan.Plan {
	t.Helper()
	return check(t, w, obj, resources, framework.PlanDelete, framework.ProcessDelete)
}

func check(
	t T, w World, obj any, resources []framework.Resource,
	makePlan func(context.Context, any, []framework.Resource) (*plan.Plan, error),
	process func(context.Context, any, []framework.Resource) error,
) *plan.Plan {
	t.Helper()
	before, writesBefore := things(t, w), writes(t, w)
	p, err := makePlan(t.Context(), obj, resources)
	if err != nil {
		t.Fatalf("plan: %v", err)
	}
	writesPlanned := writes(t, w)
	if diff := cmp.Diff(writesBefore, writesPlanned); diff != "" {
		t.Errorf("planning wrote (-before +after):\n%s", diff)
	}

	err = process(t.Context(), obj, resources)
	if failed := p.Outcome == plan.Failed; failed != (err != nil) {
		t.Errorf("the plan is %s (%s), and applying gave the error: %v", p.Outcome, p.Reason, err)
	}
	changes := changesOf(p)
	compareWrites(t, changes, writes(t, w)[len(writesPlanned):])
	compareThings(t, changes, before, things(t, w))
	return p
}

func things(t T, w World) map[plan.Object]Thing {
	t.Helper()
	found, err := w.Things(t.Context())
	if err != nil {
		t.Fatalf("look at the world: %v", err)
	}
	return found
}

func writes(t T, w World) []Write {
	t.Helper()
	recorded, err := w.Writes()
	if err != nil {
		t.Fatalf("look at the record of writes: %v", err)
	}
	return recorded
}

// changesOf returns the changes of all resources, in the order in which they are applied.
func changesOf(p *plan.Plan) []plan.Change {
	var changes []plan.Change
	for _, r := range p.Resources {
		changes = append(changes, r.Changes...)
	}
	return changes
}

// nameOf is what an object is called, whichever one of this name it is.
func nameOf(o plan.Object) plan.Object {
	o.UID, o.Version = "", ""
	return o
}

// precisely is a name with what tells it from others of its name.
func precisely(o plan.Object) string {
	return fmt.Sprintf("%s (UID %q, version %q)", o, o.UID, o.Version)
}

func compareWrites(t T, changes []plan.Change, made []Write) {
	t.Helper()
	planned := make([]Write, 0, len(changes))
	for _, c := range changes {
		planned = append(planned, Write{Object: nameOf(c.Object), Delete: c.Action == plan.Delete})
	}
	if diff := cmp.Diff(planned, append([]Write{}, made...)); diff != "" {
		t.Errorf("other writes than planned (-planned +done):\n%s", diff)
	}
}

// compareThings compares the changes with what became of the things.
func compareThings(t T, changes []plan.Change, before, after map[plan.Object]Thing) {
	t.Helper()
	planned := map[plan.Object]bool{}
	for _, c := range changes {
		name := nameOf(c.Object)
		planned[name] = true
		was, existed := before[name]
		is, exists := after[name]
		if c.Action != plan.Create && was.Object != c.Object {
			t.Errorf("%s is planned of %s, and there was %s", c.Action, precisely(c.Object), precisely(was.Object))
		}
		switch {
		case existed == (c.Action == plan.Create):
			t.Errorf("%s of %s is planned, and whether it was there: %v", c.Action, name, existed)
		case c.Action == plan.Delete && exists && (was.Terminating || !is.Terminating):
			t.Errorf("%s is still there, as before", name)
		case c.Action != plan.Delete && !exists:
			t.Errorf("%s is gone", name)
		case c.Action == plan.Create:
			compareFields(t, c, plan.Diff(nil, is.Fields), is.Defaulted)
		case c.Action == plan.Update:
			compareFields(t, c, plan.Diff(was.Fields, is.Fields), nil)
		}
	}
	for name, was := range before {
		if is, exists := after[name]; !planned[name] && (!exists || is.Object != was.Object) {
			t.Errorf("%s is not in the plan, and has changed", name)
		}
	}
	for name := range after {
		if _, existed := before[name]; !existed && !planned[name] {
			t.Errorf("%s is not in the plan, and has appeared", name)
		}
	}
}
