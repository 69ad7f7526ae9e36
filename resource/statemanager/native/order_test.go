package native_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager"
	"github.com/operatorkit/operatorkit/resource/statemanager/native"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
	"github.com/operatorkit/operatorkit/resource/statemanager/target"
)

// decisions is a world in which carriers only record, with templates for two charts and manifests.
func decisions(t *testing.T) (w *world, charts, manifests *recorder) {
	t.Helper()
	charts, manifests = newRecorder(v1alpha1.ServiceTypeHelm), newRecorder(v1alpha1.ServiceTypeResource)
	w = newWorld(t, charts, manifests)
	w.useEast()
	for _, version := range []string{"1.0.0", "2.0.0"} {
		w.template("chart-"+version[:1], v1alpha1.ServiceTemplateSpec{Helm: &v1alpha1.HelmChart{Repository: "oci://registry.invalid", Chart: "app", Version: version}})
	}
	w.configMap("files", map[string]string{"a.yaml": "kind: ConfigMap"})
	w.template("files", v1alpha1.ServiceTemplateSpec{Resources: &v1alpha1.FileSource{LocalSource: &v1alpha1.LocalSource{Kind: "ConfigMap", Name: "files"}}})
	return w, charts, manifests
}

func expect(t *testing.T, r *recorder, want ...string) {
	t.Helper()
	if got := r.done(); !slices.Equal(got, want) {
		t.Errorf("done: %q, want %q", got, want)
	}
}

func syncMode(mode v1alpha1.SyncMode, more ...string) *apiextensionsv1.JSON {
	return &apiextensionsv1.JSON{Raw: []byte(`{"syncMode":"` + string(mode) + `"` + strings.Join(more, "") + `}`)}
}

func TestServicesComeUpInOrderAndGoInReverse(t *testing.T) {
	w, charts, _ := decisions(t)
	w.set("a", "east", w.service("web", "chart-1", "db"), w.service("db", "chart-1"))
	charts.will(func(r *recorder) { r.health["db"] = v1alpha1.ServiceStateProvisioning })
	w.mustStep("a")
	if got := states(w.get("a")); got != "db Provisioning, web Pending" {
		t.Errorf("states: %s", got)
	}
	says(t, w.condition("a", "web", native.ConditionWaiting).Message, "db")
	w.mustStep("a")
	w.quiet("a")
	expect(t, charts, "create db")

	charts.will(func(r *recorder) { delete(r.health, "db") })
	w.settle("a", "db Deployed, web Deployed")
	expect(t, charts, "create web")
	w.quiet("a")

	// What another set depends on waits for it too.
	w.set("b", "east", w.service("app", "chart-1", "web"))
	w.settle("b", "app Deployed")
	expect(t, charts, "create app")
	if err := w.client.Delete(t.Context(), w.get("b")); err != nil {
		t.Fatal(err)
	}
	if err := w.client.Delete(t.Context(), w.get("a")); err != nil {
		t.Fatal(err)
	}
	if work := w.mustStep("a"); !work.Left {
		t.Error("nothing is left of a set whose services are needed still")
	}
	if got := states(w.get("a")); got != "db Deleting, web Deleting" {
		t.Errorf("states: %s", got)
	}
	expect(t, charts)
	w.settle("b", "")
	if work := w.mustStep("b"); work.Left {
		t.Errorf("something is left: %+v", work)
	}
	w.settle("a", "")
	expect(t, charts, "delete app", "delete web", "delete db")
	if work := w.mustStep("a"); work.Left || len(work.Operations) > 0 {
		t.Errorf("something is left: %+v", work)
	}
}

