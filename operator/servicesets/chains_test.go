package servicesets_test

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

func TestAChainSaysWhetherItCanBeUsed(t *testing.T) {
	w := newWorld(t)
	w.start()
	chain := &v1alpha1.ServiceTemplateChain{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	chain.Spec.SupportedTemplates = []v1alpha1.SupportedTemplate{
		{Name: "a-1", AvailableUpgrades: []v1alpha1.AvailableUpgrade{{Name: "a-3", Version: "3.0.0"}}},
		{Name: "a-2", AvailableUpgrades: []v1alpha1.AvailableUpgrade{{Name: "a-3", Version: "3.0.1"}}},
		{Name: "a-3"},
	}
	valid := func(status metav1.ConditionStatus, message string) {
		t.Helper()
		settles(w, chain, fmt.Sprintf("the chain is valid: %s, %s", status, message), func(chain *v1alpha1.ServiceTemplateChain) error {
			c := meta.FindStatusCondition(chain.Status.Conditions, v1alpha1.ConditionValid)
			if c == nil || c.Status != status || !strings.Contains(c.Message, message) || c.ObservedGeneration != chain.Generation {
				return fmt.Errorf("%+v", c)
			}
			return nil
		})
	}
	w.create(chain)
	valid(metav1.ConditionFalse, "contradicts itself: template a-3 has the versions 3.0.0 and 3.0.1")
	if len(chain.Finalizers) > 0 {
		t.Errorf("the chain has the finalizers %v", chain.Finalizers)
	}
	change(w, chain, func(chain *v1alpha1.ServiceTemplateChain) {
		chain.Spec.SupportedTemplates[1].AvailableUpgrades[0].Version = "v3.0.0"
	})
	valid(metav1.ConditionTrue, "can be used")
}
