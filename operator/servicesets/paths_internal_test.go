package servicesets

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// countedReader lists the chain "a", with three templates in a row, in every namespace, and counts how often it does.
type countedReader struct {
	client.Reader
	listed int
}

// List implements client.Reader.
func (r *countedReader) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	chains, ok := list.(*v1alpha1.ServiceTemplateChainList)
	if !ok {
		return nil
	}
	r.listed++
	chain := v1alpha1.ServiceTemplateChain{}
	chain.Name = "a"
	chain.Spec.SupportedTemplates = []v1alpha1.SupportedTemplate{
		{Name: "a-1", AvailableUpgrades: []v1alpha1.AvailableUpgrade{{Name: "a-2"}}},
		{Name: "a-2", AvailableUpgrades: []v1alpha1.AvailableUpgrade{{Name: "a-3"}}},
		{Name: "a-3"},
	}
	chains.Items = append(chains.Items, chain)
	return nil
}

// Every target has a path, and paths are computed once for each change of chains and templates, however many services take them and however
// often they are asked for.
func TestPathsToEveryTargetAreComputedOnceForEachChange(t *testing.T) {
	chains, templates, reader := informer.NewPush("chains"), informer.NewPush("templates"), &countedReader{}
	s := &sources{reader: reader, paths: newPathCache(chains, templates)}
	services := make([]v1alpha1.Service, 50)
	for i := range services {
		services[i] = v1alpha1.Service{Name: fmt.Sprintf("s%d", i), Template: "a-1", TemplateChain: "a"}
	}
	ask := func(namespace string) *v1alpha1.UpgradePath {
		t.Helper()
		found, err := s.pathsOf(t.Context(), services, namespace)
		if err != nil || len(found) != len(services) {
			t.Fatalf("%d paths, %v", len(found), err)
		}
		for _, f := range found {
			if len(f.AvailableUpgrades) == 0 || &f.AvailableUpgrades[0] != &found[0].AvailableUpgrades[0] {
				t.Fatalf("the paths of %s were computed for it alone: %+v", f.Name, f.AvailableUpgrades)
			}
		}
		want := []v1alpha1.UpgradePath{
			{Versions: []v1alpha1.AvailableUpgrade{{Name: "a-2", Version: ""}}},
			{Versions: []v1alpha1.AvailableUpgrade{{Name: "a-2", Version: ""}, {Name: "a-3", Version: ""}}},
		}
		if diff := cmp.Diff(want, found[0].AvailableUpgrades); diff != "" {
			t.Fatalf("the paths differ (-want +got):\n%s", diff)
		}
		return &found[0].AvailableUpgrades[0]
	}
	computed := func(times int) {
		t.Helper()
		for _, namespace := range []string{"one", "two"} {
			first := ask(namespace)
			if again := ask(namespace); again != first {
				t.Fatalf("the paths of namespace %s were computed again", namespace)
			}
		}
		if reader.listed != times {
			t.Errorf("paths were computed %d times, want %d", reader.listed, times)
		}
	}
	computed(2)
	changes := map[*informer.Push]client.Object{chains: &v1alpha1.ServiceTemplateChain{}, templates: &v1alpha1.ServiceTemplate{}}
	times := 2
	for source, object := range changes {
		before := ask("one")
		object.SetNamespace("one")
		object.SetName("a")
		if err := source.Update(object); err != nil {
			t.Fatal(err)
		}
		operatortest.Eventually(t, "a change of "+source.Name()+" is noticed", func() bool { return ask("one") != before })
		times++
		computed(times)
	}
}
