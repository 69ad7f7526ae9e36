package serviceset_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/operatorkit/operatorkit/resource/serviceset"
)

func TestOneOfSeveralOwnersGetsAService(t *testing.T) {
	testResolve(t, []resolveCase{
		{
			name: "the one with the higher priority, which begins with what runs, as it is",
			world: world{
				desired: "a: a-3.0.0 chain=a values=mine", chains: "a: a-1.0.0>a-2.0.0>a-3.0.0",
				others: []other{{
					name: "low", priority: 50, desired: "a: a-1.0.0 values=theirs",
					stored: "a: a-1.0.0@1.0.0 values=theirs", states: "a: Deployed a-1.0.0@1.0.0",
				}},
			},
			want: "a: a-1.0.0@1.0.0 values=theirs",
			why:  "InFlight: a is taken over from MultiClusterService low as it is",
		},
		{
			name: "while both have it, it does not change",
			world: world{
				desired: "a: a-3.0.0 chain=a values=mine", chains: "a: a-1.0.0>a-2.0.0>a-3.0.0",
				stored: "a: a-1.0.0@1.0.0 values=theirs", states: "a: Deployed a-1.0.0@1.0.0",
				others: []other{{
					name: "low", priority: 50, desired: "a: a-1.0.0 values=theirs",
					stored: "a: a-1.0.0@1.0.0 values=theirs", states: "a: Deployed a-1.0.0@1.0.0",
				}},
			},
			want: "a: a-1.0.0@1.0.0 values=theirs",
			why:  "InFlight: a is taken over from MultiClusterService low, and stays as it is until that has let it go",
		},
		{
			name: "and then it goes on",
			world: world{
				desired: "a: a-3.0.0 chain=a values=mine", chains: "a: a-1.0.0>a-2.0.0>a-3.0.0",
				stored: "a: a-1.0.0@1.0.0 values=theirs", states: "a: Deployed a-1.0.0@1.0.0",
				others: []other{{name: "low", priority: 50, desired: "a: a-1.0.0 values=theirs"}},
			},
			want: "a: a-2.0.0@2.0.0 to=a-3.0.0@3.0.0 values=mine",
			why:  "Stepping: a 1.0.0 → 2.0.0 (step 1 of 2 to 3.0.0)",
		},
		{
			name: "a step under way is taken over too",
			world: world{
				desired: "a: a-3.0.0",
				others: []other{{
					name: "low", priority: 50, desired: "a: a-2.0.0", stored: "a: a-1.5.0@1.5.0 to=a-2.0.0@2.0.0", states: "a: Provisioning a-1.5.0@1.5.0",
				}},
			},
			want: "a: a-1.5.0@1.5.0 to=a-2.0.0@2.0.0",
			why:  "InFlight: a is taken over from MultiClusterService low as it is",
		},
		{
			name: "an owner that disables it takes it over, and keeps it",
			world: world{
				desired: "a: a-3.0.0 disable",
				others:  []other{{name: "gone", stored: "a: a-1.0.0@1.0.0", states: "a: Deployed a-1.0.0@1.0.0"}},
			},
			want: "a: a-1.0.0@1.0.0",
			why:  "InFlight: a is taken over from MultiClusterService gone as it is",
		},
		{
			name: "and so does one that can't have its way",
			world: world{
				desired: "a: a-3.0.0", missing: "a-3.0.0",
				others: []other{{name: "gone", stored: "a: a-1.0.0@1.0.0", states: "a: Deployed a-1.0.0@1.0.0"}},
			},
			want: "a: a-1.0.0@1.0.0",
			why:  "InFlight: a is taken over from MultiClusterService gone as it is",
		},
		{
			name: "the other one keeps it until that one has it",
			world: world{
				desired: "a: a-1.0.0 values=new", stored: "a: a-1.0.0@1.0.0 values=old", states: "a: Deployed a-1.0.0@1.0.0",
				others: []other{{name: "high", priority: 200, desired: "a: a-3.0.0"}},
			},
			want: "a: a-1.0.0@1.0.0 values=old",
			why: "Overridden: a belongs to MultiClusterService high, which has priority 200, " +
				"ClusterDeployment ns/platform has 100",
		},
		{
			name: "and then lets it go, without removing it",
			world: world{
				desired: "a: a-1.0.0", stored: "a: a-1.0.0@1.0.0", states: "a: Deployed a-1.0.0@1.0.0",
				others: []other{{name: "high", priority: 200, desired: "a: a-3.0.0", stored: "a: a-3.0.0@3.0.0"}},
			},
			why: "Overridden: a belongs to MultiClusterService high, which has priority 200, " +
				"ClusterDeployment ns/platform has 100",
		},
		{
			name: "among equals the older one",
			world: world{
				desired: "a: a-1.0.0", stored: "a: a-1.0.0@1.0.0", states: "a: Deployed a-1.0.0@1.0.0",
				others: []other{{name: "young", desired: "a: a-3.0.0"}},
			},
			want: "a: a-1.0.0@1.0.0",
			why:  "Deployed: a 1.0.0 is deployed",
		},
		{
			name: "a service that an owner lists no more goes to the one that does, without a gap",
			world: world{
				stored: "a: a-1.0.0@1.0.0", states: "a: Deployed a-1.0.0@1.0.0",
				others: []other{{name: "low", priority: 1, desired: "a: a-1.0.0"}},
			},
			want: "a: a-1.0.0@1.0.0",
		},
		{
			name: "and is let go when that one has it",
			world: world{
				stored: "a: a-1.0.0@1.0.0", states: "a: Deployed a-1.0.0@1.0.0",
				others: []other{{name: "low", priority: 1, desired: "a: a-1.0.0", stored: "a: a-1.0.0@1.0.0"}},
			},
		},
		{
			name: "an owner that waits for something else takes over all the same",
			world: world{
				desired: "a: a-2.0.0 after=b\nb: b-1.0.0",
				others: []other{{
					name: "low", priority: 50, desired: "a: a-1.0.0", stored: "a: a-1.0.0@1.0.0", states: "a: Deployed a-1.0.0@1.0.0",
				}},
			},
			want: "a: a-1.0.0@1.0.0\nb: b-1.0.0@1.0.0",
			why:  "InFlight: a is taken over from MultiClusterService low as it is\nStepping: b is installed in version 1.0.0",
		},
		{
			name: "dependencies look at what really runs, whoever owns it",
			world: world{
				desired: "a: a-1.0.0\nb: b-1.0.0 after=a",
				others: []other{{
					name: "high", priority: 200, desired: "a: a-2.0.0", stored: "a: a-2.0.0@2.0.0", states: "a: Deployed a-2.0.0@2.0.0",
				}},
			},
			want: "b: b-1.0.0@1.0.0 after=a",
			why: `
				Overridden: a belongs to MultiClusterService high, which has priority 200, ClusterDeployment ns/platform has 100
				Stepping: b is installed in version 1.0.0`,
		},
		{
			name: "and at what that owner still wants to do",
			world: world{
				desired: "a: a-1.0.0\nb: b-1.0.0 after=a",
				others: []other{{
					name: "high", priority: 200, desired: "a: a-2.0.0 after=c\nc: c-2.0.0",
					stored: "a: a-2.0.0@2.0.0\nc: c-1.0.0@1.0.0", states: "a: Deployed a-2.0.0@2.0.0\nc: Deployed c-1.0.0@1.0.0",
				}},
			},
			why: `
				Overridden: a belongs to MultiClusterService high, which has priority 200, ClusterDeployment ns/platform has 100
				WaitingForDependencies: b waits for a`,
		},
		{
			name: "a cycle that only all owners together make blocks what is on it and above it",
			world: world{
				desired: "a: a-1.0.0 after=b\nb: b-1.0.0\nc: c-1.0.0 after=a\nd: d-1.0.0",
				others:  []other{{name: "high", priority: 200, desired: "b: b-1.0.0 after=a"}},
			},
			want: "d: d-1.0.0@1.0.0",
			why: `
				DependencyCycle: a can't be resolved together with what other owners have on the cluster: services depend on each other: a → b → a
				Overridden: b belongs to MultiClusterService high, which has priority 200, ClusterDeployment ns/platform has 100
				WaitingForDependencies: c waits for a
				Stepping: d is installed in version 1.0.0`,
		},
		{
			name: "the set of an owner that has gone still says what runs",
			world: world{
				desired: "a: a-3.0.0 chain=a", chains: "a: a-1.0.0>a-2.0.0>a-3.0.0",
				others: []other{{name: "gone", stored: "a: a-1.0.0@1.0.0", states: "a: Deployed a-1.0.0@1.0.0"}},
			},
			want: "a: a-1.0.0@1.0.0",
			why:  "InFlight: a is taken over from MultiClusterService gone as it is",
		},
		{
			name: "what another owner is about to remove goes on from where it runs",
			world: world{
				desired: "a: a-3.0.0 chain=a", chains: "a: a-1.0.0>a-2.0.0>a-3.0.0",
				others: []other{{name: "gone", removing: "a:", states: "a: Deployed a-1.0.0@1.0.0"}},
			},
			want: "a: a-2.0.0@2.0.0 to=a-3.0.0@3.0.0",
			why:  "Stepping: a 1.0.0 → 2.0.0 (step 1 of 2 to 3.0.0)",
		},
		{
			name: "what is on its way out is installed again",
			world: world{
				desired: "a: a-3.0.0 chain=a", chains: "a: a-1.0.0>a-2.0.0>a-3.0.0",
				others: []other{{name: "gone", removing: "a:", states: "a: Deleting a-1.0.0@1.0.0"}},
			},
			want: "a: a-3.0.0@3.0.0",
			why:  "Stepping: a is installed in version 3.0.0",
		},
		{
			name: "a service is not let go for a set that is being deleted",
			world: world{
				desired: "a: a-1.0.0", stored: "a: a-1.0.0@1.0.0", states: "a: Deployed a-1.0.0@1.0.0",
				others: []other{{name: "high", priority: 200, desired: "a: a-1.0.0", stored: "a: a-1.0.0@1.0.0", leaving: true}},
			},
			want: "a: a-1.0.0@1.0.0",
			why: "Overridden: a belongs to MultiClusterService high, which has priority 200, " +
				"ClusterDeployment ns/platform has 100",
		},
		{
			name: "what a set has that is being deleted is taken over",
			world: world{
				desired: "a: a-3.0.0 chain=a", chains: "a: a-1.0.0>a-2.0.0>a-3.0.0",
				others: []other{{name: "gone", stored: "a: a-1.0.0@1.0.0", states: "a: Deployed a-1.0.0@1.0.0", leaving: true}},
			},
			want: "a: a-1.0.0@1.0.0",
			why:  "InFlight: a is taken over from MultiClusterService gone as it is",
		},
		{
			name: "but nothing can depend on it",
			world: world{
				desired: "a: a-1.0.0\nb: b-1.0.0 after=a",
				others: []other{{
					name: "high", priority: 200, desired: "a: a-1.0.0", stored: "a: a-1.0.0@1.0.0", states: "a: Deployed a-1.0.0@1.0.0", leaving: true,
				}},
			},
			why: `
				Overridden: a belongs to MultiClusterService high, which has priority 200, ClusterDeployment ns/platform has 100
				WaitingForDependencies: b waits for a`,
		},
	})
}

