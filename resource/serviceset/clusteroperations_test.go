package serviceset_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/resource/serviceset"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

type operationsCase struct {
	name  string
	scene func(s *scene)
	want  string // NAME stands for the name of the set of "base"
}

func testOperations(t *testing.T, tests []operationsCase) {
	t.Helper()
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newScene(t)
			tt.scene(s)
			name := serviceset.ObjectKey(systemNamespace, s.cd, &v1alpha1.MultiClusterService{ObjectMeta: metav1.ObjectMeta{Name: "base"}}).Name
			if diff := cmp.Diff(trimmed(strings.ReplaceAll(tt.want, "NAME", name)), saidOperations(s.compute())); diff != "" {
				t.Errorf("the operations differ (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEachOwnerOfAClusterHasAnOperation(t *testing.T) {
	testOperations(t, []operationsCase{
		{
			"sets that do not exist are created, the owner with the highest precedence first",
			func(s *scene) {
				s.cluster("b: b-1.0.0")
				s.multi("base", 200, "a: a-1.0.0")
			},
			"mcs base NAME create: [a: a-1.0.0@1.0.0]\ncd prod prod create: [b: b-1.0.0@1.0.0]",
		},
		{
			"nothing is done with an owner that wants nothing and has nothing",
			func(s *scene) {
				s.cluster("")
				s.multi("base", 100, "a: a-1.0.0").Spec.ClusterSelector = nil
				s.multi("empty", 100, "")
				s.multi("elsewhere", 100, "a: a-1.0.0").Spec.ClusterSelector.MatchLabels["tier"] = "two"
			},
			"",
		},
		{
			"sets of other clusters are none of its business",
			func(s *scene) {
				s.cluster("a: a-1.0.0")
				s.set(nil, "a: a-1.0.0@1.0.0", "", "a: Deployed")
				other := s.set(nil, "b: b-1.0.0@1.0.0", "", "b: Deployed")
				other.Name, other.Spec.Cluster = "staging", "staging"
			},
			"cd prod prod none: [a: a-1.0.0@1.0.0]",
		},
		{
			"a set that was deleted by hand is left alone as long as it is there",
			func(s *scene) {
				s.cluster("a: a-1.0.0")
				deleting(s.set(nil, "a: a-1.0.0@1.0.0", "", "a: Deleting"))
			},
			"cd prod prod none: [a: a-1.0.0@1.0.0]",
		},
		{
			"and is created again then",
			func(s *scene) {
				s.cluster("a: a-1.0.0")
				s.remove(s.set(nil, "a: a-1.0.0@1.0.0", "", "a: Deleting"))
			},
			"cd prod prod create: [a: a-1.0.0@1.0.0]",
		},
		{
			"a set that has lost its labels gets them back",
			func(s *scene) {
				s.cluster("a: a-2.0.0")
				s.set(nil, "a: a-1.0.0@1.0.0", "", "a: Provisioning").Labels = nil
			},
			"cd prod prod update: [a: a-1.0.0@1.0.0]",
		},
		{
			"the management cluster has the services of those that want to be there",
			func(s *scene) {
				s.multi("base", 100, "a: a-1.0.0\nb: b-1.0.0 after=a").Spec.ServiceSpec.Provider.SelfManagement = true
				gone := s.multi("gone", 100, "c: c-1.0.0")
				s.set(gone, "c: c-1.0.0@1.0.0", "", "c: Deployed")
				s.remove(gone)
				s.multi("clusters", 100, "a: a-2.0.0")
			},
			"mcs gone management-283bb9deef02e684 update: removing [c]\nmcs base NAME create: [a: a-1.0.0@1.0.0]",
		},
		{
			"a set of the management cluster that has lost its labels goes as well",
			func(s *scene) {
				gone := s.multi("gone", 100, "c: c-1.0.0")
				s.set(gone, "c: c-1.0.0@1.0.0", "", "c: Deployed").Labels = nil
				s.remove(gone)
			},
			"mcs gone management-283bb9deef02e684 update: removing [c]",
		},
	})
}

func TestAnOwnerThatWantsNothingAnyMoreIsWithdrawn(t *testing.T) {
	leave := map[string]func(s *scene, mcs *v1alpha1.MultiClusterService){
		"it is deselected": func(_ *scene, mcs *v1alpha1.MultiClusterService) {
			mcs.Spec.ClusterSelector.MatchLabels["tier"] = "two"
		},
		"it selects nobody": func(_ *scene, mcs *v1alpha1.MultiClusterService) {
			mcs.Spec.ClusterSelector, mcs.Spec.ServiceSpec.Provider.SelfManagement = nil, true
		},
		"it is being deleted": func(_ *scene, mcs *v1alpha1.MultiClusterService) { deleting(mcs) },
		"it is gone":          func(s *scene, mcs *v1alpha1.MultiClusterService) { s.remove(mcs) },
		"its list is empty":   func(_ *scene, mcs *v1alpha1.MultiClusterService) { mcs.Spec.ServiceSpec.Services = nil },
		"and its provider is gone": func(s *scene, mcs *v1alpha1.MultiClusterService) {
			s.remove(s.objects[0])
			mcs.Spec.ServiceSpec.Services = nil
		},
	}
	for how, leave := range leave {
		left := func(stored, removing, states string) func(s *scene) {
			return func(s *scene) {
				s.cluster("")
				mcs := s.multi("base", 100, "a: a-1.0.0\nb: b-1.0.0 after=a")
				s.set(mcs, stored, removing, states)
				leave(s, mcs)
			}
		}
		testOperations(t, []operationsCase{
			{
				how + ": what depends on the rest goes first",
				left("a: a-1.0.0@1.0.0\nb: b-1.0.0@1.0.0 after=a", "", "a: Deployed\nb: Deployed"),
				"mcs base NAME update: [a: a-1.0.0@1.0.0] removing [b after=a]",
			},
			{
				how + ": the rest waits until it is gone",
				left("a: a-1.0.0@1.0.0", "b: after=a", "a: Deployed\nb: Deleting"),
				"mcs base NAME none: [a: a-1.0.0@1.0.0] removing [b after=a]",
			},
			{
				how + ": then the rest goes",
				left("a: a-1.0.0@1.0.0", "b: after=a", "a: Deployed"),
				"mcs base NAME update: removing [a]",
			},
			{
				how + ": the set stays until nothing is left",
				left("", "a:", "a: Deleting"),
				"mcs base NAME none: removing [a]",
			},
			{
				how + ": and is deleted",
				left("", "a:", ""),
				"mcs base NAME delete:",
			},
			{
				how + ": also from a set that has lost its labels",
				func(s *scene) {
					s.cluster("")
					mcs := s.multi("base", 100, "a: a-1.0.0")
					s.set(mcs, "a: a-1.0.0@1.0.0", "", "a: Deployed").Labels = nil
					leave(s, mcs)
				},
				"mcs base NAME update: removing [a]",
			},
			{
				how + ": an empty set is deleted at once",
				left("", "", ""),
				"mcs base NAME delete:",
			},
		})
	}
	testOperations(t, []operationsCase{
		{
			"a cluster with an empty list as well",
			func(s *scene) {
				s.cluster("")
				s.set(nil, "a: a-1.0.0@1.0.0", "", "a: Deployed")
			},
			"cd prod prod update: removing [a]",
		},
		{
			"until its set is deleted",
			func(s *scene) {
				s.cluster("")
				s.set(nil, "", "", "")
			},
			"cd prod prod delete:",
		},
	})
}

// TestASetThatIsWithdrawnIsOneOfItsProvider: without its labels the provider would leave alone what is to be taken away.
func TestASetThatIsWithdrawnIsOneOfItsProvider(t *testing.T) {
	withdrawn := func(relabel func(s *scene, set *v1alpha1.ServiceSet)) (before, after *v1alpha1.ServiceSet) {
		t.Helper()
		s := newScene(t)
		s.cluster("")
		mcs := s.multi("base", 100, "a: a-1.0.0")
		set := s.set(mcs, "a: a-1.0.0@1.0.0", "", "a: Deployed")
		before = set.DeepCopy()
		relabel(s, set)
		deleting(mcs)
		operations := s.compute()
		if len(operations) != 1 || operations[0].Err != nil || len(operations[0].Operation.ServiceSet.Spec.Removing) != 1 {
			t.Fatalf("the operations are %s", saidOperations(operations))
		}
		return before, operations[0].Operation.ServiceSet
	}
	provider := func(s *scene) *v1alpha1.StateManagementProvider {
		return s.objects[0].(*v1alpha1.StateManagementProvider)
	}
	takeOff := func(_ *scene, set *v1alpha1.ServiceSet) { set.Labels, set.Annotations = nil, nil }
	before, after := withdrawn(takeOff)
	if diff := cmp.Diff([]map[string]string{before.Labels, before.Annotations}, []map[string]string{after.Labels, after.Annotations}); diff != "" {
		t.Errorf("the labels and annotations (-want +got):\n%s", diff)
	}
	for name, hinder := range map[string]func(s *scene){
		"its provider is gone":                    func(s *scene) { s.remove(provider(s)) },
		"the selector of its provider is invalid": func(s *scene) { provider(s).Spec.Selector.MatchLabels = map[string]string{"-": "x"} },
	} {
		_, after := withdrawn(func(s *scene, set *v1alpha1.ServiceSet) { takeOff(s, set); hinder(s) })
		if len(after.Labels)+len(after.Annotations) > 0 {
			t.Errorf("%s: it has the labels %v and the annotations %v", name, after.Labels, after.Annotations)
		}
	}
}

func TestAServiceOfAnOwnerThatLeavesGoesToTheNextOneWithoutAGap(t *testing.T) {
	step := func(left, next string) func(s *scene) {
		return func(s *scene) {
			s.cluster("a: a-2.0.0")
			mcs := s.multi("base", 200, "a: a-1.0.0")
			s.set(mcs, left, "", "a: Deployed a-1.0.0@1.0.0")
			if next != "" {
				s.set(nil, next, "", "a: Deployed a-1.0.0@1.0.0")
			}
			deleting(mcs)
		}
	}
	testOperations(t, []operationsCase{
		{
			"the next one gets it as it is", step("a: a-1.0.0@1.0.0", ""),
			"mcs base NAME none: [a: a-1.0.0@1.0.0]\ncd prod prod create: [a: a-1.0.0@1.0.0]",
		},
		{
			"the first one lets it go, without removing it", step("a: a-1.0.0@1.0.0", "a: a-1.0.0@1.0.0"),
			"mcs base NAME update:\ncd prod prod none: [a: a-1.0.0@1.0.0]",
		},
		{
			"the next one goes on", step("", "a: a-1.0.0@1.0.0"),
			"mcs base NAME delete:\ncd prod prod update: [a: a-2.0.0@2.0.0]",
		},
	})
}

func TestAllSetsOfAClusterThatIsBeingDeletedAreDeleted(t *testing.T) {
	testOperations(t, []operationsCase{
		{
			"at once, whatever is in them, and whatever is wrong with their owners",
			func(s *scene) {
				deleting(s.cluster("a: a-1.0.0 after=a"))
				s.set(nil, "a: a-1.0.0@1.0.0\nb: b-1.0.0@1.0.0 after=a", "", "a: Deployed\nb: Deployed")
				mcs := s.multi("base", 100, "c: c-1.0.0")
				s.set(mcs, "c: c-1.0.0@1.0.0", "", "c: Deployed")
				mcs.Spec.ClusterSelector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "tier", Operator: "Like"}}
				deleting(s.set(s.multi("other", 100, ""), "", "", ""))
			},
			`
			mcs base NAME delete:
			mcs other prod.d9298a10d1b07358 none:
			cd prod prod delete:`,
		},
		{
			"also those that have lost their labels",
			func(s *scene) {
				deleting(s.cluster("a: a-1.0.0"))
				s.set(nil, "a: a-1.0.0@1.0.0", "", "a: Deployed").Labels = nil
				s.set(s.multi("base", 100, "c: c-1.0.0"), "c: c-1.0.0@1.0.0", "", "c: Deployed").Labels = map[string]string{v1alpha1.ClusterLabel: "other"}
			},
			"mcs base NAME delete:\ncd prod prod delete:",
		},
		{
			"but none that has neither its labels nor its name",
			func(s *scene) {
				deleting(s.cluster("a: a-1.0.0"))
				other := s.set(nil, "a: a-1.0.0@1.0.0", "", "a: Deployed")
				other.Name, other.Labels = "other", nil
			},
			"",
		},
		{
			"and no other one is made",
			func(s *scene) {
				deleting(s.cluster("a: a-1.0.0"))
				s.multi("base", 100, "c: c-1.0.0")
			},
			"",
		},
		{
			"a set that somebody else controls is not",
			func(s *scene) {
				deleting(s.cluster("a: a-1.0.0"))
				s.set(nil, "", "", "").OwnerReferences[0].Kind = "Robot"
			},
			"cd prod prod error: ServiceSet platform/prod is controlled by Robot prod, not by ClusterDeployment platform/prod: " +
				"delete it, or wait until it is gone",
		},
	})
}

