package serviceset_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/resource/serviceset"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// This file has a test for each trouble that systems of this kind are known for.

func TestAnUnchangedServiceInTheMiddleOfAChainUnlocksNothing(t *testing.T) {
	testResolve(t, []resolveCase{{
		name: "bootstrap waits for cfg, although keycloak between them does not change",
		world: world{
			desired: "cfg: cfg-2.0.0\nkeycloak: keycloak-1.0.0 after=cfg\nbootstrap: bootstrap-2.0.0 after=keycloak",
			stored:  "bootstrap: bootstrap-1.0.0@1.0.0\ncfg: cfg-1.0.0@1.0.0\nkeycloak: keycloak-1.0.0@1.0.0",
			states:  "bootstrap: Deployed\ncfg: Deployed\nkeycloak: Deployed",
		},
		want: "bootstrap: bootstrap-1.0.0@1.0.0\ncfg: cfg-2.0.0@2.0.0\nkeycloak: keycloak-1.0.0@1.0.0",
		why: `
			WaitingForDependencies: bootstrap waits for keycloak
			Stepping: cfg 1.0.0 → 2.0.0
			WaitingForDependencies: keycloak waits for cfg`,
	}})
}

func TestAPassingProviderErrorDeploysNothingAgain(t *testing.T) {
	w := world{
		desired: "a: a-1.0.0 values=x\nb: b-1.0.0 after=a\nc: c-1.0.0 after=b",
		stored:  "a: a-1.0.0@1.0.0 values=x\nb: b-1.0.0@1.0.0 after=a\nc: c-1.0.0@1.0.0 after=b",
	}
	for _, state := range []string{"Deployed", "Failed", "Provisioning", "Pending", "Deployed"} {
		w.states = "a: " + state + " a-1.0.0@1.0.0 last=a-1.0.0@1.0.0\nb: Deployed b-1.0.0@1.0.0\nc: Deployed c-1.0.0@1.0.0"
		r, err := serviceset.Resolve(w.input(t))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(trimmed(w.stored), said(r.Services)); diff != "" {
			t.Errorf("the services change while a is %s (-want +got):\n%s", state, diff)
		}
	}
}

func TestUpgradesOfAChainOfServicesDoNotRunAllAtOnce(t *testing.T) {
	w := world{
		desired: "a: a-2.0.0\nb: b-2.0.0 after=a\nc: c-2.0.0 after=b\nd: d-2.0.0 after=c",
		stored:  "a: a-1.0.0@1.0.0\nb: b-1.0.0@1.0.0\nc: c-1.0.0@1.0.0\nd: d-1.0.0@1.0.0",
		states:  "a: Deployed\nb: Deployed\nc: Deployed\nd: Deployed",
	}
	in := w.input(t)
	var order []string
	for range 4 {
		r, err := serviceset.Resolve(in)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range r.Decisions {
			if d.Reason == v1alpha1.ReasonStepping {
				order = append(order, d.Service.Name)
			}
		}
		in.Owner.Set.Spec.Services = r.Services
	}
	if diff := cmp.Diff([]string{"a", "b", "c", "d"}, order); diff != "" {
		t.Errorf("the order of upgrades differs (-want +got):\n%s", diff)
	}
}

func TestAChainWithoutVersionsSkipsNoHop(t *testing.T) {
	testResolve(t, []resolveCase{{
		name: "templates without versions go from hop to hop",
		world: world{
			desired: "a: green chain=a", chains: "a: red>amber>green",
			stored: "a: red@red", states: "a: Deployed red@red",
		},
		want: "a: amber@amber to=green@green",
		why:  "Stepping: a red → amber (step 1 of 2 to green)",
	}})
}