func TestAHandoverThatCannotGoOnSaysWhatItWaitsFor(t *testing.T) {
	testResolve(t, []resolveCase{
		{
			name: "the old owner has a dependency that is absent, and can't let anything go",
			world: world{
				desired: "a: a-1.0.0", stored: "a: a-1.0.0@1.0.0", states: "a: Deployed a-1.0.0@1.0.0",
				others: []other{{
					name: "low", priority: 50, desired: "a: a-1.0.0\nb: b-1.0.0 after=x",
					stored: "a: a-1.0.0@1.0.0", states: "a: Deployed a-1.0.0@1.0.0",
				}},
			},
			want: "a: a-1.0.0@1.0.0",
			why: "HandoverStuck: a stays as it is until MultiClusterService low lets it go, which can't be done: " +
				"service b depends on x, which is not listed: list it or take it out of dependsOn",
		},
		{
			name: "the new owner has, and can't take anything over",
			world: world{
				desired: "a: a-1.0.0", stored: "a: a-1.0.0@1.0.0", states: "a: Deployed a-1.0.0@1.0.0",
				others: []other{{name: "high", priority: 200, desired: "a: a-1.0.0\nb: b-1.0.0 after=x"}},
			},
			want: "a: a-1.0.0@1.0.0",
			why: "HandoverStuck: a stays here until MultiClusterService high takes it over, which can't be done: " +
				"service b depends on x, which is not listed: list it or take it out of dependsOn",
		},
	})
}