func TestOperationsShareNothingThatIsWritten(t *testing.T) {
	s := newScene(t)
	s.cluster("a: a-2.0.0 values=x\nb: b-1.0.0 after=a")
	s.set(nil, "a: a-1.0.0@1.0.0\nb: b-1.0.0@1.0.0 after=a", "", "a: Deployed")
	mcs := s.multi("base", 200, "c: c-1.0.0")
	s.set(mcs, "c: c-1.0.0@1.0.0 after=d\nd: c-1.0.0@1.0.0", "", "c: Deployed\nd: Deployed")
	deleting(mcs)
	want := saidOperations(s.compute())
	for _, o := range s.compute() {
		if o.Operation.Operation != update {
			t.Fatalf("there is nothing to look at:\n%s", want)
		}
		written := o.Operation.ServiceSet
		for i := range written.Spec.Services {
			written.Spec.Services[i].Values = "changed"
			for j := range written.Spec.Services[i].DependsOn {
				written.Spec.Services[i].DependsOn[j].Name = "changed"
			}
		}
		for i := range written.Spec.Removing {
			for j := range written.Spec.Removing[i].DependsOn {
				written.Spec.Removing[i].DependsOn[j].Name = "changed"
			}
		}
		written.Labels["changed"] = "true"
		written.OwnerReferences[0].Name = "changed"
	}
	if diff := cmp.Diff(want, saidOperations(s.compute())); diff != "" {
		t.Errorf("writing changed what was read (-before +after):\n%s", diff)
	}
}

