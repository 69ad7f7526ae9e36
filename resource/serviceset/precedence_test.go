package serviceset_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operatorkit/operatorkit/resource/serviceset"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// platformAndApps adds a cluster, and apps that depend on base.
func (s *scene) platformAndApps(base, apps string) (baseMCS, appsMCS *v1alpha1.MultiClusterService) {
	s.cluster("")
	baseMCS, appsMCS = s.multi("base", 200, base), s.multi("apps", 100, apps)
	appsMCS.Spec.DependsOn = []string{"base"}
	return baseMCS, appsMCS
}

func TestTheServicesOfAMultiClusterServiceComeAfterThoseThatItDependsOn(t *testing.T) {
	testOperations(t, []operationsCase{
		{
			"nothing of it is installed before they run",
			func(s *scene) { s.platformAndApps("a: a-1.0.0\nb: b-1.0.0 after=a", "c: c-1.0.0") },
			"mcs base NAME create: [a: a-1.0.0@1.0.0]\nmcs apps prod.d56f6359d240f69e create:",
		},
		{
			"not even before the last of them does",
			func(s *scene) {
				base, _ := s.platformAndApps("a: a-1.0.0\nb: b-1.0.0 after=a", "c: c-1.0.0")
				s.set(base, "a: a-1.0.0@1.0.0\nb: b-1.0.0@1.0.0 after=a", "", "a: Deployed\nb: Provisioning")
			},
			"mcs base NAME none: [a: a-1.0.0@1.0.0] [b: b-1.0.0@1.0.0 after=a]\nmcs apps prod.d56f6359d240f69e create:",
		},
		{
			"then it is",
			func(s *scene) {
				base, _ := s.platformAndApps("a: a-1.0.0\nb: b-1.0.0 after=a", "c: c-1.0.0")
				s.set(base, "a: a-1.0.0@1.0.0\nb: b-1.0.0@1.0.0 after=a", "", "a: Deployed\nb: Deployed")
			},
			"mcs base NAME none: [a: a-1.0.0@1.0.0] [b: b-1.0.0@1.0.0 after=a]\nmcs apps prod.d56f6359d240f69e create: [c: c-1.0.0@1.0.0]",
		},
		{
			"what is there is locked while they change",
			func(s *scene) {
				base, apps := s.platformAndApps("a: a-2.0.0", "c: c-1.0.0 values=new")
				s.set(base, "a: a-1.0.0@1.0.0", "", "a: Deployed")
				s.set(apps, "c: c-1.0.0@1.0.0 values=old", "", "c: Deployed")
			},
			"mcs base NAME update: [a: a-2.0.0@2.0.0]\nmcs apps prod.d56f6359d240f69e none: [c: c-1.0.0@1.0.0 values=old]",
		},
		{
			"what is disabled holds nothing up",
			func(s *scene) { s.platformAndApps("a: a-1.0.0 disable", "c: c-1.0.0") },
			"mcs base NAME create:\nmcs apps prod.d56f6359d240f69e create: [c: c-1.0.0@1.0.0]",
		},
		{
			"nor does one that does not select the cluster",
			func(s *scene) {
				base, _ := s.platformAndApps("a: a-1.0.0", "c: c-1.0.0")
				base.Spec.ClusterSelector.MatchLabels["tier"] = "two"
			},
			"mcs apps prod.d56f6359d240f69e create: [c: c-1.0.0@1.0.0]",
		},
		{
			"but one that comes before such a one does",
			func(s *scene) {
				base, _ := s.platformAndApps("a: a-1.0.0", "c: c-1.0.0")
				base.Spec.ClusterSelector.MatchLabels["tier"] = "two"
				base.Spec.DependsOn = []string{"net"}
				s.multi("net", 300, "b: b-1.0.0")
			},
			"mcs net prod.a08a0fcbdeafd3c1 create: [b: b-1.0.0@1.0.0]\nmcs apps prod.d56f6359d240f69e create:",
		},
		{
			"what another owner has in place of theirs counts",
			func(s *scene) {
				s.platformAndApps("a: a-1.0.0", "c: c-1.0.0")
				s.cd.Spec.ServiceSpec.Priority = 300
				s.cd.Spec.ServiceSpec.Services = desired(s.t, "a: a-2.0.0")
				s.set(nil, "a: a-2.0.0@2.0.0", "", "a: Deployed")
			},
			"cd prod prod none: [a: a-2.0.0@2.0.0]\nmcs base NAME create:\nmcs apps prod.d56f6359d240f69e create: [c: c-1.0.0@1.0.0]",
		},
		{
			"what both list is one of theirs, whoever has it",
			func(s *scene) {
				_, apps := s.platformAndApps("a: a-1.0.0\nb: b-1.0.0 after=a", "a: a-2.0.0\nc: c-1.0.0")
				apps.Spec.ServiceSpec.Priority = 300
			},
			"mcs apps prod.d56f6359d240f69e create: [a: a-2.0.0@2.0.0]\nmcs base NAME create:",
		},
		{
			"on the management cluster as well",
			func(s *scene) {
				base, apps := s.multi("base", 200, "a: a-1.0.0"), s.multi("apps", 100, "c: c-1.0.0")
				base.Spec.ServiceSpec.Provider.SelfManagement, apps.Spec.ServiceSpec.Provider.SelfManagement = true, true
				apps.Spec.DependsOn = []string{"base"}
			},
			"mcs base NAME create: [a: a-1.0.0@1.0.0]\nmcs apps management-d56f6359d240f69e create:",
		},
	})
}

