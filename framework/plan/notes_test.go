package plan_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/operatorkit/operatorkit/framework/plan"
)

// noted is a state with notes.
type noted []string

func (n noted) Notes() []string { return n }

// notedByPointer is one whose method has a pointer receiver.
type notedByPointer struct{ notes []string }

func (n *notedByPointer) Notes() []string { return n.notes }

// rash panics when it is asked for its notes.
type rash struct{ value any }

func (r rash) Notes() []string { panic(r.value) }

func TestADesiredStateNotesWhatStaysAsItIs(t *testing.T) {
	var none []string
	for name, tc := range map[string]struct {
		desired any
		want    []string
	}{
		"nothing":                    {nil, none},
		"a state without notes":      {map[string]string{"a": "b"}, none},
		"a state with notes":         {noted{"a waits for b"}, []string{"a waits for b"}},
		"a method of a pointer":      {notedByPointer{[]string{"a waits"}}, []string{"a waits"}},
		"a pointer":                  {&notedByPointer{[]string{"a waits"}}, []string{"a waits"}},
		"a pointer to nothing":       {(*notedByPointer)(nil), none},
		"a panic that may be secret": {rash{"hunter2"}, []string{"what stays as it is can't be told: panic: value of type string in github.com/operatorkit/operatorkit/framework/plan_test.rash.Notes (notes_test.go:25)"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, plan.Notes(tc.desired)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// noting is a plan with notes, and with the given changes.
func noting(name string, notes []string, changes ...plan.Change) *plan.Plan {
	p := simple(name, changes...)
	p.Resources[0].Notes = notes
	return p
}

func TestTextShowsNotesBelowChanges(t *testing.T) {
	create := plan.Change{Action: plan.Create, Object: plan.Object{Kind: "ConfigMap", Name: "a"}}
	for name, tc := range map[string]struct {
		plans []*plan.Plan
		want  string
	}{
		"beside a change": {
			[]*plan.Plan{noting("x", []string{"b waits for a", "c waits for b"}, create)},
			"Website default/x (update)\n  pages\n    + ConfigMap a\n    · b waits for a\n    · c waits for b\n\n1 to create, 0 to update, 0 to delete\n",
		},
		"on their own": {
			[]*plan.Plan{noting("x", []string{"b waits for a"})},
			"Website default/x (update)\n  pages\n    · b waits for a\n\n0 to create, 0 to update, 0 to delete\n",
		},
		"of one among several plans": {
			[]*plan.Plan{simple("x"), noting("y", []string{"b waits for a"})},
			"Website default/y (update)\n  pages\n    · b waits for a\n\n1 of 2 objects need no change\n\n0 to create, 0 to update, 0 to delete\n",
		},
		"that would drive the terminal, or are long": {
			[]*plan.Plan{noting("x", []string{"\x1b[2Jb", strings.Repeat("long ", 100)})},
			"Website default/x (update)\n  pages\n    · \\u001b[2Jb\n    · " + strings.Repeat("long ", 40) + "… (300 more)\n\n0 to create, 0 to update, 0 to delete\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, text(t, tc.plans, plan.TextOptions{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestNotesDoNotMakeAnotherPlan(t *testing.T) {
	a, b := noting("x", []string{"b waits for a"}), noting("x", nil)
	if !plan.Equal(a, b) || plan.Difference(a, b) != "" {
		t.Errorf("plans with other notes differ:\n%s", plan.Difference(a, b))
	}
	if c := plan.Compare(a, b); len(c.Differences) > 0 {
		t.Errorf("a shadow with other notes differs: %+v", c.Differences)
	}
}
