package plan_test

import (
	"bytes"
	"fmt"
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/operatorkit/operatorkit/framework/plan"
)

// planOf is a plan of one resource.
func planOf(set string, changes ...plan.Change) *plan.Plan {
	return &plan.Plan{
		Framework: "websites", Object: plan.Object{Kind: "Website", Namespace: "default", Name: "home"}, Event: plan.UpdateEvent,
		ResourceSet: set, Outcome: plan.Planned, Resources: []plan.Resource{{Name: "pages", Changes: changes}},
	}
}

func page(name string) plan.Object {
	return plan.Object{APIVersion: "v1", Kind: "ConfigMap", Namespace: "default", Name: name}
}

func field(path string, before, after any) plan.FieldChange {
	return plan.FieldChange{Path: path, Old: before, New: after}
}

func updated(name string, fields ...plan.FieldChange) plan.Change {
	return plan.Change{Action: plan.Update, Object: page(name), Fields: fields}
}

func TestCompareTellsWhatOnlyOneOfThePlansWouldChange(t *testing.T) {
	title, color := field("data.title", "Home", "Start"), field("data.color", nil, "green")
	removal := plan.Change{Action: plan.Delete, Object: page("a")}
	creation := plan.Change{Action: plan.Create, Object: page("a"), Fields: []plan.FieldChange{title, color}}
	versioned := updated("a", title)
	versioned.Object.UID, versioned.Object.Version = "uid", "7"
	told := func(description string) plan.Change {
		return plan.Change{Action: plan.Update, Object: plan.Object{Name: "motd"}, Description: description}
	}
	secret := func(before, after any) plan.Change {
		return updated("a", plan.FieldChange{Path: "data.password", Old: before, New: after, Sensitive: true})
	}
	of := func(active, shadow *plan.Change) plan.Divergence {
		d := plan.Divergence{Resource: "pages", Active: active, Shadow: shadow}
		if d.Object = (plan.Object{}); shadow != nil {
			d.Object = shadow.Object
		} else {
			d.Object = active.Object
		}
		return d
	}
	for name, tt := range map[string]struct {
		active, shadow []plan.Change
		want           []plan.Divergence
		places         []string
	}{
		"nothing on both sides": {nil, nil, nil, nil},
		"only the shadow updates": {nil, []plan.Change{updated("a", title)},
			[]plan.Divergence{of(nil, new(updated("a", title)))}, []string{"ConfigMap data.title"}},
		"only the active set updates": {[]plan.Change{updated("a", title)}, nil,
			[]plan.Divergence{of(new(updated("a", title)), nil)}, []string{"ConfigMap data.title"}},
		"only the shadow creates":             {nil, []plan.Change{creation}, []plan.Divergence{of(nil, &creation)}, []string{"create ConfigMap"}},
		"only the shadow deletes":             {nil, []plan.Change{removal}, []plan.Divergence{of(nil, &removal)}, []string{"delete ConfigMap"}},
		"both change the same":                {[]plan.Change{updated("a", title)}, []plan.Change{updated("a", title)}, nil, nil},
		"both in another order":               {[]plan.Change{updated("a", title), updated("b", color)}, []plan.Change{updated("b", color), updated("a", title)}, nil, nil},
		"values before and versions are moot": {[]plan.Change{updated("a", field("data.title", "Old", "Start"))}, []plan.Change{versioned}, nil, nil},
		"other values, and a field more": {
			[]plan.Change{updated("a", title)}, []plan.Change{updated("a", field("data.title", "Home", "Begin"), color)},
			[]plan.Divergence{of(new(updated("a", title)), new(updated("a", field("data.title", "Home", "Begin"), color)))},
			[]string{"ConfigMap data.title", "ConfigMap data.color"},
		},
		"of equal actions only what differs is told": {
			[]plan.Change{creation}, []plan.Change{{Action: plan.Create, Object: page("a"), Fields: []plan.FieldChange{title}}},
			[]plan.Divergence{of(&plan.Change{Action: plan.Create, Object: page("a"), Fields: []plan.FieldChange{color}},
				&plan.Change{Action: plan.Create, Object: page("a")})},
			[]string{"ConfigMap data.color"},
		},
		"other actions": {[]plan.Change{updated("a", title)}, []plan.Change{removal},
			[]plan.Divergence{of(new(updated("a", title)), &removal)}, []string{"delete ConfigMap", "ConfigMap data.title"}},
		"several changes of one object": {
			[]plan.Change{removal, creation}, []plan.Change{creation},
			[]plan.Divergence{of(&removal, nil)}, []string{"delete ConfigMap"},
		},
		"descriptions": {[]plan.Change{told("say hello")}, []plan.Change{told("say goodbye")},
			[]plan.Divergence{of(new(told("say hello")), new(told("say goodbye")))}, []string{"update pages"}},
		"values that must not be shown": {[]plan.Change{secret(plan.Redacted, plan.Redacted)}, []plan.Change{secret(plan.Redacted, plan.Redacted)}, nil, nil},
		"a value that must not be shown goes away": {[]plan.Change{secret(plan.Redacted, plan.Redacted)}, []plan.Change{secret(plan.Redacted, nil)},
			[]plan.Divergence{of(new(secret(plan.Redacted, plan.Redacted)), new(secret(plan.Redacted, nil)))}, []string{"ConfigMap data.password"}},
	} {
		t.Run(name, func(t *testing.T) {
			active, shadow := planOf("v1", tt.active...), planOf("v2", tt.shadow...)
			c := plan.Compare(active, shadow)
			if diff := cmp.Diff(tt.want, c.Differences); diff != "" {
				t.Errorf("differences (-want +got):\n%s", diff)
			}
			if differs := c.Verdict() == plan.Differs; differs != (tt.want != nil) {
				t.Errorf("the verdict is %q", c.Verdict())
			}
			var places []string
			for _, p := range c.Places() {
				places = append(places, p.String())
			}
			if diff := cmp.Diff(tt.places, places); diff != "" {
				t.Errorf("places (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(planOf("v1", tt.active...), active); diff != "" {
				t.Errorf("the active plan was changed:\n%s", diff)
			}
			if diff := cmp.Diff(planOf("v2", tt.shadow...), shadow); diff != "" {
				t.Errorf("the shadow's plan was changed:\n%s", diff)
			}
		})
	}
}

func TestCompareMatchesResourcesByTheirNames(t *testing.T) {
	active, shadow := planOf("v1", updated("a", field("data.x", 1, 2))), planOf("v2")
	shadow.Resources = []plan.Resource{
		{Name: "assets", Changes: []plan.Change{updated("a", field("data.x", 1, 2))}},
		{Name: "jobs", Opaque: true},
	}
	c := plan.Compare(active, shadow)

	var resources []string
	for _, d := range c.Differences {
		resources = append(resources, fmt.Sprintf("%s active %t shadow %t", d.Resource, d.Active != nil, d.Shadow != nil))
	}
	if diff := cmp.Diff([]string{"assets active false shadow true", "pages active true shadow false"}, resources); diff != "" {
		t.Errorf("differences (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"jobs"}, c.Opaque); diff != "" {
		t.Errorf("resources that can't tell (-want +got):\n%s", diff)
	}
}

func TestPlanThatFailsCanNotBeCompared(t *testing.T) {
	failing := func(set string) *plan.Plan {
		p := planOf(set)
		p.Outcome, p.Reason = plan.Failed, `resource "pages" fails`
		p.Resources[0].Error = `resource "pages": get current state: boom`
		return p
	}
	inContext := planOf("v2")
	inContext.Outcome, inContext.Reason, inContext.Resources = plan.Failed, "initialise context: boom", nil
	for name, tt := range map[string]struct {
		active, shadow *plan.Plan
		want           string
	}{
		"the shadow":             {planOf("v1"), failing("v2"), `resource "pages": get current state: boom`},
		"before any resource":    {planOf("v1"), inContext, "initialise context: boom"},
		"the active set":         {failing("v1"), planOf("v2"), `the active resource set can't be planned: resource "pages": get current state: boom`},
		"what the shadow starts": {planOf("v1"), func() *plan.Plan { p := failing("v2"); p.Resources[0].Changes = []plan.Change{updated("a")}; return p }(), `resource "pages": get current state: boom`},
	} {
		t.Run(name, func(t *testing.T) {
			c := plan.Compare(tt.active, tt.shadow)
			if c.Error != tt.want || c.Verdict() != plan.NotComparable || c.Differences != nil {
				t.Errorf("got %+v, want the error %q alone", c, tt.want)
			}
		})
	}
}

func TestSummaryCountsObjectsAndPlaces(t *testing.T) {
	compared := func(shadow string, changes ...plan.Change) *plan.Comparison {
		return plan.Compare(planOf("v1"), planOf(shadow, changes...))
	}
	failed := compared("v2")
	failed.Error = "boom"
	summaries := plan.Summarize([]*plan.Comparison{
		compared("v2", updated("a", field("data.x", 1, 2), field("data.y", 1, 2)), updated("b", field("data.y", 1, 2))),
		compared("v2", updated("c", field("data.y", 1, 2))),
		compared("v2"),
		compared("v3"),
		failed,
	})
	want := []plan.ShadowSummary{
		{Framework: "websites", Shadow: "v2", Objects: 4, Differing: 2, Failed: 1, Places: []plan.PlaceCount{
			{Place: plan.Place{Resource: "pages", Kind: "ConfigMap", Path: "data.y"}, Objects: 2},
			{Place: plan.Place{Resource: "pages", Kind: "ConfigMap", Path: "data.x"}, Objects: 1},
		}},
		{Framework: "websites", Shadow: "v3", Objects: 1},
	}
	if diff := cmp.Diff(want, summaries); diff != "" {
		t.Errorf("summaries (-want +got):\n%s", diff)
	}
	var sentences []string
	for _, s := range summaries {
		sentences = append(sentences, s.String())
	}
	if diff := cmp.Diff([]string{"v2 would change 2 of 4 objects, 1 can't be compared", "v3 would change 0 of 1 object"}, sentences); diff != "" {
		t.Errorf("sentences (-want +got):\n%s", diff)
	}
}

func TestPlacesBeyondFiftyAreCountedOnly(t *testing.T) {
	objects := map[plan.Place]int{}
	for n := range 60 {
		objects[plan.Place{Resource: "pages", Kind: "ConfigMap", Path: fmt.Sprintf("data.f%02d", n)}] = n + 1
	}
	most, others := plan.RankPlaces(objects)
	if len(most) != 50 || others != 10 || most[0].Objects != 60 || most[49].Objects != 11 {
		t.Errorf("%d places and %d others, from %v to %v", len(most), others, most[0], most[49])
	}
}

// shown are comparisons with every kind of difference.
func shown() []*plan.Comparison {
	same := plan.Compare(planOf("v1"), planOf("v2"))
	differs := plan.Compare(
		planOf("v1", plan.Change{Action: plan.Delete, Object: page("old")}, updated("about", field("data.title", "About", "Us"))),
		planOf("v2", updated("home", field("data.title", "Home", "\x1b[31mStart"), field("data.color", nil, "green")),
			plan.Change{Action: plan.Create, Object: page("new")}, updated("about", field("data.title", "About", "We")),
			updated("token", plan.FieldChange{Path: "data.password", Old: plan.Redacted, New: plan.Redacted, Sensitive: true})))
	opaque := planOf("v2")
	opaque.Resources = append(opaque.Resources, plan.Resource{Name: "jobs", Opaque: true})
	failing := planOf("")
	failing.Outcome, failing.Reason = plan.Failed, "initialise context: boom"
	return []*plan.Comparison{same, differs, plan.Compare(planOf("v1"), opaque), plan.Compare(failing, planOf("v2"))}
}

func TestComparisonsAreWrittenAsTextAndJSON(t *testing.T) {
	for file, write := range map[string]func(w io.Writer) error{
		"shadow.txt":       func(w io.Writer) error { return plan.WriteShadowText(w, shown(), plan.TextOptions{}) },
		"shadow.color.txt": func(w io.Writer) error { return plan.WriteShadowText(w, shown(), plan.TextOptions{Color: true}) },
		"shadow.json":      func(w io.Writer) error { return plan.WriteShadowJSON(w, shown()) },
	} {
		var got bytes.Buffer
		if err := write(&got); err != nil {
			t.Fatal(err)
		}
		wantGolden(t, file, got.Bytes())
	}
}