func TestAHopIsMatchedByItsTemplateNotByItsVersion(t *testing.T) {
	testResolve(t, []resolveCase{
		{
			name: "two templates of one version are two hops",
			world: world{
				desired: "a: new chain=a", chains: "a: old@1.0.0>mid@1.0.0>new@1.0.0 x>old@1.0.0",
				stored: "a: old@1.0.0", states: "a: Deployed old@1.0.0",
			},
			want: "a: mid@1.0.0 to=new@new",
			why:  "Stepping: a old → mid (step 1 of 2 to new)",
		},
		{
			name: "and the second is not there while the first is",
			world: world{
				desired: "a: new chain=a", chains: "a: old@1.0.0>mid@1.0.0>new@1.0.0 x>old@1.0.0",
				stored: "a: mid@1.0.0 to=new@new", states: "a: Deployed old@1.0.0",
			},
			want: "a: mid@1.0.0 to=new@new",
			why:  "InFlight: a 1.0.0 is on its way",
		},
	})
}

func TestAServiceThatFailedAtAVersionCanBeMended(t *testing.T) {
	testResolve(t, []resolveCase{{
		name: "by a better template, while what depends on it waits",
		world: world{
			desired: "a: a-1.1.0 values=good\nb: b-1.0.0 after=a", stored: "a: a-1.0.0@1.0.0 values=bad\nb: b-1.0.0@1.0.0 after=a",
			states: "a: Failed a-1.0.0@1.0.0\nb: Deployed b-1.0.0@1.0.0",
		},
		want: "a: a-1.1.0@1.1.0 values=good\nb: b-1.0.0@1.0.0 after=a",
		why:  "Stepping: a 1.0.0 → 1.1.0\nWaitingForDependencies: b waits for a",
	}})
}

func TestVersionsAreNotComparedAsText(t *testing.T) {
	testResolve(t, []resolveCase{{
		name: "10.0.0 comes after 9.0.0",
		world: world{
			desired: "a: a-11.0.0 chain=a", chains: "a: a-8.0.0>a-10.0.0>a-11.0.0 a-8.0.0>a-9.0.0>a-11.0.0",
			stored: "a: a-8.0.0@8.0.0", states: "a: Deployed a-8.0.0@8.0.0",
		},
		want: "a: a-9.0.0@9.0.0 to=a-11.0.0@11.0.0",
		why:  "Stepping: a 8.0.0 → 9.0.0 (step 1 of 2 to 11.0.0)",
	}})
}

func TestAListedDowngradeDoesNotJumpToTheEnd(t *testing.T) {
	testResolve(t, []resolveCase{{
		name: "it takes the greatest version that is not above",
		world: world{
			desired: "a: a-1.0.0 chain=a", chains: "a: a-10.0.0>a-9.0.0>a-2.0.0>a-1.0.0 a-10.0.0>a-2.0.0",
			stored: "a: a-10.0.0@10.0.0", states: "a: Deployed a-10.0.0@10.0.0",
		},
		want: "a: a-9.0.0@9.0.0 to=a-1.0.0@1.0.0",
		why:  "Stepping: a 10.0.0 → 9.0.0 (step 1 of 3 to 1.0.0)",
	}})
}

func TestAStoredEntryWithoutAVersionIsFilledInAndHoldsNothingUp(t *testing.T) {
	testResolve(t, []resolveCase{
		{
			name: "at the desired template",
			world: world{
				desired: "a: a-1.0.0\nb: b-1.0.0 after=a", stored: "a: a-1.0.0", states: "a: Deployed a-1.0.0@1.0.0",
			},
			want: "a: a-1.0.0@1.0.0\nb: b-1.0.0@1.0.0 after=a",
			why:  "Deployed: a 1.0.0 is deployed\nStepping: b is installed in version 1.0.0",
		},
		{
			name: "before a step, with a state that has no version either",
			world: world{
				desired: "a: a-2.0.0 chain=a", chains: "a: a-1.0.0>a-2.0.0", stored: "a: a-1.0.0", states: "a: Deployed a-1.0.0",
			},
			want: "a: a-2.0.0@2.0.0",
			why:  "Stepping: a 1.0.0 → 2.0.0",
		},
		{
			name: "in flight",
			world: world{
				desired: "a: a-2.0.0", stored: "a: a-1.0.0", states: "a: Pending",
			},
			want: "a: a-1.0.0@1.0.0",
			why:  "InFlight: a 1.0.0 is on its way",
		},
	})
}