func TestOperationsOfAClusterOnTheAPIServer(t *testing.T) {
	s := startAPIServer(t)
	s.templates("a-1.0.0", "b-1.0.0")
	cd := s.cluster("prod", "b: b-1.0.0")
	mcs := s.multi("base", 200, "a: a-1.0.0")
	round := func(want string) {
		t.Helper()
		operations, err := serviceset.ComputeClusterOperations(t.Context(), s, s.namespace, cd)
		if err != nil {
			t.Fatal(err)
		}
		said := strings.NewReplacer(mcs.Name, "base", s.namespace+"/", "", serviceset.ObjectKey("", cd, mcs).Name, "NAME").Replace(saidOperations(operations))
		if diff := cmp.Diff(trimmed(want), said); diff != "" {
			t.Fatalf("the operations differ (-want +got):\n%s", diff)
		}
		for _, o := range operations {
			s.carryOut(o)
		}
	}
	round("mcs base NAME create: [a: a-1.0.0@1.0.0]\ncd prod prod create: [b: b-1.0.0@1.0.0]")
	round("mcs base NAME none: [a: a-1.0.0@1.0.0]\ncd prod prod none: [b: b-1.0.0@1.0.0]")
	s.hold(mcs)
	if err := s.Delete(t.Context(), mcs); err != nil {
		t.Fatal(err)
	}
	round("mcs base NAME update: removing [a]\ncd prod prod none: [b: b-1.0.0@1.0.0]")
	round("mcs base NAME delete:\ncd prod prod none: [b: b-1.0.0@1.0.0]")
	round("cd prod prod none: [b: b-1.0.0@1.0.0]")
}

// hold keeps an object until the end of the test when it is deleted, or else what it owns would be collected.
func (s *apiServer) hold(mcs *v1alpha1.MultiClusterService) {
	s.t.Helper()
	mcs.Finalizers = []string{"example.org/held"}
	if err := s.Update(s.t.Context(), mcs); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		release := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
		if err := s.Patch(contextAfter(s.t), mcs, release); err != nil {
			s.t.Error(err)
		}
	})
}

// carryOut writes what an operation says.
func (s *apiServer) carryOut(o serviceset.OwnerOperation) {
	s.t.Helper()
	var err error
	if set := o.Operation.ServiceSet.DeepCopy(); o.Operation.Operation == v1alpha1.ServiceSetOperationDelete {
		err = s.Delete(s.t.Context(), set)
	} else {
		err = serviceset.NewProcessor(s).CreateOrUpdateServiceSet(s.t.Context(), o.Operation.Operation, set)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}