func TestAChangeWaitsForDependencies(t *testing.T) {
	w, charts, _ := decisions(t)
	w.set("a", "east", w.service("web", "chart-1", "db"), w.service("db", "chart-1"))
	w.settle("a", "db Deployed, web Deployed")
	charts.done()
	charts.will(func(r *recorder) { r.health["db"] = v1alpha1.ServiceStateFailed })
	w.change("a", func(s *v1alpha1.ServiceSet) {
		for i := range s.Spec.Services {
			s.Spec.Services[i].Template, s.Spec.Services[i].Version = "chart-2", "2"
		}
	})
	w.mustStep("a")
	w.mustStep("a")
	if got := states(w.get("a")); got != "db Failed, web Deployed" {
		t.Errorf("states: %s", got)
	}
	if web := w.stateOf("a", "web"); web.Template != "chart-1" || web.Version != "1" {
		t.Errorf("the state of web is about %s %s", web.Template, web.Version)
	}
	expect(t, charts, "update db")
	charts.will(func(r *recorder) { delete(r.health, "db") })
	w.settle("a", "db Deployed, web Deployed")
	expect(t, charts, "update web")
	if last := w.stateOf("a", "web").LastDeployed; last == nil || last.Template != "chart-2" || len(last.Fingerprint) != 32 {
		t.Errorf("last deployed: %+v", last)
	}
}

func TestAServiceIsHandedOverWithoutBeingTakenAway(t *testing.T) {
	w, charts, _ := decisions(t)
	w.set("old", "east", w.service("db", "chart-1"))
	w.settle("old", "db Deployed")
	w.set("new", "east", w.service("db", "chart-1"))
	w.settle("new", "db Deployed")
	expect(t, charts, "create db")
	says(t, w.condition("new", "db", native.ConditionWaiting).Message, "old")
	w.quiet("new")
	w.quiet("old")

	// Nobody forgets it before the other one has it.
	w.change("old", func(s *v1alpha1.ServiceSet) { s.Spec.Services = nil })
	w.set("old2", "east")
	w.change("new", func(s *v1alpha1.ServiceSet) { s.Spec.Services[0].DependsOn = w.dependsOn("absent") })
	w.mustStep("new")
	charts.done()
	w.change("new", func(s *v1alpha1.ServiceSet) { s.Spec.Services[0].DependsOn = nil })
	w.settle("new", "db Deployed")
	w.settle("old", "")
	for _, does := range charts.done() {
		if does != "update db" {
			t.Errorf("done: %s", does)
		}
	}
	w.quiet("new")
}

func TestAServiceThatNobodyTakesOverGoes(t *testing.T) {
	w, charts, _ := decisions(t)
	w.set("old", "east", w.service("db", "chart-1"))
	w.settle("old", "db Deployed")
	w.set("new", "east", w.service("db", "chart-1", "absent"))
	w.change("old", func(s *v1alpha1.ServiceSet) { s.Spec.Services = nil })
	w.mustStep("new")
	w.mustStep("old")
	if got := states(w.get("old")); got != "db Deployed" {
		t.Errorf("states while it is handed over: %s", got)
	}
	w.change("new", func(s *v1alpha1.ServiceSet) { s.Spec.Services = nil })
	w.settle("new", "")
	w.settle("old", "")
	expect(t, charts, "create db", "delete db")
}

func TestAServiceThatItsHeirUninstallsGoes(t *testing.T) {
	w, charts, _ := decisions(t)
	w.set("old", "east", w.service("db", "chart-1"))
	w.settle("old", "db Deployed")
	off := w.service("db", "chart-1")
	off.HelmAction, off.ServiceAccountName = v1alpha1.HelmActionUninstall, "deployer"
	w.set("new", "east", off)
	w.settle("new", "db Deleted")
	w.change("old", func(s *v1alpha1.ServiceSet) { s.Spec.Services = nil })
	w.settle("old", "")
	w.settle("new", "db Deleted")
	w.quiet("new")
	expect(t, charts, "create db", "delete db")
}