func TestTheOrderOfTheListChangesWithNoState(t *testing.T) {
	w := world{desired: "c: c-2.0.0\nb: b-2.0.0 after=c\na: a-2.0.0", stored: "b: b-1.0.0@1.0.0\nc: c-1.0.0@1.0.0\na: a-1.0.0@1.0.0"}
	for _, states := range []string{"", "a: Deployed", "c: Failed c-1.0.0@1.0.0\nb: Deployed", "b: Provisioning\na: Deployed\nc: Deployed"} {
		w.states = states
		r, err := serviceset.Resolve(w.input(t))
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, s := range r.Services {
			names = append(names, s.Name)
		}
		if diff := cmp.Diff([]string{"a", "b", "c"}, names); diff != "" {
			t.Errorf("the order differs for the states %q (-want +got):\n%s", states, diff)
		}
	}
}

func TestUpgradePathsOfAChainWithManyWaysAreFew(t *testing.T) {
	// Between 1 and 60 there are 2^30 ways.
	var ways []string
	for i := 0; i < 60; i += 2 {
		ways = append(ways,
			fmt.Sprintf("t-%d.0.0>t-%d.0.0>t-%d.0.0", i, i+1, i+2),
			fmt.Sprintf("t-%d.0.0>t-%d.5.0>t-%d.0.0", i, i+1, i+2))
	}
	paths := testPaths(t, "t-0.0.0", ways...)
	if len(paths) > 60 {
		t.Errorf("there are %d paths", len(paths))
	}
	longest := paths[len(paths)-1]
	if steps := strings.Count(longest, ">"); steps < 58 {
		t.Errorf("the longest path has %d steps: %s", steps, longest)
	}
}

func TestAChangedProviderSelectorReachesTheLabels(t *testing.T) {
	cd := &v1alpha1.ClusterDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "prod", UID: "1"}}
	before := &v1alpha1.ServiceSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "prod", Labels: map[string]string{"mine": "stays"}}}
	first, err := serviceset.NewBuilder(cd, before, &metav1.LabelSelector{MatchLabels: map[string]string{"manager": "one", "tier": "a"}}).Build()
	if err != nil {
		t.Fatal(err)
	}
	second, err := serviceset.NewBuilder(cd, first, &metav1.LabelSelector{MatchLabels: map[string]string{"manager": "two"}}).Build()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"mine": "stays", "manager": "two", v1alpha1.ClusterLabel: "prod"}
	if diff := cmp.Diff(want, second.Labels); diff != "" {
		t.Errorf("the labels differ (-want +got):\n%s", diff)
	}
}

func TestNilOwnersAreErrorsAndNoPanics(t *testing.T) {
	if _, err := serviceset.NewBuilder(nil, &v1alpha1.ServiceSet{}, nil).Build(); err == nil {
		t.Error("a set without an owner was built")
	}
	if _, err := serviceset.NewBuilder(nil, nil, nil).WithMultiClusterService(nil).Build(); err == nil {
		t.Error("a set was built from nothing")
	}
	if _, err := serviceset.FilterServiceDependencies(t.Context(), nil, "system", nil, nil, nil); err == nil {
		t.Error("services of nobody were filtered")
	}
	if _, err := serviceset.ResolveServicesToApply(t.Context(), nil, "system", nil, nil, nil, nil); err == nil {
		t.Error("services of nobody were resolved")
	}
	if _, _, err := serviceset.GetServiceSetWithOperation(t.Context(), nil, serviceset.OperationRequisites{}); err == nil {
		t.Error("a set of nobody was computed")
	}
	if key := serviceset.ObjectKey("system", nil, nil); key != (client.ObjectKey{}) {
		t.Errorf("the key of nobody is %s", key)
	}
	if list := serviceset.ServicesToDeploy(nil, []v1alpha1.Service{{Name: "a", Template: "a-1"}}, nil); len(list) != 1 {
		t.Errorf("without a set there is %v to deploy", list)
	}
}

