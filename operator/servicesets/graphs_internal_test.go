package servicesets

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// TestTheStatesOfServicesAreTheSameInWhateverOrderASetHasThem draws a set that lists and reports services in the order of their keys, most of
// them and perhaps others, and compares what is said of it with what is said of the same one in another order.
func TestTheStatesOfServicesAreTheSameInWhateverOrderASetHasThem(t *testing.T) {
	names := []string{"a", "b", "c", "d", "e"}
	phases := []v1alpha1.ServicePhase{
		v1alpha1.ServiceStatePending, v1alpha1.ServiceStateProvisioning, v1alpha1.ServiceStateDeployed, v1alpha1.ServiceStateFailed, v1alpha1.ServiceStateDeleting,
	}
	ordered := 0
	rapid.Check(t, func(t *rapid.T) {
		some := func(what string) (drawn []string) {
			most := rapid.IntRange(1, 10).Draw(t, what)
			for _, name := range names {
				if rapid.IntRange(1, 10).Draw(t, what+" "+name) >= most {
					drawn = append(drawn, name)
				}
			}
			return drawn
		}
		template := func(name string) string {
			return rapid.SampledFrom([]string{"t-1", "t-2"}).Draw(t, "template of "+name)
		}
		var services []v1alpha1.Service
		for _, name := range names[:4] {
			services = append(services, v1alpha1.Service{Name: name, Template: template(name)})
		}
		set := &v1alpha1.ServiceSet{}
		for _, name := range some("listed") {
			set.Spec.Services = append(set.Spec.Services, v1alpha1.ServiceWithValues{Name: name, Template: template(name)})
		}
		for _, name := range some("reported") {
			set.Status.Services = append(set.Status.Services, v1alpha1.ServiceState{Name: name, State: rapid.SampledFrom(phases).Draw(t, "state of "+name)})
		}
		if rapid.IntRange(0, 4).Draw(t, "removes") == 0 {
			set.Spec.Removing = []v1alpha1.ServiceRemoval{{Name: rapid.SampledFrom(names).Draw(t, "removed")}}
		}
		services = rapid.Permutation(services).Draw(t, "services")
		p := newPhaser(services)
		if p.inOrder(set) {
			ordered++
		}
		got := slices.Clone(p.of(set))
		slices.Reverse(set.Spec.Services)
		slices.Reverse(set.Status.Services)
		if diff := cmp.Diff(p.of(set), got); diff != "" {
			t.Errorf("the states of the services differ (-in another order +in theirs):\n%s", diff)
		}
	})
	if ordered == 0 {
		t.Error("no set had the services in their order")
	}
}
