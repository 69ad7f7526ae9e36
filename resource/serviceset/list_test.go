package serviceset_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/resource/serviceset"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

func entries(t *testing.T, text string) []v1alpha1.ServiceWithValues {
	t.Helper()
	var list []v1alpha1.ServiceWithValues
	lines(t, text, func(key client.ObjectKey, words []string) { list = append(list, storedService(key, words)) })
	return list
}

func TestTheListIsWhatIsEligibleAndWhatIsLocked(t *testing.T) {
	stored := entries(t, "z: z-1@1 values=locked\na: a-1@1\nb: b-1@1\nb: b-0@0")
	filtered := entries(t, "y: y-1@1\na: a-2@2")
	wanted := desired(t, "a: a-2\nz: z-2\ny: y-1\nq: q-1")
	before := said(stored) + said(filtered)
	got := serviceset.BuildServicesList(stored, filtered, wanted)
	if diff := cmp.Diff("a: a-2@2\ny: y-1@1\nz: z-1@1 values=locked\n", said(got)); diff != "" {
		t.Errorf("the list differs (-want +got):\n%s", diff)
	}
	if before != said(stored)+said(filtered) {
		t.Error("what was given was changed")
	}
	if got := serviceset.BuildServicesList(nil, nil, nil); len(got) != 0 {
		t.Errorf("from nothing comes %v", got)
	}
}

// ServicesToDeploy gets the ways as lists of paths, Resolve from the chains: they take the same ones.
func TestPathsSayTheSameStepsAsChains(t *testing.T) {
	checkSimulations(t, func(s *simulation) {
		for range 10 {
			eligible, toApply, err := serviceset.EligibleAndToApply(s.in)
			if err != nil {
				s.t.Fatal(err)
			}
			stored := s.set().DeepCopy()
			for i := range stored.Spec.Services {
				if e := &stored.Spec.Services[i]; e.Version == "" {
					e.Version = s.version(e.Template)
				}
			}
			var paths []v1alpha1.ServiceUpgradePaths
			for _, from := range serviceset.ServicesWithDesiredChains(s.in.Owner.Services, stored.Spec.Services) {
				if from.TemplateChain == "" {
					continue
				}
				found, err := serviceset.UpgradePathsOf(from.Template, &s.in.Chains[from.TemplateChain].Spec,
					func(name string) *v1alpha1.ServiceTemplate { return s.in.Templates[name] })
				if err != nil {
					s.t.Fatal(err)
				}
				paths = append(paths, v1alpha1.ServiceUpgradePaths{
					Name: from.Name, Namespace: from.Namespace, Template: from.Template, AvailableUpgrades: found,
				})
			}
			if diff := cmp.Diff(said(toApply), said(serviceset.ServicesToDeploy(paths, eligible, stored))); diff != "" {
				s.t.Fatalf("the steps differ (-chains +paths):\n%s", diff)
			}
			s.resolve()
			s.carryOut()
		}
	})
}