func TestAClusterNamedManagementKeepsASetOfItsOwn(t *testing.T) {
	mcs := &v1alpha1.MultiClusterService{ObjectMeta: metav1.ObjectMeta{Name: "base"}}
	cd := &v1alpha1.ClusterDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "system", Name: "management"}}
	keys := map[client.ObjectKey]string{}
	for what, key := range map[string]client.ObjectKey{
		"the management cluster's": serviceset.ObjectKey("system", nil, mcs),
		"the cluster's own":        serviceset.ObjectKey("system", cd, nil),
		"the cluster's":            serviceset.ObjectKey("system", cd, mcs),
	} {
		if other, ok := keys[key]; ok {
			t.Errorf("%s is both: %s, and %s", key, what, other)
		}
		keys[key] = what
	}
}

func TestProviderConfigIsComparedByValue(t *testing.T) {
	tests := []struct {
		a, b string
		same bool
	}{
		{`{"a":1,"b":[true,null]}`, "{ \"b\": [true, null],\n\"a\": 1.0 }", true},
		{`{"a":9007199254740993}`, `{"a":9007199254740992}`, false},
		{`{"a":1}`, `{"a":"1"}`, false},
		{`{"a":null}`, `{}`, false},
	}
	for _, tt := range tests {
		got := serviceset.SameSpec(
			&v1alpha1.ServiceSetSpec{Provider: v1alpha1.StateManagementProviderConfig{Config: &apiextensionsv1.JSON{Raw: []byte(tt.a)}}},
			&v1alpha1.ServiceSetSpec{Provider: v1alpha1.StateManagementProviderConfig{Config: &apiextensionsv1.JSON{Raw: []byte(tt.b)}}},
		)
		if got != tt.same {
			t.Errorf("%s and %s: got %v, want %v", tt.a, tt.b, got, tt.same)
		}
	}
}

func TestDuplicatesDoNotPassSilently(t *testing.T) {
	r, err := serviceset.Resolve(world{desired: "a: a-1.0.0\ndefault/a: a-2.0.0\nb: b-1.0.0\nb: b-1.0.0"}.input(t))
	if err != nil {
		t.Fatal(err)
	}
	var said []string
	for _, d := range r.Blocked() {
		said = append(said, d.Service.Name+" "+d.Reason)
	}
	want := []string{"a " + v1alpha1.ReasonDuplicate, "b " + v1alpha1.ReasonDuplicate}
	if diff := cmp.Diff(want, said); diff != "" {
		t.Errorf("what is blocked differs (-want +got):\n%s", diff)
	}
}

func TestOneBadTemplateDoesNotStopTheWholeSet(t *testing.T) {
	r, err := serviceset.Resolve(world{desired: "a: gone\nb: b-1.0.0", missing: "gone"}.input(t))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("b: b-1.0.0@1.0.0\n", said(r.Services)); diff != "" {
		t.Errorf("the services differ (-want +got):\n%s", diff)
	}
}

func TestPrioritiesOfTwoOwnersOfOneServiceAreNotIgnored(t *testing.T) {
	for _, tt := range []struct {
		priority int32
		want     string
	}{{99, "a: a-1.0.0@1.0.0\n"}, {101, ""}} {
		w := world{desired: "a: a-1.0.0", others: []other{{name: "other", priority: tt.priority, desired: "a: a-2.0.0"}}}
		r, err := serviceset.Resolve(w.input(t))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tt.want, said(r.Services)); diff != "" {
			t.Errorf("against priority %d the services differ (-want +got):\n%s", tt.priority, diff)
		}
	}
}

func TestTheWorkDoesNotGrowWithTheSquareOfTheServices(t *testing.T) {
	allocations := func(services int) float64 {
		in := platform(services)
		return testing.AllocsPerRun(1, func() {
			if _, err := serviceset.Resolve(in); err != nil {
				t.Fatal(err)
			}
		})
	}
	if few, many := allocations(200), allocations(10000); many > 50*few {
		t.Errorf("10,000 services take %.0f allocations, 200 take %.0f: %.1f times as many", many, few, many/few)
	}
}
