package sveltos_test

import (
	"maps"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager"
	"github.com/operatorkit/operatorkit/resource/statemanager/sveltos/v1beta1"
)

func isConflict(err error) bool { return apierrors.IsConflict(err) }

// expect reconciles a set once and compares the states.
func (w *world) expect(set *statemanager.Set, when string, want map[string]v1alpha1.ServicePhase) *statemanager.Work {
	w.t.Helper()
	work := w.reconcile(set)
	if got := phases(work); !maps.Equal(got, want) {
		w.t.Fatalf("%s: the states are %v, want %v", when, got, want)
	}
	return work
}

// deployed brings services to Deployed.
func (w *world) deployed(set *statemanager.Set, hash string, names ...string) {
	w.t.Helper()
	w.settle(set)
	w.takesNote(set)
	all := []says{
		feature(v1beta1.FeatureHelm, v1beta1.FeatureProvisioned, hash, ""), feature(v1beta1.FeatureResources, v1beta1.FeatureProvisioned, hash, ""),
	}
	for _, name := range names {
		all = append(all, release(name, v1beta1.ReleaseManaging, ""))
	}
	w.reports(set, all...)
	w.settle(set)
}

func TestStatesFollowWhatSveltosSays(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		type states = map[string]v1alpha1.ServicePhase
		chart(w.set, "web", "1.0.0")
		files(w.set, "base")
		pending := states{"web": "Provisioning", "base": "Provisioning"}
		w.expect(w.set, "at first", pending)
		w.expect(w.set, "with a profile", pending)
		w.takesNote(w.set)
		w.expect(w.set, "with a summary", pending)
		w.reports(w.set, feature("Helm", "Provisioning", "h1", ""), feature("Resources", "Provisioned", "r1", ""), release("web", "Managing", ""))
		w.expect(w.set, "while the chart is installed", states{"web": "Provisioning", "base": "Deployed"})
		w.reports(w.set, feature("Helm", "Failed", "h1", "web: no such image"), feature("Resources", "Provisioned", "r1", ""),
			release("web", "Managing", "no such image"))
		work := w.expect(w.set, "when the chart fails", states{"web": "Failed", "base": "Deployed"})
		if m := work.Services[1].FailureMessage; m != "no such image" {
			t.Errorf("the message is %q", m)
		}
		w.reports(w.set, feature("Helm", "Provisioned", "h1", ""), feature("Resources", "Provisioned", "r1", ""), release("web", "Managing", ""))
		work = w.expect(w.set, "when all is there", states{"web": "Deployed", "base": "Deployed"})
		last := work.Services[1].LastDeployed
		if last == nil || last.Template != "web-1.0.0" || last.Version != "1.0.0" || len(last.Fingerprint) != 32 {
			t.Errorf("what was deployed last is %+v", last)
		}
		w.reports(w.set, feature("Helm", "Provisioned", "h1", ""), feature("Resources", "Provisioned", "r1", ""),
			release("web", "Conflict", "managed by profile x"))
		work = w.expect(w.set, "with a conflict", states{"web": "Failed", "base": "Deployed"})
		if m := work.Services[1].FailureMessage; !strings.Contains(m, "managed by profile x") || !strings.Contains(m, "higher priority") {
			t.Errorf("the message is %q", m)
		}
	})
}

func TestWhatWasDeployedStaysSoWhileOthersWorkOrFail(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		type states = map[string]v1alpha1.ServicePhase
		chart(w.set, "web", "1.0.0")
		files(w.set, "base")
		w.deployed(w.set, "1", "web")
		chart(w.set, "api", "1.0.0")
		files(w.set, "more")
		w.settle(w.set)
		w.expect(w.set, "before Sveltos has seen it", states{"web": "Deployed", "base": "Deployed", "api": "Provisioning", "more": "Provisioning"})
		w.takesNote(w.set)
		w.reports(w.set, feature("Helm", "Provisioning", "2", ""), feature("Resources", "Failed", "2", "no such kind"),
			release("web", "Managing", ""), release("api", "Managing", ""))
		work := w.expect(w.set, "while others work or fail", states{"web": "Deployed", "base": "Deployed", "api": "Provisioning", "more": "Failed"})
		for _, s := range work.Services {
			if (s.Name == "more") != (s.FailureMessage == "no such kind") {
				t.Errorf("the message of %s is %q", s.Name, s.FailureMessage)
			}
		}
		w.reports(w.set, feature("Helm", "Failed", "2", "api: bad"), feature("Resources", "Provisioned", "2", ""),
			release("web", "Managing", ""), release("api", "Managing", "bad"))
		w.expect(w.set, "when a chart fails", states{"web": "Deployed", "base": "Deployed", "api": "Failed", "more": "Deployed"})
	})
}

