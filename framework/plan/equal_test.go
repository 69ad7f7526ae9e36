package plan_test

import (
	"slices"
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

func TestPlansThatReadTheSameAndSayOtherThingsAreNotEqual(t *testing.T) {
	change := func(c plan.Change) *plan.Plan {
		return &plan.Plan{Resources: []plan.Resource{{Name: "r", Changes: []plan.Change{c}}}}
	}
	for name, plans := range map[string][2]*plan.Plan{
		"a line break, and a backslash with an n": {
			change(plan.Change{Description: "a\nb"}), change(plan.Change{Description: `a\nb`}),
		},
		"a field, and a description of one": {
			change(plan.Change{Fields: []plan.FieldChange{{Path: "a", New: "b"}}}), change(plan.Change{Description: `a: "b"`}),
		},
		"a namespace, and a name with a slash": {
			change(plan.Change{Object: plan.Object{Namespace: "a", Name: "b"}}), change(plan.Change{Object: plan.Object{Name: "a/b"}}),
		},
		"a path with a line break": {
			change(plan.Change{Fields: []plan.FieldChange{{Path: "a\nb", New: 1}}}), change(plan.Change{Fields: []plan.FieldChange{{Path: `a\nb`, New: 1}}}),
		},
		"a sensitive value, and one that is called so": {
			change(plan.Change{Fields: []plan.FieldChange{{Path: "a", New: plan.Redacted, Sensitive: true}}}),
			change(plan.Change{Description: "a: (sensitive)"}),
		},
	} {
		t.Run(name, func(t *testing.T) {
			if plan.Equal(plans[0], plans[1]) {
				t.Error("they are equal")
			}
			if diff := plan.Difference(plans[0], plans[1]); !strings.Contains(diff, "- ") || !strings.Contains(diff, "+ ") {
				t.Errorf("the difference does not show it:\n%s", diff)
			}
		})
	}
}

func TestElementsOfListsAreIdentifiedByTheKeysThatKubernetesHas(t *testing.T) {
	type m = map[string]any
	list := func(all ...any) m { return m{"list": all} }
	port := func(number int64, rest ...string) m {
		p := m{"containerPort": number}
		for i := 0; i < len(rest); i += 2 {
			p[rest[i]] = rest[i+1]
		}
		return p
	}
	mount := func(path, volume string) m { return m{"mountPath": path, "name": volume} }
	for name, tc := range map[string]struct {
		before, after map[string]any
		want          []plan.FieldChange
	}{
		"a port without a name in front": {
			list(port(80)), list(port(9090, "protocol", "TCP"), port(80, "protocol", "TCP")),
			[]plan.FieldChange{
				{Path: "list[containerPort=80,protocol=TCP].protocol", New: "TCP"},
				{Path: "list[containerPort=9090,protocol=TCP].containerPort", New: int64(9090)},
				{Path: "list[containerPort=9090,protocol=TCP].protocol", New: "TCP"},
			},
		},
		"one number with two protocols": {
			list(port(53, "protocol", "TCP"), port(53, "protocol", "UDP", "hostIP", "10.0.0.1")),
			list(port(53, "protocol", "UDP", "hostIP", "10.0.0.2"), port(53, "protocol", "TCP")),
			[]plan.FieldChange{
				{Path: "list", Old: []any{"53,TCP", "53,UDP"}, New: []any{"53,UDP", "53,TCP"}},
				{Path: "list[containerPort=53,protocol=UDP].hostIP", Old: "10.0.0.1", New: "10.0.0.2"},
			},
		},
		"a port of a Service without a name": {
			list(m{"port": int64(80), "targetPort": int64(1)}), list(m{"port": int64(80), "targetPort": int64(2)}),
			[]plan.FieldChange{{Path: "list[port=80,protocol=TCP].targetPort", Old: int64(1), New: int64(2)}},
		},
		"two mounts of one volume": {
			list(mount("/a", "data"), mount("/b", "data")), list(mount("/b", "data")),
			[]plan.FieldChange{{Path: "list[mountPath=/a].mountPath", Old: "/a"}, {Path: "list[mountPath=/a].name", Old: "data"}},
		},
		"an alias of a host": {
			list(m{"ip": "10.0.0.1"}, m{"ip": "10.0.0.2"}), list(m{"ip": "10.0.0.2"}),
			[]plan.FieldChange{{Path: "list[ip=10.0.0.1].ip", Old: "10.0.0.1"}},
		},
		"a list without a key": {
			list(m{"host": "a"}, m{"host": "b"}), list(m{"host": "a"}, m{"host": "c"}),
			[]plan.FieldChange{{Path: "list[1].host", Old: "b", New: "c"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := plan.Diff(tc.before, tc.after)
			slices.SortFunc(got, func(a, b plan.FieldChange) int { return strings.Compare(a.Path, b.Path) })
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestConditionsAreToldApartByTheirTypes(t *testing.T) {
	condition := func(of, status string) map[string]any { return map[string]any{"type": of, "status": status} }
	conditions := func(all ...any) map[string]any { return map[string]any{"conditions": all} }
	for name, tc := range map[string]struct {
		before, after map[string]any
		want          []plan.FieldChange
	}{
		"one more in front": {
			conditions(condition("Ready", "True")), conditions(condition("Synced", "False"), condition("Ready", "True")),
			[]plan.FieldChange{{Path: "conditions[type=Synced].status", New: "False"}, {Path: "conditions[type=Synced].type", New: "Synced"}},
		},
		"one that changes": {
			conditions(condition("Ready", "True"), condition("Synced", "True")), conditions(condition("Ready", "True"), condition("Synced", "False")),
			[]plan.FieldChange{{Path: "conditions[type=Synced].status", Old: "True", New: "False"}},
		},
		"another order": {
			conditions(condition("Ready", "True"), condition("Synced", "True")), conditions(condition("Synced", "True"), condition("Ready", "True")),
			[]plan.FieldChange{{Path: "conditions", Old: []any{"Ready", "Synced"}, New: []any{"Synced", "Ready"}}},
		},
		"a type that is there twice": {
			conditions(condition("Ready", "True"), condition("Ready", "False")), conditions(condition("Ready", "True"), condition("Ready", "True")),
			[]plan.FieldChange{{Path: "conditions[1].status", Old: "False", New: "True"}},
		},
		"names before types": {
			map[string]any{"ports": []any{map[string]any{"name": "a", "type": "x"}}}, map[string]any{"ports": []any{map[string]any{"name": "a", "type": "y"}}},
			[]plan.FieldChange{{Path: "ports[name=a].type", Old: "x", New: "y"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, plan.Diff(tc.before, tc.after)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
