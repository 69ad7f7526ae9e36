package servicesets

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/operatorkit/operatorkit/resource/serviceset"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// Of services that are all Deployed, Ready is told if and only if the state manager has seen their entries as they will be, nothing keeps
// it from carrying them out, and it says of the set what it says of the services: by the cluster, and by the MultiClusterService.
func TestReadyIsNeverToldWhileASetIsBehindUnreachableOrSuspended(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := decided(
			serviceset.Decision{Service: key("a"), Reason: v1alpha1.ReasonDeployed, To: version("1"), Desired: version("1")},
			serviceset.Decision{Service: key("b"), Reason: v1alpha1.ReasonDeployed, To: version("1"), Desired: version("1")},
		)
		set := o.Operation.ServiceSet
		set.Generation = rapid.Int64Range(1, 3).Draw(t, "generation")
		next := set.Generation
		if rapid.Bool().Draw(t, "writes") {
			o.Operation.Operation = v1alpha1.ServiceSetOperationUpdate
			next++
		}
		set.Status.ObservedGeneration = rapid.Int64Range(0, set.Generation).Draw(t, "observed")
		seen := true
		for i := range set.Spec.Services {
			set.Spec.Services[i].Generation = rapid.Int64Range(0, next).Draw(t, "changed")
			seen = seen && (set.Status.ObservedGeneration == 0 || set.Spec.Services[i].Generation <= set.Status.ObservedGeneration)
		}
		o.Operation.Suspended = rapid.Bool().Draw(t, "provider suspended")
		knows := !o.Operation.Suspended
		for conditionType, bad := range map[string]metav1.ConditionStatus{
			v1alpha1.ConditionReachable: metav1.ConditionFalse, v1alpha1.ConditionSuspended: metav1.ConditionTrue, v1alpha1.ConditionReady: metav1.ConditionFalse,
		} {
			status := rapid.SampledFrom([]metav1.ConditionStatus{"", metav1.ConditionTrue, metav1.ConditionFalse}).Draw(t, conditionType)
			if status != "" {
				meta.SetStatusCondition(&set.Status.Conditions, metav1.Condition{Type: conditionType, Status: status, Reason: "Because", Message: "of that"})
			}
			knows = knows && status != bad
		}
		o.Owner.Set = set
		r := newReports([]serviceset.OwnerOperation{o})[0]
		v := r.verdict()
		ready := meta.IsStatusConditionTrue(v.Conditions(1), v1alpha1.ConditionReady)
		if ready != (seen && knows) {
			t.Fatalf("Ready is %v, but seen: %v, and known: %v: %+v", ready, seen, knows, told(v.Conditions(1)))
		}
		summary := r.summary(1)
		at := placeOf("ns", "prod", true, &summary)
		if at.ready() != ready {
			t.Fatalf("the cluster is ready: %v, and says to its MultiClusterService: %v", ready, at.ready())
		}
		all := verdictOf([]place{at}, nil)
		if conditions := all.Conditions(1); meta.IsStatusConditionTrue(conditions, v1alpha1.ConditionReady) && meta.IsStatusConditionTrue(conditions, v1alpha1.ConditionBlocked) {
			t.Fatal("it is Ready and Blocked at once")
		}
	})
}

func TestAChainThatContradictsItselfIsNotValid(t *testing.T) {
	chain := &v1alpha1.ServiceTemplateChain{}
	chain.Spec.SupportedTemplates = []v1alpha1.SupportedTemplate{
		{Name: "a", AvailableUpgrades: []v1alpha1.AvailableUpgrade{{Name: "c", Version: "1"}}},
		{Name: "b", AvailableUpgrades: []v1alpha1.AvailableUpgrade{{Name: "c", Version: "2"}}},
	}
	if err := setChainStatus(t.Context(), chain); err != nil {
		t.Fatal(err)
	}
	want := "Valid=False ChainInvalid the chain contradicts itself: template c has the versions 1 and 2: give each template one version"
	if got := told(chain.Status.Conditions); len(got) != 1 || got[0] != want {
		t.Errorf("the conditions are %q", got)
	}
}
