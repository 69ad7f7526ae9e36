package main

import (
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

func TestAChangeOnOneClusterAsksNothingOfTheOthers(t *testing.T) {
	e := tiny(t)
	lines, err := stateManagers(t.Context(), e)
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range e.samples["statemanager, one cluster"][operatorKit] {
		if others, it := one.Extra[toOthers], one.Extra[toTargets]; others != 0 || it == 0 {
			t.Errorf("a change on one cluster took %v requests to it, and %v to others", it, others)
		}
	}
	for _, l := range lines {
		if strings.HasPrefix(l.Measure, "change on all") && l.Ratio <= 0 {
			t.Errorf("%s: there is no ratio", l.Measure)
		}
	}
	var clusters v1alpha1.ClusterDeploymentList
	var bindings rbacv1.ClusterRoleBindingList
	scheme, err := fleetScheme()
	if err != nil {
		t.Fatal(err)
	}
	c := operatortest.NewClient(t, e.cluster.config, scheme)
	if err := c.List(t.Context(), &clusters); err != nil {
		t.Fatal(err)
	}
	if err := c.List(t.Context(), &bindings); err != nil {
		t.Fatal(err)
	}
	for _, left := range clusters.Items {
		if slices.Contains(e.cluster.namespaces, left.Namespace) { // others have theirs on the same control plane
			t.Errorf("cluster %s/%s is left", left.Namespace, left.Name)
		}
	}
	for _, binding := range bindings.Items {
		if strings.HasPrefix(binding.Name, "bench-") {
			t.Errorf("%s is left", binding.Name)
		}
	}
}
