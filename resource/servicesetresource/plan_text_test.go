package servicesetresource_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/giantswarm/micrologger/microloggertest"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/resource/serviceset"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/servicesetresource"
)

// entry is a service of a set. The template is named after the version.
func entry(name, version string, changes ...func(*v1alpha1.ServiceWithValues)) v1alpha1.ServiceWithValues {
	e := v1alpha1.ServiceWithValues{
		Namespace: "default", Name: name, Template: name + "-" + strings.ReplaceAll(version, ".", "-"), Version: version,
	}
	for _, change := range changes {
		change(&e)
	}
	return e
}

func values(text string) func(*v1alpha1.ServiceWithValues) {
	return func(e *v1alpha1.ServiceWithValues) { e.Values = text }
}

// setOf is a set of the cluster platform/prod.
func setOf(name string, services ...v1alpha1.ServiceWithValues) *v1alpha1.ServiceSet {
	return &v1alpha1.ServiceSet{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "platform", Name: name, UID: "u", ResourceVersion: "7", Labels: map[string]string{v1alpha1.ClusterLabel: "prod"},
		},
		Spec: v1alpha1.ServiceSetSpec{Cluster: "prod", Provider: v1alpha1.StateManagementProviderConfig{Name: "native"}, Services: services},
	}
}

// operation is what has to be done with the cluster's own set.
func operation(what v1alpha1.ServiceSetOperation, before, after *v1alpha1.ServiceSet, decisions ...serviceset.Decision) serviceset.OwnerOperation {
	set := after
	if set == nil {
		set = before
	}
	return serviceset.OwnerOperation{
		Owner: serviceset.Owner{Kind: v1alpha1.ClusterDeploymentKind, Key: client.ObjectKey{Namespace: "platform", Name: "prod"}},
		Key:   client.ObjectKeyFromObject(set),
		Operation: &serviceset.Operation{
			Operation: what, Before: before, ServiceSet: set, Resolution: &serviceset.Resolution{Decisions: decisions},
		},
	}
}

// of makes it the operation of a MultiClusterService.
func of(mcs string, o serviceset.OwnerOperation) serviceset.OwnerOperation {
	o.Owner = serviceset.Owner{Kind: v1alpha1.MultiClusterServiceKind, Key: client.ObjectKey{Name: mcs}}
	return o
}

func serviceKey(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: "default", Name: name}
}

func version(name, version string) v1alpha1.ServiceVersion {
	if version == "" {
		return v1alpha1.ServiceVersion{}
	}
	e := entry(name, version)
	return v1alpha1.ServiceVersion{Template: e.Template, Version: version}
}

// decision is one on a service that goes from a version to another, on the way to a third. Empty is no version.
func decision(reason, name, from, to, desired string, steps int) serviceset.Decision {
	return serviceset.Decision{
		Service: serviceKey(name), Reason: reason, Steps: steps,
		From: version(name, from), To: version(name, to), Desired: version(name, desired),
	}
}

// resources are those of a cluster with these operations.
func resources(t *testing.T, operations ...serviceset.OwnerOperation) []framework.Resource {
	t.Helper()
	compute := func(context.Context, *v1alpha1.ClusterDeployment) ([]serviceset.OwnerOperation, error) {
		return operations, nil
	}
	sets, err := servicesetresource.New(servicesetresource.Config[*v1alpha1.ClusterDeployment]{
		Client: struct{ client.Client }{}, Logger: microloggertest.New(), Compute: compute,
	})
	if err != nil {
		t.Fatal(err)
	}
	check, err := servicesetresource.NewCheck(servicesetresource.CheckConfig[*v1alpha1.ClusterDeployment]{Compute: compute})
	if err != nil {
		t.Fatal(err)
	}
	return []framework.Resource{sets, check}
}

func prod() *v1alpha1.ClusterDeployment {
	return &v1alpha1.ClusterDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "platform", Name: "prod"}}
}

