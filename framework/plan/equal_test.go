package plan_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/operatorkit/operatorkit/framework/plan"
)

func TestWhatMakesPlansDifferent(t *testing.T) {
	first := func(p *plan.Plan) *plan.Change { return &p.Resources[0].Changes[0] }
	for name, tc := range map[string]struct {
		change func(p *plan.Plan)
		// want are the lines that differ; none for plans that are the same.
		want string
	}{
		"nothing":                     {func(*plan.Plan) {}, ""},
		"the version of the object":   {func(p *plan.Plan) { p.Object.Version = "99" }, ""},
		"the version of what changes": {func(p *plan.Plan) { p.Resources[0].Changes[1].Object.Version = "99" }, ""},
		"an empty list":               {func(p *plan.Plan) { p.Resources[3].Changes = []plan.Change{} }, ""},
		"a number in another Go type": {func(p *plan.Plan) { p.Resources[2].Changes[1].Fields[0].Old = 1.0 }, ""},

		"another object made anew": {
			func(p *plan.Plan) { p.Object.UID = "u-2" },
			"- update of example.com/v1 Website default/home (UID u-home)\n+ update of example.com/v1 Website default/home (UID u-2)\n",
		},
		"the event":        {func(p *plan.Plan) { p.Event = plan.DeleteEvent }, "+ delete of"},
		"the resource set": {func(p *plan.Plan) { p.ResourceSet = "v2" }, `+ framework "websites", resource set "v2"`},
		"the framework":    {func(p *plan.Plan) { p.Framework = "others" }, `+ framework "others"`},
		"the outcome":      {func(p *plan.Plan) { p.Outcome = plan.Planned }, "+ planned"},
		"an action":        {func(p *plan.Plan) { first(p).Action = plan.Update }, "+   update v1 ConfigMap default/about"},
		"a new value":      {func(p *plan.Plan) { first(p).Fields[2].New = "x" }, `+     metadata.labels.app: "x"`},
		"an old value":     {func(p *plan.Plan) { first(p).Fields[2].Old = "x" }, `+     metadata.labels.app: "x" -> "home"`},
		"a field less":     {func(p *plan.Plan) { first(p).Fields = first(p).Fields[:2] }, `-     metadata.labels.app: "home"`},
		"a description":    {func(p *plan.Plan) { first(p).Description = "hello" }, "+     hello"},
		"a change more": {
			func(p *plan.Plan) {
				p.Resources[3].Changes = []plan.Change{{Action: plan.Delete, Object: plan.Object{Name: "x"}}}
			},
			"+   delete x",
		},
		"the order of changes": {
			func(p *plan.Plan) { c := p.Resources[0].Changes; c[0], c[2] = c[2], c[0] },
			"-   delete v1 ConfigMap default/gone (UID u-gone)",
		},
		"a resource less": {func(p *plan.Plan) { p.Resources = p.Resources[:7] }, `- resource "mail"`},
		"opaqueness":      {func(p *plan.Plan) { p.Resources[4].Opaque = false }, "-   can't tell what it would change"},
		"what is skipped": {func(p *plan.Plan) { p.Resources[5].Skipped = "" }, "-   skipped: deletions are not allowed"},
		"an error":        {func(p *plan.Plan) { p.Resources[6].Error = "x" }, "+   error: x"},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := website(), website()
			tc.change(b)
			if got := plan.Equal(a, b); got != (tc.want == "") {
				t.Errorf("Equal is %v", got)
			}
			got := plan.Difference(a, b)
			if (tc.want == "") != (got == "") || !strings.Contains(got, tc.want) {
				t.Errorf("the difference lacks %q:\n%s", tc.want, got)
			}
		})
	}
}

func TestADifferenceIsReadable(t *testing.T) {
	a, b := website(), website()
	b.Resources[0].Changes[1].Fields = b.Resources[0].Changes[1].Fields[1:]
	b.Resources[1].Changes = nil
	wantGolden(t, "difference.txt", []byte(plan.Difference(a, b)))
}

func TestNoPlanDiffersFromAPlan(t *testing.T) {
	if plan.Equal(nil, website()) || !plan.Equal(nil, nil) {
		t.Error("no plan is taken for a plan")
	}
	if diff := cmp.Diff("", plan.Difference(nil, nil)); diff != "" {
		t.Error(diff)
	}
}