func TestWhatAMultiClusterServiceDependsOnLeavesAfterIt(t *testing.T) {
	both := func(s *scene) (base, apps *v1alpha1.MultiClusterService) {
		base, apps = s.platformAndApps("a: a-1.0.0", "c: c-1.0.0")
		s.set(base, "a: a-1.0.0@1.0.0", "", "a: Deployed")
		s.set(apps, "c: c-1.0.0@1.0.0", "", "c: Deployed")
		return base, apps
	}
	testOperations(t, []operationsCase{
		{
			"when both are deleted",
			func(s *scene) {
				base, apps := both(s)
				deleting(base)
				deleting(apps)
			},
			"mcs apps prod.d56f6359d240f69e update: removing [c]\nmcs base NAME none: [a: a-1.0.0@1.0.0]",
		},
		{
			"when its last service is being removed",
			func(s *scene) {
				base, apps := s.platformAndApps("a: a-1.0.0", "c: c-1.0.0")
				s.set(base, "a: a-1.0.0@1.0.0", "", "a: Deployed")
				s.set(apps, "", "c:", "c: Deleting")
				deleting(base)
				deleting(apps)
			},
			"mcs apps prod.d56f6359d240f69e none: removing [c]\nmcs base NAME none: [a: a-1.0.0@1.0.0]",
		},
		{
			"when it is gone",
			func(s *scene) {
				base, apps := s.platformAndApps("a: a-1.0.0", "c: c-1.0.0")
				s.set(base, "a: a-1.0.0@1.0.0", "", "a: Deployed")
				s.set(apps, "", "", "")
				deleting(base)
				deleting(apps)
			},
			"mcs apps prod.d56f6359d240f69e delete:\nmcs base NAME update: removing [a]",
		},
		{
			"when the cluster is not selected any more",
			func(s *scene) {
				both(s)
				s.cd.Labels["tier"] = "two"
			},
			"mcs apps prod.d56f6359d240f69e update: removing [c]\nmcs base NAME none: [a: a-1.0.0@1.0.0]",
		},
		{
			"even if only the earlier one does not select it any more",
			func(s *scene) {
				base, _ := both(s)
				base.Spec.ClusterSelector.MatchLabels["tier"] = "two"
			},
			"mcs base NAME none: [a: a-1.0.0@1.0.0]\nmcs apps prod.d56f6359d240f69e none: [c: c-1.0.0@1.0.0]",
		},
		{
			"but a single service that is listed no more goes at once",
			func(s *scene) {
				base, apps := s.platformAndApps("a: a-1.0.0", "c: c-1.0.0")
				s.set(base, "a: a-1.0.0@1.0.0\nb: b-1.0.0@1.0.0", "", "a: Deployed\nb: Deployed")
				s.set(apps, "c: c-1.0.0@1.0.0", "", "c: Deployed")
			},
			"mcs base NAME update: [a: a-1.0.0@1.0.0] removing [b]\nmcs apps prod.d56f6359d240f69e none: [c: c-1.0.0@1.0.0]",
		},
		{
			"those that were made to depend on each other leave together",
			func(s *scene) {
				base, apps := both(s)
				base.Spec.DependsOn = []string{"apps"}
				deleting(base)
				deleting(apps)
			},
			"mcs apps prod.d56f6359d240f69e update: removing [c]\nmcs base NAME update: removing [a]",
		},
		{
			"with a cluster that is being deleted, set by set",
			func(s *scene) {
				both(s)
				deleting(s.cd)
			},
			"mcs apps prod.d56f6359d240f69e delete:\nmcs base NAME none: [a: a-1.0.0@1.0.0]",
		},
		{
			"and at last its own",
			func(s *scene) {
				base, _ := s.platformAndApps("a: a-1.0.0", "c: c-1.0.0")
				s.set(base, "a: a-1.0.0@1.0.0", "", "a: Deployed")
				deleting(s.cd)
			},
			"mcs base NAME delete:",
		},
	})
}

