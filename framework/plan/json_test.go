package plan_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/operatorkit/operatorkit/framework/plan"
)

func TestJSONHoldsEverything(t *testing.T) {
	wantGolden(t, "plan.json", []byte(jsonOf(t, []*plan.Plan{website(), simple("other")})))
}

func TestPlansAreReadAsTheyWereWritten(t *testing.T) {
	for name, plans := range map[string][]*plan.Plan{
		"none":    {},
		"several": {website(), simple("other")},
		"numbers": {simple("a", plan.Change{
			Action: plan.Update, Object: plan.Object{Name: "a"},
			Fields: []plan.FieldChange{
				{Path: "int", Old: int64(9007199254740993), New: int64(-1)},
				{Path: "float", Old: 0.25, New: 1e300},
				{Path: "deep", New: map[string]any{"list": []any{int64(1), 0.5, "x", true, nil}}},
			},
		})},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := plan.ReadJSON(strings.NewReader(jsonOf(t, plans)))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(plans, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestWithoutPlansJSONIsAnEmptyList(t *testing.T) {
	want := "{\n  \"version\": 1,\n  \"plans\": [],\n  \"summary\": {\n    \"create\": 0,\n    \"update\": 0,\n    \"delete\": 0\n  }\n}\n"
	if diff := cmp.Diff(want, jsonOf(t, nil)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWhatIsNoSavedPlanIsRefused(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"nothing":         {"", "EOF"},
		"no JSON":         {"Website default/home", "must be the JSON"},
		"half a file":     {`{"version":1,"plans":[{"object"`, "must be the JSON"},
		"other JSON":      {`{"kind":"List"}`, "version 0"},
		"a later version": {`{"version":2,"plans":[]}`, "version 2"},
		"two of them":     {`{"version":1,"plans":[]}{"version":1,"plans":[]}`, "something after them"},
		"a null":          {`{"version":1,"plans":[null]}`, "plan 0 is null"},
	} {
		t.Run(name, func(t *testing.T) {
			plans, err := plan.ReadJSON(strings.NewReader(tc.text))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v and %v, want an error with %q", plans, err, tc.want)
			}
		})
	}
}

func TestFieldsOfLaterVersionsArePassedOver(t *testing.T) {
	text := `{"version":1,"new":1,"plans":[{"new":1,"object":{"name":"a"},"event":"update","outcome":"planned"}]}` + "\n"
	plans, err := plan.ReadJSON(strings.NewReader(text))
	if err != nil || len(plans) != 1 || plans[0].Object.Name != "a" {
		t.Errorf("got %v and %v", plans, err)
	}
}

func FuzzReadJSON(f *testing.F) {
	f.Add([]byte(`{"version":1,"plans":[{"resources":[{"changes":[{"fields":[{"path":"a","old":1,"new":[1.5,"x"]}]}]}]}]}`))
	f.Add([]byte(`{"version":1,"plans":[null]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		plans, err := plan.ReadJSON(bytes.NewReader(data))
		if err != nil {
			return
		}
		again, err := plan.ReadJSON(strings.NewReader(jsonOf(t, plans)))
		if err != nil {
			t.Fatal(err)
		}
		for i := range plans {
			if !plan.Equal(plans[i], again[i]) {
				t.Errorf("another plan after writing and reading it:\n%s", plan.Difference(plans[i], again[i]))
			}
		}
		_ = text(t, plans, plan.TextOptions{Color: true})
	})
}
