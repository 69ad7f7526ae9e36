package serviceset_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operatorkit/operatorkit/resource/serviceset"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

func TestASetIsBuiltWithItsOwnerItsLabelsAndItsSpec(t *testing.T) {
	yes := true
	cd := &v1alpha1.ClusterDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "prod", UID: "1"}}
	mcs := &v1alpha1.MultiClusterService{ObjectMeta: metav1.ObjectMeta{Name: "base", UID: "2"}}
	mcs.Spec.ServiceSpec.Provider = v1alpha1.StateManagementProviderConfig{Name: "sveltos", SelfManagement: true}
	selector := &metav1.LabelSelector{
		MatchLabels: map[string]string{"manager": "one"},
		MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "tier", Operator: metav1.LabelSelectorOpIn, Values: []string{"b", "a"}},
			{Key: "any", Operator: metav1.LabelSelectorOpExists},
			{Key: "never", Operator: metav1.LabelSelectorOpDoesNotExist},
		},
	}
	before := &v1alpha1.ServiceSet{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: "x", Labels: map[string]string{"mine": "1"}, Annotations: map[string]string{"mine": "2"},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "other", UID: "3"}},
	}}
	unchanged := before.DeepCopy()
	services := []v1alpha1.ServiceWithValues{{Name: "a", Template: "a-1"}}
	removals := []v1alpha1.ServiceRemoval{{Name: "b"}}
	windows := []v1alpha1.ChangeWindow{{Schedule: "0 22 * * *"}}
	mcs.Spec.ServiceSpec.ChangeWindows = windows
	got, err := serviceset.NewBuilder(cd, before, selector).WithMultiClusterService(mcs).
		WithServicesToDeploy(services).WithServicesToRemove(removals).Build()
	if err != nil {
		t.Fatal(err)
	}
	want := &v1alpha1.ServiceSet{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "x",
			Labels:      map[string]string{"mine": "1", "manager": "one", "tier": "a", "any": "true", v1alpha1.ClusterLabel: "prod"},
			Annotations: map[string]string{"mine": "2", v1alpha1.SelectorLabelsAnnotation: "any,manager,tier"},
			OwnerReferences: []metav1.OwnerReference{
				{APIVersion: "v1", Kind: "ConfigMap", Name: "other", UID: "3"},
				{
					APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.MultiClusterServiceKind, Name: "base", UID: "2",
					Controller: &yes, BlockOwnerDeletion: &yes,
				},
			},
		},
		Spec: v1alpha1.ServiceSetSpec{
			Cluster: "prod", MultiClusterService: "base", Services: services, Removing: removals, ChangeWindows: windows,
			Provider: v1alpha1.StateManagementProviderConfig{Name: "sveltos"},
		},
	}
	got.Spec.Provider.Config = nil
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the set differs (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(unchanged, before); diff != "" {
		t.Errorf("what was given was changed (-before +after):\n%s", diff)
	}
	got.Spec.Services[0].Name = "changed"
	if services[0].Name != "a" {
		t.Error("the set shares its services with what was given")
	}
}

func TestASetThatCanNotBeBuiltIsAnErrorThatSaysWhy(t *testing.T) {
	cd := &v1alpha1.ClusterDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "prod", UID: "1"}}
	set := func(change func(*v1alpha1.ServiceSet)) *v1alpha1.ServiceSet {
		s := &v1alpha1.ServiceSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "x"}}
		change(s)
		return s
	}
	asItIs := func(*v1alpha1.ServiceSet) {}
	yes := true
	tests := []struct {
		name    string
		builder *serviceset.Builder
		want    string
	}{
		{"no set", serviceset.NewBuilder(cd, nil, nil), "build a ServiceSet: there is none: give one with a name and a namespace"},
		{"no owner", serviceset.NewBuilder(nil, set(asItIs), nil), "build ServiceSet ns/x: " + serviceset.ErrNoOwner.Error()},
		{
			"a set of another cluster",
			serviceset.NewBuilder(cd, set(func(s *v1alpha1.ServiceSet) { s.Spec.Cluster = "staging" }), nil),
			`build ServiceSet ns/x: it belongs to cluster "staging" and multiClusterService "", not to "prod" and "": rename one of them`,
		},
		{
			"a set that somebody else controls",
			serviceset.NewBuilder(cd, set(func(s *v1alpha1.ServiceSet) {
				s.OwnerReferences = []metav1.OwnerReference{{Kind: "ClusterDeployment", Name: "prod", UID: "0", Controller: &yes}}
			}), nil),
			"build ServiceSet ns/x: it is controlled by ClusterDeployment prod, not by ClusterDeployment prod: delete it, or wait until it is gone",
		},
		{
			"a set that another provider carries out",
			serviceset.NewBuilder(cd, set(func(s *v1alpha1.ServiceSet) { s.Spec.Provider.Name = "sveltos" }), &metav1.LabelSelector{MatchLabels: map[string]string{"a": "x"}}),
			`build ServiceSet ns/x: it is carried out by provider "sveltos", and can't go to "native": set the provider's name back, or delete the ServiceSet`,
		},
		{
			"a selector that contradicts itself",
			serviceset.NewBuilder(cd, set(asItIs), &metav1.LabelSelector{
				MatchLabels:      map[string]string{"a": "x"},
				MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"x"}}},
			}),
			"contradicts itself, or the labels of the set",
		},
		{
			"a selector without values",
			serviceset.NewBuilder(cd, set(asItIs), &metav1.LabelSelector{
				MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: metav1.LabelSelectorOpIn}},
			}),
			"the provider's selector has no values for label a: give one",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := tt.builder.Build()
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("the error differs:\ngot:  %v\nwant: …%s…", err, tt.want)
			}
		})
	}
}
