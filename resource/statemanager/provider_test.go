package statemanager_test

import (
	"testing"

	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager"
)

func TestSetsOfOneProviderShareItUnderAllOfItsNames(t *testing.T) {
	named := func(name string) *v1alpha1.ServiceSet {
		set := &v1alpha1.ServiceSet{}
		set.Spec.Provider.Name = name
		return set
	}
	for _, tt := range []struct {
		own, other string
		providers  []string
		shared     bool
	}{
		{"sveltos", "sveltos", nil, true},
		{"sveltos", "native", nil, false},
		{"sveltos", "sveltos-old", []string{"sveltos", "sveltos-old"}, true},
		{"sveltos-old", "sveltos", []string{"sveltos", "sveltos-old"}, true},
		{"sveltos", "native", []string{"sveltos", "sveltos-old"}, false},
		{"native", "", []string{"native"}, true},
		{"", "native", []string{"native"}, true},
		{"sveltos", "", []string{"sveltos"}, false},
	} {
		set := &statemanager.Set{ServiceSet: named(tt.own), Providers: tt.providers}
		if got := set.SharesProvider(named(tt.other)); got != tt.shared {
			t.Errorf("a set of %q and one of %q, of %v: %v", tt.own, tt.other, tt.providers, got)
		}
	}
}