func TestAChartThatIsUninstalledIsDeleted(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		type states = map[string]v1alpha1.ServicePhase
		chart(w.set, "web", "1.0.0")
		w.deployed(w.set, "1", "web")
		chart(w.set, "web", "1.0.0").HelmAction = v1alpha1.HelmActionUninstall
		w.settle(w.set)
		w.expect(w.set, "before Sveltos has seen it", states{"web": "Provisioning"})
		w.takesNote(w.set)
		w.reports(w.set, feature("Helm", "Provisioning", "2", ""), release("web", "Managing", ""))
		w.expect(w.set, "while it is uninstalled", states{"web": "Provisioning"})
		for _, listed := range [][]says{{release("web", "Managing", "")}, nil} {
			w.reports(w.set, append(listed, feature("Helm", "Provisioned", "2", ""))...)
			work := w.expect(w.set, "when it is gone", states{"web": "Deleted"})
			if s := work.Services[0]; s.LastDeployed != nil || s.Template != "web-1.0.0" || s.Version != "1.0.0" {
				t.Errorf("the state is %+v", s)
			}
		}
		chart(w.set, "web", "1.0.0")
		w.deployed(w.set, "3", "web")
		w.expect(w.set, "when it is back", states{"web": "Deployed"})

		files(w.set, "base").HelmAction = v1alpha1.HelmActionUninstall
		w.expect(w.set, "with files", states{"web": "Deployed", "base": "Failed"})
	})
}

func TestNothingIsDeployedBeforeSveltosHasTakenNote(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		type states = map[string]v1alpha1.ServicePhase
		chart(w.set, "web", "1.0.0")
		w.deployed(w.set, "1", "web")
		chart(w.set, "web", "1.1.0")
		w.settle(w.set)
		w.expect(w.set, "with a summary of the earlier profile", states{"web": "Provisioning"})
		w.takesNote(w.set)
		w.expect(w.set, "with a report of the earlier profile", states{"web": "Provisioning"})
		w.reports(w.set, feature("Helm", "Provisioned", "2", ""), release("web", "Managing", ""))
		w.expect(w.set, "with a report of this one", states{"web": "Deployed"})
		chart(w.set, "web", "1.2.0")
		w.settle(w.set)
		chart(w.set, "web", "1.1.0")
		w.settle(w.set)
		w.takesNote(w.set)
		w.expect(w.set, "when it was taken back before Sveltos had seen it", states{"web": "Deployed"})
	})
}

func TestServicesGoInReverseOrder(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		type states = map[string]v1alpha1.ServicePhase
		chart(w.set, "base", "1.0.0")
		chart(w.set, "web", "1.0.0", "base")
		w.deployed(w.set, "1", "base", "web")
		drop(w.set, "web", "base")
		w.settle(w.set)
		if charts := w.profile(w.set).Spec.HelmCharts; len(charts) != 1 || charts[0].ReleaseName != "base" {
			t.Fatalf("at first the charts are %+v", charts)
		}
		w.takesNote(w.set)
		w.expect(w.set, "while the first one goes", states{"base": "Deleting", "web": "Deleting"})
		w.reports(w.set, feature("Helm", "Provisioned", "2", ""), release("base", "Managing", ""))
		w.settle(w.set)
		w.expect(w.set, "when the first one is gone", states{"base": "Deleting"})
		if charts := w.profile(w.set).Spec.HelmCharts; len(charts) != 0 {
			t.Fatalf("then the charts are %+v", charts)
		}
		w.takesNote(w.set)
		w.reports(w.set, feature("Helm", "Provisioned", "3", ""))
		w.expect(w.set, "when all are gone", states{})
	})
}