func TestMultiClusterServicesThatCantBeOrderedStayAsTheyAre(t *testing.T) {
	testOperations(t, []operationsCase{
		{
			"one that depends on what does not exist",
			func(s *scene) {
				base, apps := s.platformAndApps("a: a-1.0.0", "c: c-1.0.0 values=new")
				s.remove(base)
				s.set(apps, "c: c-1.0.0@1.0.0 values=old", "", "c: Deployed")
			},
			"mcs apps prod.d56f6359d240f69e error: MultiClusterService apps depends on base, which does not exist: create it, or take it out of dependsOn",
		},
		{
			"one that depends on what is being deleted, which waits for it",
			func(s *scene) {
				base, apps := s.platformAndApps("a: a-1.0.0", "c: c-1.0.0")
				s.set(base, "a: a-1.0.0@1.0.0", "", "a: Deployed")
				s.set(apps, "c: c-1.0.0@1.0.0", "", "c: Deployed")
				deleting(base)
			},
			"mcs base NAME none: [a: a-1.0.0@1.0.0]\n" +
				"mcs apps prod.d56f6359d240f69e error: MultiClusterService apps depends on base, which is being deleted: delete apps too, or take it out of dependsOn",
		},
		{
			"those that depend on each other, and those above",
			func(s *scene) {
				base, _ := s.platformAndApps("a: a-1.0.0", "c: c-1.0.0")
				base.Spec.DependsOn = []string{"apps"}
				s.multi("top", 50, "b: b-1.0.0").Spec.DependsOn = []string{"base"}
			},
			"mcs base NAME error: MultiClusterServices depend on each other: base → apps → base: take one of these dependencies out\n" +
				"mcs apps prod.d56f6359d240f69e error: MultiClusterServices depend on each other: apps → base → apps: take one of these dependencies out\n" +
				"mcs top prod.28720365c5e7476a error: MultiClusterServices depend on each other: apps → base → apps: take one of these dependencies out",
		},
		{
			"one that depends on what nobody can tell the clusters of",
			func(s *scene) {
				base, _ := s.platformAndApps("a: a-1.0.0", "c: c-1.0.0")
				base.Spec.ClusterSelector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "tier", Operator: "Like"}}
			},
			`mcs apps prod.d56f6359d240f69e error: MultiClusterService apps depends on MultiClusterService base: clusterSelector: ` +
				`"Like" is not a valid label selector operator: its services stay as they are until it is mended`,
		},
	})
}

func TestDecisionsSayWhichMultiClusterServicesComeFirst(t *testing.T) {
	s := newScene(t)
	base, apps := s.platformAndApps("a: a-1.0.0", "b: b-1.0.0\nc: c-1.0.0 after=b")
	want := func(decisions string) {
		t.Helper()
		said := ""
		for _, o := range s.compute() {
			if o.Operation != nil && o.Operation.Resolution != nil {
				said += saidWhy(o.Operation.Resolution.Decisions)
			}
		}
		if diff := cmp.Diff(trimmed(decisions), said); diff != "" {
			t.Errorf("the decisions differ (-want +got):\n%s", diff)
		}
	}
	want("Stepping: a is installed in version 1.0.0\n" +
		"WaitingForDependencies: b waits for a (MultiClusterService apps depends on base)\n" +
		"WaitingForDependencies: c waits for a, b (MultiClusterService apps depends on base)")
	s.set(base, "a: a-1.0.0@1.0.0", "", "a: Deployed")
	s.set(apps, "b: b-1.0.0@1.0.0", "", "b: Deployed")
	base.Spec.ClusterSelector, apps.Spec.DependsOn = nil, []string{"base"}
	want("Removing: a is removed after b (MultiClusterService base goes after apps)\n" +
		"Deployed: b 1.0.0 is deployed\nStepping: c is installed in version 1.0.0")
}

func TestDependenciesAreNamedWithWhatIsWrongWithThem(t *testing.T) {
	all := make([]v1alpha1.MultiClusterService, 4)
	for i, name := range []string{"a", "b", "c", "d"} {
		all[i].Name = name
	}
	all[0].Spec.DependsOn, all[1].Spec.DependsOn = []string{"c", "b"}, []string{"c"}
	names, err := serviceset.Dependencies(&all[0], all)
	if diff := cmp.Diff([]string{"b", "c"}, names); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	if diff := cmp.Diff([]string{"a", "b"}, serviceset.Dependents("c", all)); diff != "" {
		t.Error(diff)
	}
	all[2].Spec.DependsOn = []string{"b", "gone"}
	all[3].Spec.DependsOn = []string{"d"}
	_, err = serviceset.Dependencies(&all[0], all)
	var fault *serviceset.DependencyError
	if !errors.As(err, &fault) {
		t.Fatal(err)
	}
	want := &serviceset.DependencyError{
		Absent: []serviceset.AbsentMultiClusterService{{Name: "c", DependsOn: "gone"}}, Cycle: []string{"b", "c", "b"},
	}
	if diff := cmp.Diff(want, fault); diff != "" {
		t.Error(diff)
	}
	_, err = serviceset.Dependencies(&all[3], all)
	if !errors.As(err, &fault) || !cmp.Equal(fault.Cycle, []string{"d", "d"}) {
		t.Error(err)
	}
}
