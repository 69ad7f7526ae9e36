package plan_test

import (
	"bytes"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/operatorkit/operatorkit/framework/plan"
)

var update = flag.Bool("update", false, "write the golden files anew")

// wantGolden compares a text with a file in testdata.
func wantGolden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got), write it anew with -update if that is meant:\n%s", file, diff)
	}
}

func text(t *testing.T, plans []*plan.Plan, options plan.TextOptions) string {
	t.Helper()
	var b bytes.Buffer
	if err := plan.WriteText(&b, plans, options); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func jsonOf(t *testing.T, plans []*plan.Plan) string {
	t.Helper()
	var b bytes.Buffer
	if err := plan.WriteJSON(&b, plans); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// website is a plan that has one of everything.
func website() *plan.Plan {
	page := strings.Repeat("<p>same</p>\n", 8)
	return &plan.Plan{
		Framework: "websites",
		Object: plan.Object{
			APIVersion: "example.com/v1", Kind: "Website", Namespace: "default", Name: "home", UID: "u-home", Version: "41",
		},
		Event: plan.UpdateEvent, ResourceSet: "v1", Outcome: plan.Failed, Reason: `resource "dns" fails`,
		Resources: []plan.Resource{
			{Name: "pages", Changes: []plan.Change{
				{
					Action: plan.Create, Object: plan.Object{APIVersion: "v1", Kind: "ConfigMap", Namespace: "default", Name: "about"},
					Fields: []plan.FieldChange{
						{Path: `data["about.html"]`, New: "<h1>About</h1>\n<p>us</p>\n"}, {Path: "immutable", New: true},
						{Path: "metadata.labels.app", New: "home"},
					},
				},
				{
					Action: plan.Update,
					Object: plan.Object{APIVersion: "v1", Kind: "ConfigMap", Namespace: "default", Name: "home", UID: "u-cm", Version: "40"},
					Fields: []plan.FieldChange{
						{Path: `data["index.html"]`, Old: "<h1>Home</h1>\n" + page + "last", New: "<h1>Welcome</h1>\n" + page + "last\n"},
						{Path: `data["old.html"]`, Old: "x"}, {Path: `data["new.html"]`, New: "y"},
						{Path: "metadata.ownerReferences", Old: []any{map[string]any{"name": "a"}}, New: []any{}},
					},
				},
				{
					Action: plan.Delete,
					Object: plan.Object{APIVersion: "v1", Kind: "ConfigMap", Namespace: "default", Name: "gone", UID: "u-gone", Version: "12"},
				},
			}},
			{Name: "tokens", Changes: []plan.Change{{
				Action: plan.Update, Object: plan.Object{APIVersion: "v1", Kind: "Secret", Namespace: "default", Name: "token", UID: "u-s"},
				Fields: []plan.FieldChange{
					{Path: "data.added", New: plan.Redacted, Sensitive: true},
					{Path: "data.password", Old: plan.Redacted, New: plan.Redacted, Sensitive: true},
					{Path: "data.removed", Old: plan.Redacted, Sensitive: true},
					{Path: "type", Old: "Opaque", New: "kubernetes.io/tls"},
				},
			}}},
			{Name: "servers", Changes: []plan.Change{
				{Action: plan.Update, Object: plan.Object{Kind: "server", Name: "web-1"}, Description: "restart it"},
				{
					Action: plan.Update, Object: plan.Object{Kind: "server", Name: "web-2"},
					Fields: []plan.FieldChange{
						{Path: "weight", Old: int64(1), New: 0.5},
						{Path: "image", Old: strings.Repeat("registry/", 50) + "web:1", New: strings.Repeat("registry/", 50) + "web:2"},
						{Path: "note", New: strings.Repeat("ä", 300)},
					},
				},
			}, Notes: []string{"web-3 waits for web-2"}},
			{Name: "cache"},
			{Name: "legacy", Opaque: true},
			{Name: "deletions", Skipped: "deletions are not allowed"},
			{Name: "dns", Error: "apply: no such zone"},
			{Name: "mail", Skipped: "not reached: an earlier resource fails"},
		},
	}
}

// keysOf returns the keys of a map, sorted.
func keysOf[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
