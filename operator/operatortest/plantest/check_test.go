package plantest_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/operator/operatortest/plantest"
)

// shelf is a world of jars and what is in them.
type shelf struct {
	jars    map[string]string
	written map[string]int
	writes  []plantest.Write
}

func newShelf(jars map[string]string) *shelf {
	return &shelf{jars: jars, written: map[string]int{}}
}

func jar(name string) plan.Object { return plan.Object{Kind: "Jar", Name: name} }

func (s *shelf) Things(context.Context) (map[plan.Object]plantest.Thing, error) {
	things := map[plan.Object]plantest.Thing{}
	for name, content := range s.jars {
		things[jar(name)] = plantest.Thing{Fields: map[string]any{"content": content}, Object: s.object(name)}
	}
	return things, nil
}

// object is a jar with its version, which is how often it was written.
func (s *shelf) object(name string) plan.Object {
	o := jar(name)
	o.Version = fmt.Sprint(s.written[name])
	return o
}

func (s *shelf) Writes() ([]plantest.Write, error) { return slices.Clone(s.writes), nil }

func (s *shelf) put(name, content string) {
	s.jars[name] = content
	s.written[name]++
	s.writes = append(s.writes, plantest.Write{Object: jar(name)})
}

func (s *shelf) remove(name string) {
	delete(s.jars, name)
	s.writes = append(s.writes, plantest.Write{Object: jar(name), Delete: true})
}

// shelving is a resource that says one thing and does another, if it is told to.
type shelving struct {
	plan  func() []plan.Change
	apply func() error
}

func (r *shelving) Name() string                             { return "shelving" }
func (r *shelving) EnsureCreated(context.Context, any) error { return r.apply() }
func (r *shelving) EnsureDeleted(context.Context, any) error { return r.apply() }
func (r *shelving) Plan(context.Context, plan.Event, any) ([]plan.Change, error) {
	return r.plan(), nil
}

var _ framework.Planner = (*shelving)(nil)

// verdict notes what a check finds.
type verdict struct {
	*testing.T
	faults []string
}

func (v *verdict) Errorf(format string, args ...any) {
	v.faults = append(v.faults, fmt.Sprintf(format, args...))
}

func TestALieOfAPlanIsFound(t *testing.T) {
	created := plan.Change{Action: plan.Create, Object: jar("new"), Fields: []plan.FieldChange{{Path: "content", New: "plums"}}}
	updated := plan.Change{
		Action: plan.Update, Object: plan.Object{Kind: "Jar", Name: "old", Version: "0"},
		Fields: []plan.FieldChange{{Path: "content", Old: "figs", New: "dates"}},
	}
	deleted := plan.Change{Action: plan.Delete, Object: plan.Object{Kind: "Jar", Name: "gone", Version: "0"}}
	truth := []plan.Change{created, updated, deleted}
	change := func(c plan.Change, change func(*plan.Change)) plan.Change {
		c.Fields = slices.Clone(c.Fields)
		change(&c)
		return c
	}
	for name, tc := range map[string]struct {
		planned []plan.Change
		// planning and more are done on top of what the truth says: while planning, and while applying.
		planning, more func(*shelf)
		// want are parts of what is found.
		want []string
	}{
		"the truth":            {planned: truth},
		"a sensitive truth":    {planned: []plan.Change{created, change(updated, func(c *plan.Change) { c.Fields[0] = c.Fields[0].Hidden() }), deleted}},
		"planning writes":      {planned: truth, planning: func(s *shelf) { s.put("other", "x") }, want: []string{"planning wrote"}},
		"a change is missing":  {planned: truth[:2], want: []string{"other writes than planned", "Jar gone is not in the plan, and has changed"}},
		"a creation is hidden": {planned: truth[1:], want: []string{"other writes than planned", "Jar new is not in the plan, and has appeared"}},
		"another order":        {planned: []plan.Change{updated, created, deleted}, want: []string{"other writes than planned"}},
		"another value": {
			planned: []plan.Change{created, change(updated, func(c *plan.Change) { c.Fields[0].New = "kiwis" }), deleted},
			want:    []string{`content: "figs" -> "kiwis" is planned, and this is what happened: content: "figs" -> "dates"`},
		},
		"a field too many": {
			planned: []plan.Change{change(created, func(c *plan.Change) { c.Fields = append(c.Fields, plan.FieldChange{Path: "lid", New: true}) }), updated, deleted},
			want:    []string{"field lid: true is planned, and did not change"},
		},
		"a field too few": {
			planned: []plan.Change{created, change(updated, func(c *plan.Change) { c.Fields = nil }), deleted},
			want:    []string{`a field is not in the plan: content: "figs" -> "dates"`},
		},
		"another version": {
			planned: []plan.Change{created, change(updated, func(c *plan.Change) { c.Object.Version = "7" }), deleted},
			want:    []string{`update is planned of Jar old (UID "", version "7"), and there was Jar old (UID "", version "0")`},
		},
		"a creation of what is there": {
			planned: []plan.Change{created, change(updated, func(c *plan.Change) { c.Action = plan.Create }), deleted},
			want:    []string{"create of Jar old is planned, and whether it was there: true"},
		},
		"a deletion that is none": {
			planned: truth, more: func(s *shelf) { s.jars["gone"] = "x" },
			want: []string{"Jar gone is still there"},
		},
		"an update that takes away": {
			planned: truth, more: func(s *shelf) { delete(s.jars, "old") },
			want: []string{"Jar old is gone"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShelf(map[string]string{"old": "figs", "gone": "pears", "kept": "nuts"})
			r := &shelving{
				plan: func() []plan.Change {
					if tc.planning != nil {
						tc.planning(s)
					}
					return tc.planned
				},
				apply: func() error {
					s.put("new", "plums")
					s.put("old", "dates")
					s.remove("gone")
					if tc.more != nil {
						tc.more(s)
					}
					return nil
				},
			}
			v := &verdict{T: t}
			p := plantest.Update(v, s, "shelf", r)
			if diff := cmp.Diff(len(tc.planned), len(p.Resources[0].Changes)); diff != "" {
				t.Errorf("another plan is returned: %s", diff)
			}
			found := strings.Join(v.faults, "\n")
			if len(tc.want) == 0 && found != "" {
				t.Errorf("found what is not there:\n%s", found)
			}
			for _, want := range tc.want {
				if !strings.Contains(found, want) {
					t.Errorf("%q was not found, only:\n%s", want, found)
				}
			}
		})
	}
}

func TestAnErrorThatThePlanDoesNotTellIsFound(t *testing.T) {
	s := newShelf(map[string]string{})
	r := &shelving{plan: func() []plan.Change { return nil }, apply: func() error { return fmt.Errorf("no jars") }}
	v := &verdict{T: t}
	plantest.Delete(v, s, "shelf", r)
	if found := strings.Join(v.faults, "\n"); !strings.Contains(found, "the plan is planned") || !strings.Contains(found, "no jars") {
		t.Errorf("found only %q", found)
	}
}
