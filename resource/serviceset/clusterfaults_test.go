package serviceset_test

import (
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operatorkit/operatorkit/resource/serviceset"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

func TestWhatIsWrongWithOneOwnerLeavesTheOthersAlone(t *testing.T) {
	other := "mcs base NAME create: [a: a-1.0.0@1.0.0]\n"
	testOperations(t, []operationsCase{
		{
			"a provider that does not exist",
			func(s *scene) {
				s.cluster("b: b-1.0.0").Spec.ServiceSpec.Provider.Name = "absent"
				s.multi("base", 200, "a: a-1.0.0")
			},
			other + "cd prod prod error: ClusterDeployment platform/prod: StateManagementProvider absent does not exist: create it, " +
				"or name another one in serviceSpec.provider: *v1alpha1.StateManagementProvider \"absent\" not found",
		},
		{
			"dependencies that contradict each other",
			func(s *scene) {
				s.cluster("b: b-1.0.0 after=b")
				s.multi("base", 200, "a: a-1.0.0")
			},
			other + "cd prod prod error: resolve the services of ClusterDeployment platform/prod: " +
				"services depend on each other: default/b → default/b: take one of these dependencies out",
		},
		{
			"a set with its name that belongs to another cluster",
			func(s *scene) {
				s.cluster("b: b-1.0.0")
				s.multi("base", 200, "a: a-1.0.0")
				s.add(&v1alpha1.ServiceSet{
					ObjectMeta: metav1.ObjectMeta{Namespace: clusterNamespace, Name: "prod"}, Spec: v1alpha1.ServiceSetSpec{Cluster: "staging"},
				})
			},
			other + "cd prod prod error: ClusterDeployment platform/prod: build ServiceSet platform/prod: it belongs to cluster \"staging\" and " +
				"multiClusterService \"\", not to \"prod\" and \"\": rename one of them",
		},
		{
			"a set that somebody else controls",
			func(s *scene) {
				s.cluster("b: b-1.0.0")
				s.multi("base", 200, "a: a-1.0.0")
				s.set(nil, "b: b-1.0.0@1.0.0", "", "").OwnerReferences[0].UID = "before"
			},
			other + "cd prod prod error: ClusterDeployment platform/prod: build ServiceSet platform/prod: it is controlled by " +
				"ClusterDeployment prod, not by ClusterDeployment prod: delete it, or wait until it is gone",
		},
		{
			"a set that somebody else controls, of an owner that leaves",
			func(s *scene) {
				s.cluster("")
				s.multi("base", 200, "a: a-1.0.0")
				s.set(nil, "b: b-1.0.0@1.0.0", "", "b: Deployed").OwnerReferences[0].Kind = "Robot"
			},
			other + "cd prod prod error: ServiceSet platform/prod is controlled by Robot prod, not by ClusterDeployment platform/prod: " +
				"delete it, or wait until it is gone",
		},
		{
			"more than one set of the same owner: the one with the right name counts, and what runs does not change",
			func(s *scene) {
				s.cluster("b: b-1.0.0 values=new")
				s.multi("base", 200, "a: a-1.0.0")
				s.set(nil, "b: b-1.0.0@1.0.0", "", "b: Deployed").Name = "hand-made"
				s.set(nil, "b: b-1.0.0@1.0.0", "", "b: Deployed")
				s.set(nil, "b: b-1.0.0@1.0.0", "", "b: Deployed").Name = "last"
			},
			other + "set hand-made hand-made error: ServiceSet platform/hand-made is a second one of ClusterDeployment platform/prod on the same cluster, " +
				"beside ServiceSet prod: delete it\n" +
				"set last last error: ServiceSet platform/last is a second one of ClusterDeployment platform/prod on the same cluster, " +
				"beside ServiceSet prod: delete it\ncd prod prod none: [b: b-1.0.0@1.0.0]",
		},
		{
			"a clusterSelector that can't be read withdraws nothing",
			func(s *scene) {
				s.cluster("b: b-1.0.0")
				s.multi("base", 200, "a: a-1.0.0")
				mcs := s.multi("typo", 100, "c: c-1.0.0")
				s.set(mcs, "c: c-1.0.0@1.0.0", "", "c: Deployed")
				for _, mcs := range []*v1alpha1.MultiClusterService{mcs, s.multi("typo-without-a-set", 100, "c: c-1.0.0")} {
					mcs.Spec.ClusterSelector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "tier", Operator: "Like"}}
				}
			},
			other + "cd prod prod create: [b: b-1.0.0@1.0.0]\n" +
				"mcs typo prod.a1974688cdc37e17 error: MultiClusterService typo: clusterSelector: \"Like\" is not a valid label selector operator: " +
				"its services stay as they are until it is mended",
		},
	})
}

func TestErrorsOfOperationsCanBeToldApart(t *testing.T) {
	s := newScene(t)
	s.cluster("b: b-1.0.0 after=b")
	s.multi("base", 200, "a: a-1.0.0").Spec.ServiceSpec.Provider.Name = "absent"
	operations := s.compute()
	var graph *serviceset.GraphError
	if len(operations) != 2 || !apierrors.IsNotFound(operations[0].Err) || !errors.As(operations[1].Err, &graph) {
		t.Errorf("the operations are %s", saidOperations(operations))
	}
	for _, list := range []string{"ServiceSetList", "MultiClusterServiceList", "ServiceTemplateList", "ServiceTemplateChainList"} {
		operations, err := serviceset.ComputeClusterOperations(t.Context(), unreadable{s, list}, systemNamespace, s.cd)
		if !errors.Is(err, errUnreadable) || operations != nil {
			t.Errorf("%s: the operations are %v, the error is %v", list, operations, err)
		}
	}
}