func TestASecondSetOfAnOwnerIsNamedByWhoeverWaitsForIt(t *testing.T) {
	s := newScene(t)
	s.cluster("a: a-1.0.0")
	s.set(nil, "a: a-1.0.0@1.0.0", "", "a: Deployed a-1.0.0@1.0.0")
	s.set(nil, "a: a-1.0.0@1.0.0", "", "a: Deployed a-1.0.0@1.0.0").Name = "again"
	for _, o := range s.compute() {
		if o.Err != nil {
			continue
		}
		want := "HandoverStuck: a stays as it is until ServiceSet platform/again lets it go, which can't be done: " +
			"ServiceSet platform/again is a second one of ClusterDeployment platform/prod on the same cluster, beside ServiceSet prod: delete it\n"
		if diff := cmp.Diff(want, saidWhy(o.Operation.Resolution.Decisions)); diff != "" {
			t.Errorf("the decisions differ (-want +got):\n%s", diff)
		}
		return
	}
	t.Error("there is no operation")
}

func TestOwnersOfEqualPriorityAndAgeGoByName(t *testing.T) {
	w := world{desired: "a: a-1.0.0", others: []other{{name: "another", desired: "a: a-2.0.0"}}}
	in := w.input(t)
	in.Others[0].Created = in.Owner.Created
	r, err := serviceset.Resolve(in)
	if err != nil {
		t.Fatal(err)
	}
	want := "Overridden: a belongs to MultiClusterService another, which has the same priority and age, and comes first by name\n"
	if diff := cmp.Diff(want, saidWhy(r.Decisions)); diff != "" {
		t.Errorf("the decisions differ (-want +got):\n%s", diff)
	}

	in.Others[0].Created = in.Owner.Created.Add(-time.Second)
	if r, err = serviceset.Resolve(in); err != nil {
		t.Fatal(err)
	}
	want = "Overridden: a belongs to MultiClusterService another, which has the same priority, and is older\n"
	if diff := cmp.Diff(want, saidWhy(r.Decisions)); diff != "" {
		t.Errorf("the decisions differ (-want +got):\n%s", diff)
	}
}
