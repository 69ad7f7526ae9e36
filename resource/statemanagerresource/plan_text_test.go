package statemanagerresource_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/context/updateallowedcontext"
	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/plan"
)

// wantPlan compares a plan with what people should read, and checks that nothing was carried out for it.
func (k *kit) wantPlan(p *plan.Plan, err error, want string) {
	k.t.Helper()
	if err != nil {
		k.t.Fatal(err)
	}
	var b strings.Builder
	if err := plan.WriteText(&b, []*plan.Plan{p}, plan.TextOptions{}); err != nil {
		k.t.Fatal(err)
	}
	if diff := cmp.Diff(want, b.String()); diff != "" {
		k.t.Errorf("-want +got:\n%s", diff)
	}
	k.wantDone()
}

func TestThePlanShowsObjectByObjectInTheOrderInWhichTheyChange(t *testing.T) {
	frame := operation{Changes: []plan.Change{{
		Action: plan.Update, Object: plan.Object{Kind: "Profile", Namespace: "platform", Name: "prod"}, Description: "goes on",
	}}}
	web := operationOf("web",
		changeOf(plan.Update, "web", plan.FieldChange{Path: "data.text", Old: "old", New: "new"}),
		changeOf(plan.Create, "web-more", plan.FieldChange{Path: "data.text", New: "more"}),
		changeOf(plan.Delete, "web-less"),
	)
	web.Notes = []string{"ConfigMap apps/web-kept stays: it is annotated so"}
	waiting := operation{Service: serviceKey("app"), Notes: []string{"service apps/app waits until these services are Deployed: apps/web"}}
	broken := operation{Service: serviceKey("broken"), Err: errors.New("chart broken 1.0.0 is not in the repository")}
	k := newKit(t, frame, deletes("zoo"), web, waiting, broken, creates("api"))
	p, err := framework.PlanUpdate(t.Context(), prod(), k.resources)
	k.wantPlan(p, err, `ServiceSet platform/prod (update)
  failed: resource "service-faults" fails
  services
    ~ Profile platform/prod: goes on
    - ConfigMap apps/zoo
    ~ ConfigMap apps/web
        ~ data.text: "old" -> "new"
    + ConfigMap apps/web-more
        + data.text: "more"
    - ConfigMap apps/web-less
    + ConfigMap apps/api
    · ConfigMap apps/web-kept stays: it is annotated so
    · service apps/app waits until these services are Deployed: apps/web
    · service apps/broken is left alone: chart broken 1.0.0 is not in the repository
  service-faults
    error: resource "service-faults": plan: service apps/broken: chart broken 1.0.0 is not in the repository

2 to create, 2 to update, 2 to delete
`)
}

func TestThePlanOfADeletionShowsWhatGoesAndWhatWaits(t *testing.T) {
	web := deletes("web")
	web.Notes = []string{"PersistentVolumeClaim apps/data stays: it is annotated so"}
	k := newKit(t, web, operation{Service: serviceKey("db"), Notes: []string{"service apps/db waits until these services, which depend on it, are gone: apps/web"}})
	k.work.Left = true
	p, err := framework.PlanDelete(t.Context(), prod(), k.resources)
	k.wantPlan(p, err, `ServiceSet platform/prod (delete)
  services
    - ConfigMap apps/web
    · PersistentVolumeClaim apps/data stays: it is annotated so
    · service apps/db waits until these services, which depend on it, are gone: apps/web
  service-faults: nothing to do

0 to create, 0 to update, 1 to delete
`)
}

func TestThePlanSaysWhatIsLeftOutWhereUpdatesAreForbidden(t *testing.T) {
	mixed := operationOf("mixed", changeOf(plan.Create, "mixed"), changeOf(plan.Delete, "mixed-old"))
	k := newKit(t, deletes("old"), updates("web"), mixed, creates("new"))
	p, err := framework.PlanUpdate(updateallowedcontext.NewContext(t.Context()), prod(), k.resources)
	k.wantPlan(p, err, `ServiceSet platform/prod (update)
  services
    + ConfigMap apps/new
    - ConfigMap apps/old
    skipped: updates are not allowed
  service-faults: nothing to do

1 to create, 0 to update, 1 to delete
`)
}

func TestWithoutWorkNothingIsPlannedAndNothingIsDone(t *testing.T) {
	for name, without := range map[string]func(*kit){
		"nobody knows":  func(k *kit) { k.work = nil },
		"nothing to do": func(*kit) {},
		"only notes":    func(k *kit) { k.work.Operations = []operation{{Notes: []string{"the cluster can't be reached"}}} },
		"only a fault": func(k *kit) {
			k.work.Operations = []operation{{Service: serviceKey("x"), Changes: creates("x").Changes, Err: errors.New("no")}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			k := newKit(t)
			without(k)
			for _, planned := range []func(context.Context, any, []framework.Resource) (*plan.Plan, error){framework.PlanUpdate, framework.PlanDelete} {
				p, err := planned(t.Context(), prod(), k.resources[:1])
				if err != nil || p.Counts().Any() || p.Outcome != plan.Planned {
					t.Errorf("plan: %+v, %v", p, err)
				}
			}
			for _, process := range []func(context.Context, any, []framework.Resource) error{framework.ProcessUpdate, framework.ProcessDelete} {
				if err := process(t.Context(), prod(), k.resources[:1]); err != nil {
					t.Error(err)
				}
			}
			k.wantDone()
		})
	}
}

func TestWhatCanNotBeComputedIsInThePlanAndChangesNothing(t *testing.T) {
	k := newKit(t, creates("web"))
	k.fails = errors.New("read ServiceTemplates: no route to host")
	p, err := framework.PlanUpdate(t.Context(), prod(), k.resources)
	if err != nil || p.Outcome != plan.Failed || !strings.Contains(p.Resources[0].Error, "no route to host") || p.Counts().Any() {
		t.Errorf("plan: %+v, %v", p, err)
	}
	for _, process := range []func(context.Context, any, []framework.Resource) error{framework.ProcessUpdate, framework.ProcessDelete} {
		if err := process(t.Context(), prod(), k.resources); !errors.Is(err, k.fails) || framework.IsPermanent(err) {
			t.Errorf("error = %v", err)
		}
	}
	k.wantDone()
}

// A whole set is named in a fault as it is in a log.
func TestWhatIsAboutAllServicesIsCalledTheServiceSet(t *testing.T) {
	k := newKit(t, operation{Service: client.ObjectKey{}, Err: errors.New("the profile belongs to somebody else")})
	p, err := framework.PlanUpdate(t.Context(), prod(), k.resources)
	if err != nil || len(p.Resources[0].Notes) != 1 || p.Resources[0].Notes[0] != "the service set is left alone: the profile belongs to somebody else" {
		t.Errorf("plan: %+v, %v", p, err)
	}
}
