package servicesets

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/resource/serviceset"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

func TestConditionsOfAMultiClusterService(t *testing.T) {
	at := func(name string, s v1alpha1.ServiceSetSummary) place { return placeOf("ns", name, true, &s) }
	good := v1alpha1.ServiceSetSummary{Desired: 2, Deployed: 2, Reason: v1alpha1.ReasonDeployed}
	moving := v1alpha1.ServiceSetSummary{Desired: 2, Deployed: 1, Progressing: true, Reason: v1alpha1.ReasonInFlight, Message: "a 1 is on its way"}
	failed := v1alpha1.ServiceSetSummary{Desired: 2, Deployed: 1, Blocked: true, Reason: v1alpha1.ReasonFailed, Message: "a: 1 failed"}
	mcs := &v1alpha1.MultiClusterService{}
	mcs.Spec.ServiceSpec.Services = []v1alpha1.Service{{Name: "a"}, {Name: "b", Disable: true}}
	stale := *notReconciled(mcs, &good, "set")
	leaving := placeOf("ns", "old", false, &v1alpha1.ServiceSetSummary{Progressing: true, Reason: v1alpha1.ReasonRemoving, Message: "a is being removed"})
	for name, test := range map[string]struct {
		places []place
		fault  *fault
		want   []string
	}{
		"no cluster": {nil, nil, []string{"Ready=True Deployed no cluster is selected", "Progressing=False Deployed", "Blocked=False NotBlocked"}},
		"all well": {[]place{at("x", good), at("y", good)}, nil, []string{
			"Ready=True Deployed all services are deployed on 2 clusters", "Progressing=False Deployed", "Blocked=False NotBlocked",
		}},
		"the same on several clusters": {[]place{at("x", moving), at("y", good), at("z", moving)}, nil, []string{
			"Ready=False InFlight a 1 is on its way (on ns/x, ns/z)", "Progressing=True InFlight a 1 is on its way (on ns/x, ns/z)", "Blocked=False NotBlocked",
		}},
		"blocked here, moving there": {[]place{at("x", moving), at("y", failed)}, nil, []string{
			"Ready=False Failed a: 1 failed (on ns/y); a 1 is on its way (on ns/x)",
			"Progressing=True InFlight a 1 is on its way (on ns/x)", "Blocked=True Failed a: 1 failed (on ns/y)",
		}},
		"blocked and moving on one cluster": {[]place{at("x", v1alpha1.ServiceSetSummary{
			Desired: 2, Blocked: true, Progressing: true, Reason: v1alpha1.ReasonFailed, Message: "a: 1 failed; b 1 is on its way",
		})}, nil, []string{
			"Ready=False Failed a: 1 failed; b 1 is on its way (on ns/x)",
			"Progressing=True InFlight a: 1 failed; b 1 is on its way (on ns/x)", "Blocked=True Failed a: 1 failed; b 1 is on its way (on ns/x)",
		}},
		"a cluster that knows the last generation": {[]place{at("x", stale)}, nil, []string{
			"Ready=False NotReconciled the cluster has not taken note of the last change yet (on ns/x)",
			"Progressing=True NotReconciled the cluster has not taken note of the last change yet (on ns/x)", "Blocked=False NotBlocked",
		}},
		"a cluster that is not selected any more": {[]place{leaving, at("x", good)}, nil, []string{
			"Ready=True Deployed all services are deployed on 1 cluster", "Progressing=True Removing a is being removed (on ns/old)", "Blocked=False NotBlocked",
		}},
		"a cluster that is not selected any more and can't let go: what is blocked is not ready": {[]place{
			placeOf("ns", "old", false, &v1alpha1.ServiceSetSummary{Blocked: true, Reason: "Unreachable", Message: "no answer"}), at("x", good),
		}, nil, []string{
			"Ready=False Unreachable no answer (on ns/old)", "Progressing=False Unreachable", "Blocked=True Unreachable no answer (on ns/old)",
		}},
		"a cluster whose set is not ready": {[]place{at("x", v1alpha1.ServiceSetSummary{
			Desired: 2, Deployed: 2, Progressing: true, Reason: v1alpha1.ReasonSetNotReady, Message: "ServiceSet x is not ready: why",
		})}, nil, []string{
			"Ready=False ServiceSetNotReady ServiceSet x is not ready: why (on ns/x)",
			"Progressing=True ServiceSetNotReady ServiceSet x is not ready: why (on ns/x)", "Blocked=False NotBlocked",
		}},
		"a selector that can't be read": {nil, &fault{v1alpha1.ReasonSelectorInvalid, "clusterSelector can't be read"}, []string{
			"Ready=False SelectorInvalid clusterSelector can't be read", "Progressing=False SelectorInvalid", "Blocked=True SelectorInvalid clusterSelector can't be read",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			v := verdictOf(test.places, test.fault)
			if diff := cmp.Diff(test.want, told(v.Conditions(1))); diff != "" {
				t.Errorf("the conditions differ (-want +got):\n%s", diff)
			}
		})
	}
	if stale.Desired != 1 || stale.Deployed != 1 {
		t.Errorf("a disabled service counts: %+v", stale)
	}
}