// TestAServiceGoesWithTheRightsOfTheSetThatUninstallsIt holds that nothing goes with more rights than those who want it gone ask for.
func TestAServiceGoesWithTheRightsOfTheSetThatUninstallsIt(t *testing.T) {
	w, charts, _ := decisions(t)
	w.set("old", "east", w.service("db", "chart-1"))
	w.settle("old", "db Deployed")
	for _, inEntry := range []bool{true, false} {
		off := w.service("db", "chart-1")
		off.HelmAction = v1alpha1.HelmActionUninstall
		if inEntry {
			off.ServiceAccountName = "deployer"
		}
		name := fmt.Sprintf("new-%v", inEntry)
		w.set(name, "east", off)
		if !inEntry {
			w.change(name, func(s *v1alpha1.ServiceSet) {
				s.Spec.Provider.Config = &apiextensionsv1.JSON{Raw: []byte(`{"serviceAccountName": "deployer"}`)}
			})
		}
		w.change("old", func(s *v1alpha1.ServiceSet) { s.Spec.Services = nil })
		if _, err := w.compute("old"); err != nil {
			t.Fatal(err)
		}
		if account := charts.asked(w.namespace, "db").Account; account == nil || account.Name != "deployer" {
			t.Errorf("it would be taken away as %v", account)
		}
		if err := w.client.Delete(t.Context(), w.get(name)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestWhatWasLostFromTheStatusIsTakenAway(t *testing.T) {
	w, charts, _ := decisions(t)
	w.set("a", "east", w.service("db", "chart-1"), w.service("web", "chart-1"))
	w.settle("a", "db Deployed, web Deployed")
	set := w.get("a")
	set.Status.Services = nil
	if err := w.client.Status().Update(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	w.change("a", func(s *v1alpha1.ServiceSet) { s.Spec.Services = s.Spec.Services[:1] })
	w.restart()
	w.settle("a", "db Deployed")
	expect(t, charts, "create db", "create web", "delete web")
}

func TestWhatWasLostFromTheStatusIsFoundAgainUntilTheStatusTellsOfIt(t *testing.T) {
	for name, change := range map[string]func(*v1alpha1.ServiceSet){
		"it is not listed any more": func(s *v1alpha1.ServiceSet) { s.Spec.Services = s.Spec.Services[:1] },
		"it is of another type":     func(s *v1alpha1.ServiceSet) { s.Spec.Services[1].Template = "files" },
	} {
		t.Run(name, func(t *testing.T) {
			w, charts, _ := decisions(t)
			w.set("a", "east", w.service("db", "chart-1"), w.service("web", "chart-1"))
			set := w.settle("a", "db Deployed, web Deployed")
			set.Status.Services = set.Status.Services[:1]
			if err := w.client.Status().Update(t.Context(), set); err != nil {
				t.Fatal(err)
			}
			w.change("a", change)
			w.restart()
			charts.will(func(r *recorder) { r.refuses["web"] = errors.New("no answer in time") })
			if _, err := w.compute("a"); err != nil {
				t.Fatal(err)
			}
			charts.will(func(r *recorder) { delete(r.refuses, "web") })
			for range 2 {
				work, err := w.compute("a")
				if err != nil {
					t.Fatal(err)
				}
				if len(work.Operations) != 1 || work.Operations[0].Service.Name != "web" || work.Operations[0].Changes[0].Action != plan.Delete {
					t.Errorf("the plan is %+v", work.Operations)
				}
			}
			w.mustStep("a")
			expect(t, charts, "create db", "create web", "delete web")
		})
	}
}

func TestAnotherTypeIsTakenAwayFirst(t *testing.T) {
	w, charts, manifests := decisions(t)
	w.set("a", "east", w.service("db", "chart-1"))
	w.settle("a", "db Deployed")
	w.change("a", func(s *v1alpha1.ServiceSet) { s.Spec.Services[0].Template = "files" })
	w.settle("a", "db Deployed")
	w.quiet("a")
	expect(t, charts, "create db", "delete db")
	expect(t, manifests, "create db")
	if got := w.stateOf("a", "db").Type; got != v1alpha1.ServiceTypeResource {
		t.Errorf("type: %s", got)
	}
}

func TestAnotherTypeIsTakenAwayFirstAlsoAfterItCouldNotBeLookedAt(t *testing.T) {
	w, charts, manifests := decisions(t)
	w.set("a", "east", w.service("db", "chart-1"))
	w.settle("a", "db Deployed")
	charts.will(func(r *recorder) { r.refuses["db"] = errors.New("no answer in time") })
	w.change("a", func(s *v1alpha1.ServiceSet) { s.Spec.Services[0].Template = "files" })
	if _, err := w.step("a"); err == nil {
		t.Error("the error is not told")
	}
	state := w.stateOf("a", "db")
	if state.Type != v1alpha1.ServiceTypeHelm || state.State != v1alpha1.ServiceStateFailed || state.Template != "files" {
		t.Errorf("the state is %+v", state)
	}
	says(t, state.FailureMessage, "take away what it was made of before", "no answer in time")
	expect(t, charts, "create db")

	charts.will(func(r *recorder) { delete(r.refuses, "db") })
	w.mustStep("a")
	expect(t, charts, "delete db")
	expect(t, manifests)
	w.settle("a", "db Deployed")
	w.quiet("a")
	expect(t, charts)
	expect(t, manifests, "create db")
	if got := w.stateOf("a", "db").Type; got != v1alpha1.ServiceTypeResource {
		t.Errorf("type: %s", got)
	}
}

func TestAFailureIsTheServicesOwn(t *testing.T) {
	w, charts, _ := decisions(t)
	w.set("a", "east", w.service("bad", "chart-1"), w.service("web", "chart-1", "bad"), w.service("x", "chart-1"))
	charts.will(func(r *recorder) { r.fails["bad"] = errors.New("hook failed: exit code 3\nmore lines") })
	if _, err := w.step("a"); err == nil {
		t.Error("the failure is not told")
	}
	w.settle("a", "bad Failed, web Pending, x Deployed")
	if got := w.stateOf("a", "bad").FailureMessage; got != "hook failed: exit code 3" {
		t.Errorf("message: %q", got)
	}
	if f := charts.asked(w.namespace, "bad").Failure; f == nil || f.Count < 1 || f.Message != "hook failed: exit code 3" {
		t.Errorf("the carrier does not know of the failure: %+v", f)
	}

	// What is permanent is not tried again before the set changes.
	charts.will(func(r *recorder) { r.fails["bad"] = framework.Permanent(errors.New("will never do")) })
	_, _ = w.step("a")
	charts.done()
	if _, err := w.step("a"); !framework.IsPermanent(err) {
		t.Errorf("the error is %v", err)
	}
	expect(t, charts)
	charts.will(func(r *recorder) { delete(r.fails, "bad") })
	w.change("a", func(s *v1alpha1.ServiceSet) { s.Spec.Services[2].Values = "a: 1" })
	w.settle("a", "bad Deployed, web Deployed, x Deployed")
	if got := w.stateOf("a", "bad").FailureMessage; got != "" {
		t.Errorf("message: %q", got)
	}
}

func TestWhatRunsStaysDeployedWhileItCanNotBeRead(t *testing.T) {
	w, charts, _ := decisions(t)
	w.configMap("values", map[string]string{"values.yaml": "a: 1"})
	db := w.service("db", "chart-1")
	db.ValuesFrom = []v1alpha1.ValuesFrom{{Kind: "ConfigMap", Name: "values"}}
	w.set("a", "east", db)
	before := w.settle("a", "db Deployed")

	// A registry that does not answer.
	charts.will(func(r *recorder) { r.refuses["db"] = errors.New("registry does not answer") })
	if _, err := w.step("a"); err == nil {
		t.Error("the error is not told")
	}
	after := w.get("a").Status.Services[0]
	if after.State != v1alpha1.ServiceStateDeployed || !after.LastStateTransitionTime.Equal(before.Status.Services[0].LastStateTransitionTime) {
		t.Errorf("the state is %+v", after)
	}
	says(t, w.condition("a", "db", native.ConditionResolved).Message, "registry does not answer")
	charts.will(func(r *recorder) { delete(r.refuses, "db") })

	// A template that is gone, and values that are.
	template := w.input("a").Templates["chart-1"]
	if err := w.client.Delete(t.Context(), template); err != nil {
		t.Fatal(err)
	}
	_, err := w.step("a")
	says(t, err.Error(), "ServiceTemplate "+w.namespace+"/chart-1", "create it")
	if got := states(w.get("a")); got != "db Deployed" {
		t.Errorf("states: %s", got)
	}

	// What is wanted now can't be had: that is a failure.
	w.change("a", func(s *v1alpha1.ServiceSet) { s.Spec.Services[0].Values = "b: 2" })
	_, _ = w.step("a")
	if got := states(w.get("a")); got != "db Failed" {
		t.Errorf("states: %s", got)
	}
	expect(t, charts, "create db")
}

func TestSyncModes(t *testing.T) {
	drift := []plan.Change{{Action: plan.Update, Object: plan.Object{Kind: "Thing", Name: "db"}, Fields: []plan.FieldChange{{Path: "spec.size"}}}}
	newer := func(s *v1alpha1.ServiceSet) { s.Spec.Services[0].Template, s.Spec.Services[0].Version = "chart-2", "2" }
	t.Run("DryRun", func(t *testing.T) {
		w, charts, _ := decisions(t)
		w.set("a", "east", w.service("web", "chart-1", "db"), w.service("db", "chart-1"))
		w.change("a", func(s *v1alpha1.ServiceSet) { s.Spec.Provider.Config = syncMode(v1alpha1.SyncModeDryRun) })
		w.settle("a", "db Pending, web Pending")
		w.quiet("a")
		expect(t, charts)
		for _, name := range []string{"db", "web"} {
			says(t, w.condition("a", name, native.ConditionPlanned).Message, "Thing", name, "spec.template", "chart-1")
		}
		w.change("a", func(s *v1alpha1.ServiceSet) { s.Spec.Provider.Config = nil })
		w.settle("a", "db Deployed, web Deployed")
		charts.done()
		w.change("a", func(s *v1alpha1.ServiceSet) {
			s.Spec.Provider.Config, s.Spec.Services = syncMode(v1alpha1.SyncModeDryRun), s.Spec.Services[1:]
		})
		w.settle("a", "db Deployed, web Deployed")
		says(t, w.condition("a", "web", native.ConditionPlanned).Message, "Thing", "web")
		expect(t, charts)
	})
	t.Run("OneTime", func(t *testing.T) {
		w, charts, _ := decisions(t)
		w.set("a", "east", w.service("db", "chart-1"))
		w.change("a", func(s *v1alpha1.ServiceSet) { s.Spec.Provider.Config = syncMode(v1alpha1.SyncModeOneTime) })
		w.settle("a", "db Deployed")
		w.change("a", newer)
		w.settle("a", "db Deployed")
		if s := w.stateOf("a", "db"); s.Template != "chart-1" {
			t.Errorf("the state is about %s", s.Template)
		}
		expect(t, charts, "create db")
	})
	t.Run("Continuous", func(t *testing.T) {
		w, charts, _ := decisions(t)
		w.set("a", "east", w.service("db", "chart-1"))
		w.settle("a", "db Deployed")
		charts.will(func(r *recorder) { r.drift["db"] = drift })
		w.settle("a", "db Deployed")
		says(t, w.condition("a", "db", native.ConditionDrifted).Message, "Thing db", "spec.size")
		expect(t, charts, "create db")
		w.change("a", newer)
		w.settle("a", "db Deployed")
		expect(t, charts, "update db")
	})
	t.Run("ContinuousWithDriftDetection", func(t *testing.T) {
		w, charts, _ := decisions(t)
		w.set("a", "east", w.service("db", "chart-1"))
		w.change("a", func(s *v1alpha1.ServiceSet) {
			s.Spec.Provider.Config = syncMode(v1alpha1.SyncModeContinuousWithDriftDetection)
		})
		w.settle("a", "db Deployed")
		charts.will(func(r *recorder) { r.drift["db"] = drift })
		w.mustStep("a")
		says(t, w.condition("a", "db", native.ConditionDrifted).Message, "Thing db", "spec.size")
		w.mustStep("a")
		w.quiet("a")
		if c := w.condition("a", "db", native.ConditionDrifted); c.Type != "" {
			t.Errorf("it is still drifted: %v", c)
		}
		expect(t, charts, "create db", "update db")
	})
}

func TestTheWorkEndsAtAConflictIfAskedTo(t *testing.T) {
	for _, stop := range []bool{false, true} {
		w, charts, _ := decisions(t)
		w.set("a", "east", w.service("a", "chart-1"), w.service("b", "chart-1"), w.service("c", "chart-1"))
		charts.will(func(r *recorder) { r.refuses["b"] = carrier.ErrConflict })
		if stop {
			w.change("a", func(s *v1alpha1.ServiceSet) {
				s.Spec.Provider.Config = syncMode(v1alpha1.SyncModeContinuous, `,"stopOnConflict":true`)
			})
			w.settle("a", "a Deployed, b Failed, c Pending")
			says(t, w.condition("a", "c", native.ConditionWaiting).Message, "nobody else", "b")
			expect(t, charts, "create a")
			continue
		}
		w.settle("a", "a Deployed, b Failed, c Deployed")
	}
}

func TestUninstallIsAStateOfItsOwn(t *testing.T) {
	w, charts, _ := decisions(t)
	w.set("a", "east", w.service("db", "chart-1"))
	w.settle("a", "db Deployed")
	w.change("a", func(s *v1alpha1.ServiceSet) { s.Spec.Services[0].HelmAction = v1alpha1.HelmActionUninstall })
	w.settle("a", "db Deleted")
	w.quiet("a")
	expect(t, charts, "create db", "delete db")
}

// TestWhatIsIgnoredIsNoReasonToRollOut holds that a release is not upgraded, with its hooks, for what concerns only how it is looked at.
func TestWhatIsIgnoredIsNoReasonToRollOut(t *testing.T) {
	w, charts, _ := decisions(t)
	w.set("a", "east", w.service("web", "chart-1"))
	w.settle("a", "web Deployed")
	charts.done()
	w.change("a", func(s *v1alpha1.ServiceSet) {
		s.Spec.Services[0].IgnoreDifferences = []v1alpha1.IgnoredDifference{{Kind: "Deployment", JSONPointers: []string{"/spec/replicas"}}}
	})
	w.settle("a", "web Deployed")
	w.quiet("a")
	expect(t, charts)
}

// TestPatchesAreContent holds that a service is rolled out anew when its patches change.
func TestPatchesAreContent(t *testing.T) {
	w, charts, _ := decisions(t)
	w.set("a", "east", w.service("web", "chart-1"))
	w.settle("a", "web Deployed")
	charts.done()
	w.change("a", func(s *v1alpha1.ServiceSet) {
		s.Spec.Services[0].Patches = []v1alpha1.Patch{{Patch: "spec: {replicas: 3}", Target: &v1alpha1.PatchTarget{Kind: "Deployment"}}}
	})
	w.settle("a", "web Deployed")
	w.quiet("a")
	expect(t, charts, "update web")
}

func TestAServiceIsGivenUpAfterItsAttemptsUntilSomethingChanges(t *testing.T) {
	w, charts, _ := decisions(t)
	web := w.service("web", "chart-1")
	web.MaxAttempts = 2
	w.set("a", "east", web, w.service("other", "chart-1"))
	charts.will(func(r *recorder) { r.fails["web"] = errors.New("it does not want to") })
	tries := func(want int) {
		t.Helper()
		charts.done()
		for range 4 {
			_, _ = w.step("a")
		}
		if got := len(slices.DeleteFunc(charts.done(), func(does string) bool { return !strings.HasSuffix(does, " web") })); got != want {
			t.Errorf("it was tried %d times, want %d", got, want)
		}
	}
	tries(2)
	w.restart()
	tries(0)
	if got := states(w.get("a")); got != "other Deployed, web Failed" {
		t.Errorf("states: %s", got)
	}
	says(t, w.stateOf("a", "web").FailureMessage, "given up after 2 attempts", statemanager.RetryAnnotation, "it does not want to")
	if _, err := w.step("a"); !framework.IsPermanent(err) {
		t.Errorf("the error is %v", err)
	}
	w.change("a", func(s *v1alpha1.ServiceSet) {
		for i := range s.Spec.Services {
			if s.Spec.Services[i].Name == "other" {
				s.Spec.Services[i].Values = "x: 1"
			}
		}
	})
	tries(0)
	w.change("a", func(s *v1alpha1.ServiceSet) {
		s.Annotations = map[string]string{statemanager.RetryAnnotation: "monday"}
	})
	tries(2)
	cluster := &v1alpha1.ClusterDeployment{}
	if err := w.client.Get(t.Context(), client.ObjectKey{Namespace: w.namespace, Name: "east"}, cluster); err != nil {
		t.Fatal(err)
	}
	cluster.Annotations = map[string]string{statemanager.RetryAnnotation: "tuesday"}
	if err := w.client.Update(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	tries(2)
	w.change("a", func(s *v1alpha1.ServiceSet) {
		for i := range s.Spec.Services {
			if e := &s.Spec.Services[i]; e.Name == "web" {
				e.MaxAttempts, e.Generation = 1, 7
			}
		}
	})
	tries(1)
	if is := w.stateOf("a", "web").FailedAttempts; is == nil || is.Count != 1 {
		t.Errorf("the attempts are told as %+v", is)
	}
	charts.will(func(r *recorder) { delete(r.fails, "web") })
	w.change("a", func(s *v1alpha1.ServiceSet) {
		for i := range s.Spec.Services {
			if s.Spec.Services[i].Name == "web" {
				s.Spec.Services[i].Values = "x: 2"
			}
		}
	})
	w.settle("a", "other Deployed, web Deployed")
	w.quiet("a")
	if is := w.stateOf("a", "web").FailedAttempts; is != nil {
		t.Errorf("the attempts are told still: %+v", is)
	}
}

// TestAnOperatorThatStartsAnewGoesOnCounting holds that attempts are counted over processes, before they are used up too.
func TestAnOperatorThatStartsAnewGoesOnCounting(t *testing.T) {
	w, charts, _ := decisions(t)
	web := w.service("web", "chart-1")
	web.MaxAttempts = 3
	w.set("a", "east", web)
	charts.will(func(r *recorder) { r.fails["web"] = errors.New("it does not want to") })
	for range 5 {
		_, _ = w.step("a")
		w.tellOnly("a")
		w.restart()
	}
	expect(t, charts, "create web", "create web", "create web")
	says(t, w.stateOf("a", "web").FailureMessage, "given up after 3 attempts", "it does not want to")
}

// TestAnOperatorThatStartsAnewTriesAnewWhatHasChangedMeanwhile holds that what was counted counts for what was tried, and for nothing else.
func TestAnOperatorThatStartsAnewTriesAnewWhatHasChangedMeanwhile(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(w *world)
		tries  int
	}{
		"nothing": {func(*world) {}, 0},
		"the service": {func(w *world) {
			w.change("a", func(s *v1alpha1.ServiceSet) { s.Spec.Services[0].Generation = 7 })
		}, 2},
		"its values": {func(w *world) { w.configMap("values", map[string]string{"values.yaml": "a: 2"}) }, 2},
		"its template": {func(w *world) {
			template := w.input("a").Templates["chart-1"]
			if err := w.client.Delete(w.t.Context(), template); err != nil {
				w.t.Fatal(err)
			}
			w.template("chart-1", template.Spec)
		}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			w, charts, _ := decisions(t)
			w.configMap("values", map[string]string{"values.yaml": "a: 1"})
			web := w.service("web", "chart-1")
			web.MaxAttempts, web.ValuesFrom = 2, []v1alpha1.ValuesFrom{{Kind: "ConfigMap", Name: "values"}}
			w.set("a", "east", web)
			charts.will(func(r *recorder) { r.fails["web"] = errors.New("it does not want to") })
			for range 4 {
				_, _ = w.step("a")
			}
			expect(t, charts, "create web", "create web")
			tt.change(w)
			w.restart()
			for range 4 {
				_, _ = w.step("a")
			}
			if got := len(charts.done()); got != tt.tries {
				t.Errorf("it was tried %d times, want %d", got, tt.tries)
			}
		})
	}
}

func TestAttemptsBeginAnewWhenTheClusterWasAway(t *testing.T) {
	w, charts, _ := decisions(t)
	web := w.service("web", "chart-1")
	web.MaxAttempts = 2
	w.set("a", "east", web)
	charts.will(func(r *recorder) { r.fails["web"] = errors.New("it does not want to") })
	for range 4 {
		_, _ = w.step("a")
	}
	expect(t, charts, "create web", "create web")
	w.rotate("east", []byte("apiVersion: v1\nkind: List\n"))
	w.await("east", target.KubeconfigInvalid)
	_, _ = w.step("a")
	w.rotate("east", kubeconfigOf(t, eastern(t).RESTConfig()))
	w.await("east", target.Connected)
	for range 4 {
		_, _ = w.step("a")
	}
	expect(t, charts, "create web", "create web")
}

func TestAttemptsAreToldOfServicesThatAreGivenUpAtTimes(t *testing.T) {
	w, charts, _ := decisions(t)
	w.set("a", "east", w.service("web", "chart-1"))
	charts.will(func(r *recorder) { r.fails["web"] = errors.New("it does not want to") })
	for range 3 {
		_, _ = w.step("a")
	}
	expect(t, charts, "create web", "create web", "create web")
	if is := w.stateOf("a", "web").FailedAttempts; is != nil {
		t.Errorf("the attempts are told as %+v", is)
	}
}
