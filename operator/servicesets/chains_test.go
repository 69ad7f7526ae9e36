package servicesets_test

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// What a chain says that the server would refuse, because it was there before the rule, is tested without a server.
func TestAChainSaysWhetherItCanBeUsed(t *testing.T) {
	w := newWorld(t)
	w.start()
	chain := &v1alpha1.ServiceTemplateChain{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	chain.Spec.SupportedTemplates = []v1alpha1.SupportedTemplate{
		{Name: "a-1", AvailableUpgrades: []v1alpha1.AvailableUpgrade{{Name: "a-3", Version: "3.0.0"}}},
		{Name: "a-2", AvailableUpgrades: []v1alpha1.AvailableUpgrade{{Name: "a-3", Version: "3.0.0"}}},
		{Name: "a-3"},
	}
	w.create(chain)
	settles(w, chain, "the chain is valid", func(chain *v1alpha1.ServiceTemplateChain) error {
		c := meta.FindStatusCondition(chain.Status.Conditions, v1alpha1.ConditionValid)
		if c == nil || c.Status != metav1.ConditionTrue || !strings.Contains(c.Message, "can be used") || c.ObservedGeneration != chain.Generation {
			return fmt.Errorf("%+v", c)
		}
		return nil
	})
	if len(chain.Finalizers) > 0 {
		t.Errorf("the chain has the finalizers %v", chain.Finalizers)
	}
	chain.Spec.SupportedTemplates[1].AvailableUpgrades[0].Version = "3.0.1"
	if err := w.user.Update(t.Context(), chain); err == nil || !strings.Contains(err.Error(), "contradicts itself") {
		t.Errorf("the chain was not refused as it should be: %v", err)
	}
}
