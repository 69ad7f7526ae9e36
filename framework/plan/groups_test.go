package plan_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/operatorkit/operatorkit/framework/plan"
)

func TestChangesThatSeveralPlansHaveAreListedOnce(t *testing.T) {
	var plans []*plan.Plan
	for i := range 12 {
		name := fmt.Sprint("app-", i)
		image := plan.FieldChange{Path: "spec.template.spec.containers[name=app].image", Old: "app:1", New: "app:2"}
		if i == 11 {
			image.New = "app:3"
		}
		changes := []plan.Change{{Action: plan.Update, Object: plan.Object{Kind: "Deployment", Name: name}, Fields: []plan.FieldChange{image}}}
		if i < 4 {
			changes = append(changes, plan.Change{Action: plan.Delete, Object: plan.Object{Kind: "ConfigMap", Name: name}})
		}
		if i < 2 {
			changes = append(changes, plan.Change{Action: plan.Create, Object: plan.Object{Kind: "Service", Name: name}})
		}
		plans = append(plans, &plan.Plan{
			Object: plan.Object{Kind: "App", Name: name}, Event: plan.UpdateEvent, Outcome: plan.Planned,
			Resources: []plan.Resource{{Name: "objects", Changes: changes}},
		})
	}
	_, got, found := strings.Cut(text(t, plans, plan.TextOptions{}), "the same for several objects\n")
	want := `  11 objects: update Deployment: spec.template.spec.containers[name=app].image: "app:1" -> "app:2"
  4 objects: delete ConfigMap

2 to create, 12 to update, 4 to delete
`
	if !found || got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
	if all := text(t, plans[:2], plan.TextOptions{}); strings.Contains(all, "the same for") {
		t.Errorf("two plans have a list of what they share:\n%s", all)
	}
}

func TestWhatPlansShareHasNoSecretValues(t *testing.T) {
	var plans []*plan.Plan
	for i := range 3 {
		plans = append(plans, &plan.Plan{Outcome: plan.Planned, Resources: []plan.Resource{{Name: "objects", Changes: []plan.Change{{
			Action: plan.Update, Object: plan.Object{Kind: "Secret", Name: fmt.Sprint(i)},
			Fields: []plan.FieldChange{{Path: "data.token", Old: plan.Redacted, New: plan.Redacted, Sensitive: true}},
		}}}}})
	}
	if got := text(t, plans, plan.TextOptions{}); !strings.Contains(got, "3 objects: update Secret: data.token: (sensitive, changed)") {
		t.Errorf("got:\n%s", got)
	}
}