func TestADeletionThatASetHoldsUpSaysWhy(t *testing.T) {
	set := func(namespace, cluster string) *v1alpha1.ServiceSet {
		set := &v1alpha1.ServiceSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "base"}}
		set.Spec.Cluster, set.Spec.MultiClusterService = cluster, "base"
		return set
	}
	mcs := &v1alpha1.MultiClusterService{ObjectMeta: metav1.ObjectMeta{Name: "base"}}
	system, east := set("system", ""), set("ns", "east")
	operations := []serviceset.OwnerOperation{
		{Owner: serviceset.MultiClusterServiceOwner(mcs, system), Key: client.ObjectKeyFromObject(system), Err: errors.New("it is controlled by Tenant x")},
		{Owner: serviceset.MultiClusterServiceOwner(mcs, east), Key: client.ObjectKeyFromObject(east), Operation: &serviceset.Operation{
			Operation: v1alpha1.ServiceSetOperationNone, ServiceSet: east, Before: east,
		}},
	}
	v := deletionFrom(&serviceState{operations: operations})
	waits := "waits until its service sets are gone from ns/east, the management cluster"
	want := []string{
		"Ready=False Invalid it is controlled by Tenant x; " + waits, "Progressing=True Deleting " + waits, "Blocked=True Invalid it is controlled by Tenant x",
	}
	if diff := cmp.Diff(want, told(v.Conditions(1))); diff != "" {
		t.Errorf("the conditions differ (-want +got):\n%s", diff)
	}
	v = deletionOf(newReports(operations))
	waits = "waits until its service sets are gone: base, base"
	want = []string{
		"Ready=False Invalid it is controlled by Tenant x; " + waits, "Progressing=True Deleting " + waits, "Blocked=True Invalid it is controlled by Tenant x",
	}
	if diff := cmp.Diff(want, told(v.Conditions(1))); diff != "" {
		t.Errorf("the conditions of a cluster differ (-want +got):\n%s", diff)
	}
}

func TestManyClustersAreCounted(t *testing.T) {
	var places []place
	for i := range 25 {
		places = append(places, placeOf("ns", fmt.Sprintf("c%02d", i), true, &v1alpha1.ServiceSetSummary{
			Desired: 1, Blocked: true, Reason: v1alpha1.ReasonFailed, Message: "a: 1 failed",
		}))
	}
	v := verdictOf(places, nil)
	if got := v.Conditions(1)[2].Message; !strings.HasSuffix(got, "ns/c08, ns/c09 and 15 more)") {
		t.Errorf("the message is %q", got)
	}
}

func TestCommonPaths(t *testing.T) {
	paths := func(from string, ways ...string) v1alpha1.ServiceUpgradePaths {
		p := v1alpha1.ServiceUpgradePaths{Name: "a", Namespace: "default", Template: from}
		for _, way := range ways {
			var path v1alpha1.UpgradePath
			for _, step := range strings.Fields(way) {
				path.Versions = append(path.Versions, v1alpha1.AvailableUpgrade{Name: step})
			}
			p.AvailableUpgrades = append(p.AvailableUpgrades, path)
		}
		return p
	}
	for name, test := range map[string]struct {
		variants []v1alpha1.ServiceUpgradePaths
		want     v1alpha1.ServiceUpgradePaths
	}{
		"the same everywhere":   {[]v1alpha1.ServiceUpgradePaths{paths("1", "2 3"), paths("1", "2 3")}, paths("1", "2 3")},
		"other ways":            {[]v1alpha1.ServiceUpgradePaths{paths("1", "2 3", "4"), paths("1", "3", "5")}, paths("1", "3")},
		"one is ahead":          {[]v1alpha1.ServiceUpgradePaths{paths("1", "2 3"), paths("2", "3")}, paths("", "2", "3")},
		"one has nowhere to go": {[]v1alpha1.ServiceUpgradePaths{paths("1", "2"), paths("9")}, paths("")},
	} {
		t.Run(name, func(t *testing.T) {
			for range 2 {
				if diff := cmp.Diff(test.want, common(test.variants)); diff != "" {
					t.Errorf("the paths differ (-want +got):\n%s", diff)
				}
				test.variants[0], test.variants[1] = test.variants[1], test.variants[0]
			}
		})
	}
}