// text is the plan of an update, as people read it.
func text(t *testing.T, p *plan.Plan, err error) string {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := plan.WriteText(&b, []*plan.Plan{p}, plan.TextOptions{}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestPlanOfAnUpgradeReadsServiceByService(t *testing.T) {
	p, err := framework.PlanUpdate(t.Context(), prod(), resources(t,
		operation(v1alpha1.ServiceSetOperationUpdate,
			setOf("prod", entry("cert-manager", "1.14.2", values("a: 1\nb: 2\n")), entry("old", "1.0.0"), entry("same", "1.0.0"), entry("tuned", "2.0.0")),
			setOf("prod", entry("cert-manager", "1.15.0", values("a: 1\nb: 3\n")), entry("ingress", "4.12.0"), entry("same", "1.0.0"), entry("tuned", "2.0.0", values("x: 1"))),
			decision(v1alpha1.ReasonStepping, "cert-manager", "1.14.2", "1.15.0", "1.17.1", 3),
			decision(v1alpha1.ReasonStepping, "ingress", "", "4.12.0", "4.12.0", 1),
			serviceset.Decision{Service: serviceKey("kof-storage"), Reason: v1alpha1.ReasonWaiting, WaitsFor: []client.ObjectKey{serviceKey("cert-manager")}},
			serviceset.Decision{Service: serviceKey("old"), Reason: v1alpha1.ReasonRemoving, From: version("old", "1.0.0")},
			decision(v1alpha1.ReasonDeployed, "same", "1.0.0", "1.0.0", "1.0.0", 0),
			decision(v1alpha1.ReasonInFlight, "tuned", "2.0.0", "2.0.0", "2.0.0", 0),
		)))
	want := `ClusterDeployment platform/prod (update)
  servicesets
    ~ service default/cert-manager: 1.14.2 → 1.15.0 (step 1 of 3 to 1.17.1)
        ~ template: "cert-manager-1-14-2" -> "cert-manager-1-15-0"
        ~ values:
              a: 1
            - b: 2
            + b: 3
        ~ version: "1.14.2" -> "1.15.0"
    + service default/ingress: is installed in version 4.12.0
        + template: "ingress-4-12-0"
        + version: "4.12.0"
    - service default/old
    ~ service default/tuned
        + values: "x: 1"
    · default/kof-storage waits for default/cert-manager
  service-owners: nothing to do

1 to create, 2 to update, 1 to delete
`
	if diff := cmp.Diff(want, text(t, p, err)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestPlanTellsSeveralSetsApart(t *testing.T) {
	taken := serviceset.Decision{Service: serviceKey("ingress"), Reason: v1alpha1.ReasonOverridden, From: version("ingress", "4.12.0"),
		Message: "belongs to MultiClusterService edge, which has priority 200, ClusterDeployment platform/prod has 100"}
	ended := setOf("prod", entry("ingress", "4.12.0"), entry("web", "1.0.0"))
	ended.Spec.Removing = []v1alpha1.ServiceRemoval{{Namespace: "default", Name: "old"}, {Namespace: "default", Name: "slow"}}
	kept := setOf("prod", entry("web", "1.0.0"))
	kept.Spec.Removing = ended.Spec.Removing[1:]
	created := setOf("prod.8a1b", entry("agent", "2.0.0"))
	created.Spec.MultiClusterService = "base"
	relabelled := setOf("prod.77fe")
	relabelled.Labels["provider"] = "native"
	p, err := framework.PlanUpdate(t.Context(), prod(), resources(t,
		of("base", operation(v1alpha1.ServiceSetOperationCreate, nil, created, decision(v1alpha1.ReasonStepping, "agent", "", "2.0.0", "2.0.0", 1))),
		of("edge", operation(v1alpha1.ServiceSetOperationUpdate, setOf("prod.77fe"), relabelled)),
		operation(v1alpha1.ServiceSetOperationUpdate, ended, kept, taken),
		of("left", operation(v1alpha1.ServiceSetOperationDelete, setOf("prod.0c0c"), nil)),
	))
	want := `ClusterDeployment platform/prod (update)
  servicesets
    + ServiceSet platform/prod.8a1b
        + metadata.labels["services.operatorkit.io/cluster"]: "prod"
        + spec.cluster: "prod"
        + spec.multiClusterService: "base"
        + spec.provider.name: "native"
    + service default/agent of MultiClusterService base: is installed in version 2.0.0
        + template: "agent-2-0-0"
        + version: "2.0.0"
    ~ ServiceSet platform/prod.77fe
        + metadata.labels.provider: "native"
    ~ ServiceSet platform/prod: default/old is gone
    - service default/ingress: belongs to MultiClusterService edge, which has priority 200, ClusterDeployment platform/prod has 100
    - ServiceSet platform/prod.0c0c
    · default/slow is being removed
  service-owners: nothing to do

2 to create, 2 to update, 2 to delete
`
	if diff := cmp.Diff(want, text(t, p, err)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestPlanOfADeletedClusterNamesItsServices(t *testing.T) {
	leaving := setOf("prod.8a1b", entry("agent", "2.0.0"))
	leaving.DeletionTimestamp = &metav1.Time{}
	gone := operation(v1alpha1.ServiceSetOperationDelete, setOf("prod", entry("ingress", "4.12.0"), entry("web", "1.0.0")), nil)
	gone.Operation.Resolution = nil
	p, err := framework.PlanDelete(t.Context(), prod(), resources(t, gone, of("base", operation(v1alpha1.ServiceSetOperationNone, leaving, leaving))))
	want := `ClusterDeployment platform/prod (delete)
  servicesets
    - ServiceSet platform/prod
    - service default/ingress
    - service default/web
    · ServiceSet platform/prod.8a1b is being deleted: its services go first
  service-owners: nothing to do

0 to create, 0 to update, 3 to delete
`
	if diff := cmp.Diff(want, text(t, p, err)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestNotesSayWhatStaysAsItIsAndWhy(t *testing.T) {
	failed := decision(v1alpha1.ReasonFailed, "broken", "1.0.0", "1.0.0", "1.0.0", 0)
	failed.Message = "1.0.0 failed: no such image"
	held := decision(v1alpha1.ReasonDisabled, "held", "1.0.0", "1.0.0", "2.0.0", 0)
	asItIs := decision(v1alpha1.ReasonDisabled, "as-it-is", "1.0.0", "1.0.0", "1.0.0", 0)
	broken := serviceset.OwnerOperation{Key: client.ObjectKey{Namespace: "platform", Name: "prod.8a1b"}, Err: errors.New("MultiClusterService base: no")}
	p, err := framework.PlanUpdate(t.Context(), prod(), resources(t, broken, operation(v1alpha1.ServiceSetOperationUpdate,
		setOf("prod", entry("broken", "1.0.0"), entry("coming", "1.0.0")),
		setOf("prod", entry("broken", "1.0.0", values("x: 1")), entry("coming", "1.0.0")),
		failed, held, asItIs, decision(v1alpha1.ReasonInFlight, "coming", "1.0.0", "1.0.0", "1.0.0", 0),
	)))
	want := `ClusterDeployment platform/prod (update)
  failed: resource "service-owners" fails
  servicesets
    ~ service default/broken
        + values: "x: 1"
    · ServiceSet platform/prod.8a1b is left alone: MultiClusterService base: no
    · default/broken 1.0.0 failed: no such image
    · default/held is disabled and left as it is
    · default/coming 1.0.0 is on its way
  service-owners
    error: resource "service-owners": plan: MultiClusterService base: no

0 to create, 1 to update, 0 to delete
`
	if diff := cmp.Diff(want, text(t, p, err)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// A write without a difference that a plan could show is in the plan all the same.
func TestPlanHidesNoWrite(t *testing.T) {
	p, err := framework.PlanUpdate(t.Context(), prod(), resources(t,
		operation(v1alpha1.ServiceSetOperationUpdate, setOf("prod", entry("a", "1.0.0")), setOf("prod", entry("a", "1.0.0")))))
	if err != nil {
		t.Fatal(err)
	}
	if n := p.Counts(); n != (plan.Counts{Update: 1}) {
		t.Errorf("%s, want an update", n)
	}
}
