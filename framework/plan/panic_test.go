package plan_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/operatorkit/operatorkit/framework/plan"
)

// bomb panics in each of its methods.
type bomb struct{ value any }

func (b bomb) String() string { panic(b.value) }

// mine panics when its changes are asked for.
type mine struct{ changes []plan.Change }

func (m mine) Changes() []plan.Change { return m.changes[:len(m.changes)+7] }

// loop holds itself.
type loop struct {
	Name string
	Next *loop
	All  []any
}

func TestAPanicOfTheAuthorsCodeIsAChangeThatCannotBeDescribed(t *testing.T) {
	for name, tc := range map[string]struct {
		part any
		want []string
	}{
		"with a value, which may be secret": {
			map[string]bomb{"a": {"hunter2"}},
			[]string{"update bomb a: can't be described: panic: value of type string in github.com/operatorkit/operatorkit/framework/plan_test.bomb.String (panic_test.go:14)"},
		},
		"of Go's runtime": {
			[]any{mine{}, release{"web", "v1"}},
			[]string{
				"update mine [0]: can't be described: panic: runtime error: slice bounds out of range [:7] with capacity 0 in github.com/operatorkit/operatorkit/framework/plan_test.mine.Changes (panic_test.go:19)",
				"update release web: web@v1",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, lines(plan.Describe(plan.Update, tc.part, nil))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestValuesThatHoldThemselvesEnd(t *testing.T) {
	l := &loop{Name: "a"}
	l.Next = l
	if got := plan.Describe(plan.Create, l, nil); len(got) != 1 || got[0].Object.Name != "a" {
		t.Errorf("got %v", lines(got))
	}
	l.All = []any{l, l.Next, &l, map[string]any{"l": l}}
	if got := plan.Describe(plan.Create, l, nil); len(got) != 1 || got[0].Object.Name != "a" {
		t.Errorf("got %v", lines(got))
	}
	elements := []any{nil, nil}
	elements[0], elements[1] = elements, elements
	if got := plan.Describe(plan.Delete, elements, nil); len(got) != 2 {
		t.Errorf("got %v", lines(got))
	}
}