func TestASetGoesServiceByService(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		chart(w.set, "base", "1.0.0")
		chart(w.set, "web", "1.0.0", "base")
		w.deployed(w.set, "1", "base", "web")
		w.set.ServiceSet.DeletionTimestamp = &metav1.Time{}
		if work := w.settle(w.set); !work.Left {
			t.Error("nothing is left at once")
		}
		if charts := w.profile(w.set).Spec.HelmCharts; len(charts) != 1 || charts[0].ReleaseName != "base" {
			t.Fatalf("the charts are %+v", charts)
		}
		w.takesNote(w.set)
		w.reports(w.set, feature("Helm", "Provisioned", "2", ""), release("base", "Managing", ""))
		work := w.settle(w.set)
		if w.profile(w.set) != nil || !work.Left {
			t.Fatalf("the profile is there: %v; something is left: %v", w.profile(w.set) != nil, work.Left)
		}
		w.withdraws(w.set)
		if work := w.settle(w.set); work.Left || len(work.Services) > 0 {
			t.Errorf("there is left: %+v", work)
		}
	})
}

func TestASetGoesAlthoughItsClusterCanNotBeRead(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		chart(w.set, "base", "1.0.0")
		chart(w.set, "web", "1.0.0", "base")
		w.deployed(w.set, "1", "base", "web")
		for _, raw := range []string{`{"clusterRef": "prod"}`, `{"clusterRef": {"kind": "Cluster"}}`} {
			w.set.ServiceSet.Spec.Provider.Config = &apiextensionsv1.JSON{Raw: []byte(raw)}
			if _, err := w.manager.Compute(t.Context(), w.set); !framework.IsPermanent(err) || !strings.Contains(err.Error(), "spec.provider.config.clusterRef") {
				t.Errorf("the error is %v", err)
			}
		}
		w.set.ServiceSet.DeletionTimestamp = &metav1.Time{}
		w.settle(w.set)
		spec := w.profile(w.set).Spec
		if charts := spec.HelmCharts; len(charts) != 1 || charts[0].ReleaseName != "base" || len(spec.ClusterRefs) != 1 || spec.ClusterRefs[0].Name != "prod" {
			t.Fatalf("the profile is %+v", spec)
		}
		w.takesNote(w.set)
		w.reports(w.set, feature("Helm", "Provisioned", "2", ""), release("base", "Managing", ""))
		if work := w.settle(w.set); w.profile(w.set) != nil || !work.Left {
			t.Fatalf("the profile is there: %v; something is left: %v", w.profile(w.set) != nil, work.Left)
		}
		w.withdraws(w.set)
		if work := w.settle(w.set); work.Left || len(work.Services) > 0 {
			t.Errorf("there is left: %+v", work)
		}
	})
}

func TestAServiceGoesFromOneSetToAnotherWithoutAGap(t *testing.T) {
	handOver(t, "sveltos")
}

func TestAServiceGoesFromTheFormerNameOfTheProviderToTheNewOneWithoutAGap(t *testing.T) {
	handOver(t, "sveltos-old")
}

// handOver hands a service over to a set with a name of the provider.
func handOver(t *testing.T, provider string) {
	t.Helper()
	onBoth(t, func(t *testing.T, w *world) {
		type states = map[string]v1alpha1.ServicePhase
		other := w.newSet("prod.0123456789abcdef", "prod")
		w.set.Others, other.Others = []*v1alpha1.ServiceSet{other.ServiceSet}, []*v1alpha1.ServiceSet{w.set.ServiceSet}
		other.ServiceSet.Spec.Provider.Name = provider
		chart(w.set, "web", "1.0.0")
		w.deployed(w.set, "1", "web")
		drop(w.set, "web")
		chart(other, "web", "1.0.0")
		w.settle(w.set)
		if len(w.profile(w.set).Spec.HelmCharts) != 1 {
			t.Fatal("it was dropped before the other set had it")
		}
		w.settle(other)
		work := w.settle(w.set)
		if len(w.profile(w.set).Spec.HelmCharts) != 1 {
			t.Fatal("it was dropped before Sveltos knew that the other set has it")
		}
		if work.Requeue <= 0 {
			t.Error("nobody looks again whether Sveltos knows")
		}
		w.takesNote(other)
		w.reports(other, feature("Helm", "Failed", "1", "conflict"), release("web", "Conflict", "managed by prod"))
		w.expect(other, "while the first set has it", states{"web": "Provisioning"})
		w.settle(w.set)
		if len(w.profile(w.set).Spec.HelmCharts) != 0 {
			t.Fatal("it was not dropped")
		}
	})
}

