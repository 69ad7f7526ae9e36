package plan_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/operatorkit/operatorkit/framework/plan"
)

func TestTextTellsTheOwnerOfACreatedObjectOnOneLine(t *testing.T) {
	reference := func(name string) []plan.FieldChange {
		return []plan.FieldChange{
			{Path: "metadata.ownerReferences[name=" + name + "].kind", New: "Website"},
			{Path: "metadata.ownerReferences[name=" + name + "].uid", New: "u"},
		}
	}
	marks := []plan.FieldChange{
		{Path: `metadata.annotations["operatorkit.io/owner"]`, New: "Website.example.com/default/home"},
		{Path: `metadata.annotations["operatorkit.io/operator"]`, New: "web"},
		{Path: `metadata.annotations["operatorkit.io/framework"]`, New: "websites"},
		{Path: `metadata.annotations["operatorkit.io/resource"]`, New: "pages"},
		{Path: `metadata.labels["operatorkit.io/operator"]`, New: "v1_web"},
		{Path: `metadata.labels["operatorkit.io/owner"]`, New: "v1-0123"},
	}
	text := func(action plan.Action, fields ...[]plan.FieldChange) string {
		c := plan.Change{Action: action, Object: plan.Object{Kind: "ConfigMap", Name: "a"}, Fields: []plan.FieldChange{{Path: "data.a", New: "b"}}}
		for _, more := range fields {
			c.Fields = append(c.Fields, more...)
		}
		return text(t, []*plan.Plan{simple("home", c)}, plan.TextOptions{})
	}
	const head, foot = "Website default/home (update)\n  pages\n", "\n1 to create, 0 to update, 0 to delete\n"
	for name, test := range map[string]struct{ got, want string }{
		"marks and reference": {text(plan.Create, marks, reference("home")),
			head + "    + ConfigMap a\n        + owner: \"Website.example.com/default/home\"\n        + data.a: \"b\"\n" + foot},
		"another owner beside it is told": {text(plan.Create, marks, reference("other")),
			head + "    + ConfigMap a\n        + owner: \"Website.example.com/default/home\"\n        + data.a: \"b\"\n" +
				"        + metadata.ownerReferences[name=other].kind: \"Website\"\n        + metadata.ownerReferences[name=other].uid: \"u\"\n" + foot},
		"without marks everything is told": {text(plan.Create, reference("home")),
			head + "    + ConfigMap a\n        + data.a: \"b\"\n" +
				"        + metadata.ownerReferences[name=home].kind: \"Website\"\n        + metadata.ownerReferences[name=home].uid: \"u\"\n" + foot},
		"so it is for an object that exists": {text(plan.Update, marks[:1]),
			head + "    ~ ConfigMap a\n        + data.a: \"b\"\n" +
				"        + metadata.annotations[\"operatorkit.io/owner\"]: \"Website.example.com/default/home\"\n\n0 to create, 1 to update, 0 to delete\n"},
	} {
		if diff := cmp.Diff(test.want, test.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
