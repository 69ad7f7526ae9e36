package serviceset_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operatorkit/operatorkit/resource/serviceset"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

func TestOfSeveralGivenPathsTheOneWithTheSmallestFirstStepIsTaken(t *testing.T) {
	for _, tt := range []struct {
		name, from, to string
		paths          []string
		want           string
	}{
		{"up", "a-1.0.0", "a-4.0.0", []string{"a-4.0.0", "a-3.0.0>a-4.0.0", "a-2.0.0>a-4.0.0"}, "a-2.0.0"},
		{"down", "a-4.0.0", "a-1.0.0", []string{"a-1.0.0", "a-2.0.0>a-1.0.0", "a-3.0.0>a-1.0.0"}, "a-3.0.0"},
		{"not back where there is a way up", "a-2.0.0", "a-4.0.0", []string{"a-1.0.0>a-4.0.0", "a-3.0.0>a-4.0.0"}, "a-3.0.0"},
		{"over the goal", "a-1.0.0", "a-3.0.0", []string{"a-3.0.0>a-4.0.0", "a-2.0.0>a-3.0.0>a-4.0.0"}, "a-2.0.0"},
		{"not one that goes on from a path to something else", "b-2.0.0", "a-2.0.0", []string{"f-2.0.0", "f-2.0.0>c-1.0.0", "c-1.0.0>a-2.0.0"}, "c-1.0.0"},
		{"among equals the shortest", "a-1.0.0", "a-4.0.0", []string{"a-2.0.0>a-3.0.0>a-4.0.0", "a-2.0.0>a-4.0.0", "a-9.0.0>a-4.0.0"}, "a-2.0.0"},
		{"without versions the shortest", "one", "four", []string{"two>three>four", "three>four"}, "three"},
		{"then the first by name", "one", "four", []string{"two>four", "three>four"}, "three"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for range 2 {
				paths := []v1alpha1.ServiceUpgradePaths{{Name: "a", Namespace: "default", Template: tt.from}}
				for _, way := range tt.paths {
					var path v1alpha1.UpgradePath
					for step := range strings.SplitSeq(way, ">") {
						path.Versions = append(path.Versions, v1alpha1.AvailableUpgrade{Name: step, Version: template(step).Spec.Version})
					}
					paths[0].AvailableUpgrades = append(paths[0].AvailableUpgrades, path)
				}
				services := []v1alpha1.Service{{Name: "a", Template: tt.to, Version: template(tt.to).Spec.Version, TemplateChain: "a"}}
				there := set(t, "a: "+tt.from+"@"+template(tt.from).Spec.Version, "", "a: Deployed")
				got := serviceset.ServicesToDeploy(paths, services, there)
				if len(got) != 1 || got[0].Template != tt.want {
					t.Errorf("with the paths %q the next step is %s, not %s", tt.paths, said(got), tt.want)
				}
				slices.Reverse(tt.paths)
			}
		})
	}
}

func TestAServiceThatIsListedTwiceIsDeployedOnce(t *testing.T) {
	services := desired(t, "a: a-1.0.0 version=1.0.0\nb: b-1.0.0 version=1.0.0\ndefault/a: a-2.0.0 version=2.0.0")
	if diff := cmp.Diff("a: a-1.0.0@1.0.0\nb: b-1.0.0@1.0.0\n", said(serviceset.ServicesToDeploy(nil, services, nil))); diff != "" {
		t.Errorf("the services differ (-want +got):\n%s", diff)
	}
}

func TestASetThatNoProviderWouldFindIsRefused(t *testing.T) {
	cd := &v1alpha1.ClusterDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "prod", UID: "1"}}
	there := &v1alpha1.ServiceSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "prod"}}
	for what, selector := range map[string]*metav1.LabelSelector{
		"no selector": nil, "an empty one": {},
		"one that only excludes": {MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "x", Operator: metav1.LabelSelectorOpDoesNotExist}}},
	} {
		if _, err := serviceset.NewBuilder(cd, there, selector).Build(); err == nil || !strings.Contains(err.Error(), "no provider would find the set") {
			t.Errorf("%s: the error is %v", what, err)
		}
	}
}

func TestAServiceThatNamesNoTemplateIsToldToSetOne(t *testing.T) {
	s := newScene(t)
	services := []v1alpha1.Service{{Name: "a"}, {Name: "b", TemplateChain: "b"}, {Name: "c", Version: "1"}}
	err := serviceset.ResolveServiceVersions(t.Context(), s, clusterNamespace, services)
	const how = " names no ServiceTemplate: set template; or set templateChain and version, which name a template together"
	if want := "service default/a" + how + "; service default/b" + how + "; service default/c" + how; err == nil || err.Error() != want {
		t.Errorf("the error is %v", err)
	}
	err = serviceset.ResolveServiceVersions(t.Context(), s, clusterNamespace, []v1alpha1.ServiceWithValues{{Name: "a"}})
	if err == nil || err.Error() != "service default/a names no ServiceTemplate: set template" {
		t.Errorf("the error of an entry is %v", err)
	}
}

func TestAChainThatContradictsItselfIsRefusedWithTheNames(t *testing.T) {
	s := newScene(t)
	chain := &v1alpha1.ServiceTemplateChain{ObjectMeta: metav1.ObjectMeta{Namespace: clusterNamespace, Name: "bad"}}
	chain.Spec = chainSpec("a-1.0.0>x@1>y@2", "a-2.0.0>x@2")
	s.add(chain)
	services := []v1alpha1.Service{{Name: "e", Template: "a-1.0.0", TemplateChain: "bad"}}
	_, err := serviceset.ServicesUpgradePaths(t.Context(), s, services, clusterNamespace)
	for _, name := range []string{"ServiceTemplateChain platform/bad of service default/e ", "template x has the versions 1 and 2"} {
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("the error does not say %q: %v", name, err)
		}
	}
	if err := serviceset.CheckChain(&chain.Spec); err == nil || !strings.Contains(err.Error(), "template x has the versions 1 and 2") {
		t.Errorf("the error of the chain is %v", err)
	}
}