func TestASuspendedProfileIsPaused(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		chart(w.set, "web", "1.0.0")
		w.settle(w.set)
		chart(w.set, "web", "1.1.0")
		work, err := w.manager.Suspend(t.Context(), w.set)
		if err != nil {
			t.Fatal(err)
		}
		fields := work.Operations[0].Changes[0].Fields
		if len(fields) != 1 || !strings.Contains(fields[0].Path, v1beta1.PausedAnnotation) || fields[0].Old != nil || fields[0].New != "true" {
			t.Errorf("what is planned is %+v", work.Operations)
		}
		w.carryOut(w.set, work)
		p := w.profile(w.set)
		if p.Annotations[v1beta1.PausedAnnotation] != "true" || p.Spec.HelmCharts[0].ChartVersion != "1.0.0" {
			t.Errorf("suspended, the profile is %+v", p)
		}
		if work, err = w.manager.Suspend(t.Context(), w.set); err != nil || changes(work) > 0 {
			t.Errorf("once suspended there is %+v, %v to do", work, err)
		}
		w.reconcile(w.set)
		w.settle(w.set)
		p = w.profile(w.set)
		if _, still := p.Annotations[v1beta1.PausedAnnotation]; still || p.Spec.HelmCharts[0].ChartVersion != "1.1.0" {
			t.Errorf("resumed, the profile is %+v", p)
		}
	})
}

func TestASetThatWasSuspendedGoes(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		chart(w.set, "web", "1.0.0")
		w.settle(w.set)
		play := func() {
			t.Helper()
			if err := plays(t.Context(), w.client, w.namespace); err != nil {
				t.Fatal(err)
			}
		}
		play()
		work, err := w.manager.Suspend(t.Context(), w.set)
		if err != nil {
			t.Fatal(err)
		}
		w.carryOut(w.set, work)
		play()
		w.set.ServiceSet.DeletionTimestamp = &metav1.Time{}
		for range 5 {
			work = w.reconcile(w.set)
			play()
		}
		if work.Left || w.profile(w.set) != nil {
			t.Errorf("there is left: %+v", work)
		}
	})
}

func TestAServiceThatAnotherSetUninstallsGoes(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		other := w.newSet("prod.0123456789abcdef", "prod")
		w.set.Others, other.Others = []*v1alpha1.ServiceSet{other.ServiceSet}, []*v1alpha1.ServiceSet{w.set.ServiceSet}
		chart(w.set, "web", "1.0.0")
		w.deployed(w.set, "1", "web")
		chart(other, "web", "1.0.0").HelmAction = v1alpha1.HelmActionUninstall
		drop(w.set, "web")
		if work := w.settle(w.set); work.Requeue > 0 || len(w.profile(w.set).Spec.HelmCharts) != 0 {
			t.Errorf("it waits for a set that never has it: %+v", work)
		}
	})
}

// Sveltos reports the same hash as before then, because it sees the same as before.
func TestWhatIsTakenBackBeforeSveltosHasWorkedOnItGoes(t *testing.T) {
	type states = map[string]v1alpha1.ServicePhase
	for name, noted := range map[string]bool{"it has not looked": false, "it has looked": true} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, func(t *testing.T, w *world) {
				files(w.set, "base")
				w.deployed(w.set, "r1")
				files(w.set, "extra")
				w.expect(w.set, "when it is listed", states{"base": "Deployed", "extra": "Provisioning"})
				if noted {
					w.takesNote(w.set)
				}
				drop(w.set, "extra")
				w.expect(w.set, "when it is not listed any more", states{"base": "Deployed", "extra": "Deleting"})
				if noted {
					w.expect(w.set, "before it looks again", states{"base": "Deployed", "extra": "Deleting"})
					w.takesNote(w.set)
				}
				w.expect(w.set, "at the end", states{"base": "Deployed"})
			})
		})
	}
}
