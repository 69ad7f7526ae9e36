package serviceset_test

import "testing"

func TestAServiceTakesOneStepAtATime(t *testing.T) {
	testResolve(t, []resolveCase{
		{
			name:  "a first install goes to the desired version directly",
			world: world{desired: "a: a-3.0.0 chain=a", chains: "a: a-1.0.0>a-2.0.0>a-3.0.0"},
			want:  "a: a-3.0.0@3.0.0",
			why:   "Stepping: a is installed in version 3.0.0",
		},
		{
			name: "an upgrade along a chain takes the next template, and remembers where it goes",
			world: world{
				desired: "a: a-3.0.0 chain=a", chains: "a: a-1.0.0>a-2.0.0>a-3.0.0",
				stored: "a: a-1.0.0@1.0.0", states: "a: Deployed a-1.0.0@1.0.0",
			},
			want: "a: a-2.0.0@2.0.0 to=a-3.0.0@3.0.0",
			why:  "Stepping: a 1.0.0 → 2.0.0 (step 1 of 2 to 3.0.0)",
		},
		{
			name: "the last step forgets it",
			world: world{
				desired: "a: a-3.0.0 chain=a", chains: "a: a-1.0.0>a-2.0.0>a-3.0.0",
				stored: "a: a-2.0.0@2.0.0 to=a-3.0.0@3.0.0", states: "a: Deployed a-2.0.0@2.0.0",
			},
			want: "a: a-3.0.0@3.0.0",
			why:  "Stepping: a 2.0.0 → 3.0.0",
		},
		{
			name: "in flight: not advanced, values go through",
			world: world{
				desired: "a: a-3.0.0 chain=a values=new", chains: "a: a-1.0.0>a-2.0.0>a-3.0.0",
				stored: "a: a-2.0.0@2.0.0 to=a-3.0.0@3.0.0 values=old", states: "a: Deployed a-1.0.0@1.0.0",
			},
			want: "a: a-2.0.0@2.0.0 to=a-3.0.0@3.0.0 values=new",
			why:  "InFlight: a 2.0.0 is on its way",
		},
		{
			name: "in flight without a chain: not advanced either",
			world: world{
				desired: "a: a-3.0.0 values=new", stored: "a: a-2.0.0@2.0.0 values=old", states: "a: Provisioning a-2.0.0@2.0.0",
			},
			want: "a: a-2.0.0@2.0.0 values=new",
			why:  "InFlight: a 2.0.0 is on its way",
		},
		{
			name:  "in flight before there is any state",
			world: world{desired: "a: a-3.0.0", stored: "a: a-2.0.0@2.0.0"},
			want:  "a: a-2.0.0@2.0.0",
			why:   "InFlight: a 2.0.0 is on its way",
		},
		{
			name:  "without a chain the desired template is taken at once",
			world: world{desired: "a: a-3.0.0", stored: "a: a-1.0.0@1.0.0", states: "a: Deployed a-1.0.0@1.0.0"},
			want:  "a: a-3.0.0@3.0.0",
			why:   "Stepping: a 1.0.0 → 3.0.0",
		},
		{
			name: "a downgrade is the same walk",
			world: world{
				desired: "a: a-1.0.0 chain=a", chains: "a: a-3.0.0>a-2.0.0>a-1.0.0",
				stored: "a: a-3.0.0@3.0.0", states: "a: Deployed a-3.0.0@3.0.0",
			},
			want: "a: a-2.0.0@2.0.0 to=a-1.0.0@1.0.0",
			why:  "Stepping: a 3.0.0 → 2.0.0 (step 1 of 2 to 1.0.0)",
		},
		{
			name: "the same template with another version needs no edge",
			world: world{
				desired: "a: a-1.0.0 version=1.0.1 chain=a", chains: "a: a-1.0.0>a-2.0.0",
				stored: "a: a-1.0.0@1.0.0", states: "a: Deployed a-1.0.0@1.0.0",
			},
			want: "a: a-1.0.0@1.0.1",
			why:  "Stepping: a 1.0.0 → 1.0.1",
		},
		{
			name: "a chain and a version say the template",
			world: world{
				desired: "a: chain=a version=v3.0", chains: "a: a-1.0.0>a-2.0.0>a-3.0.0",
				stored: "a: a-1.0.0@1.0.0", states: "a: Deployed a-1.0.0@1.0.0",
			},
			want: "a: a-2.0.0@2.0.0 to=a-3.0.0@v3.0",
			why:  "Stepping: a 1.0.0 → 2.0.0 (step 1 of 2 to v3.0)",
		},
		{
			name: "of several templates with that version the present one is meant",
			world: world{
				desired: "a: chain=a version=2.0.0", chains: "a: other@2.0.0>a-2.0.0@2.0.0 x>other@2.0.0",
				stored: "a: a-2.0.0@2.0.0", states: "a: Deployed a-2.0.0@2.0.0",
			},
			want: "a: a-2.0.0@2.0.0",
			why:  "Deployed: a 2.0.0 is deployed",
		},
		{
			name: "a new name of the template alone is a step as well",
			world: world{
				desired: "a: a-1.0.0+b", stored: "a: a-1.0.0@1.0.0", states: "a: Deployed a-1.0.0@1.0.0",
			},
			want: "a: a-1.0.0+b@1.0.0+b",
			why:  "Stepping: a 1.0.0 → 1.0.0+b",
		},
		{
			name:  "one that is uninstalled as it should be is done, and what depends on it goes on",
			world: world{desired: "a: a-1.0.0 uninstall\nb: b-1.0.0 after=a", stored: "a: a-1.0.0@1.0.0 uninstall", states: "a: Deleted a-1.0.0@1.0.0"},
			want:  "a: a-1.0.0@1.0.0 uninstall\nb: b-1.0.0@1.0.0 after=a",
			why:   "Deployed: a 1.0.0 is uninstalled\nStepping: b is installed in version 1.0.0",
		},
		{
			name:  "one that is not uninstalled yet is not",
			world: world{desired: "a: a-1.0.0 uninstall\nb: b-1.0.0 after=a", stored: "a: a-1.0.0@1.0.0 uninstall", states: "a: Deployed a-1.0.0@1.0.0"},
			want:  "a: a-1.0.0@1.0.0 uninstall",
			why:   "InFlight: a 1.0.0 is on its way\nWaitingForDependencies: b waits for a",
		},
		{
			name:  "one that is gone and should not be is not",
			world: world{desired: "a: a-1.0.0", stored: "a: a-1.0.0@1.0.0", states: "a: Deleted a-1.0.0@1.0.0"},
			want:  "a: a-1.0.0@1.0.0",
			why:   "InFlight: a 1.0.0 is on its way",
		},
		{
			name: "one that is uninstalled takes another version",
			world: world{
				desired: "a: a-3.0.0 chain=a uninstall", chains: "a: a-1.0.0>a-2.0.0>a-3.0.0",
				stored: "a: a-1.0.0@1.0.0 uninstall", states: "a: Deleted a-1.0.0@1.0.0",
			},
			want: "a: a-2.0.0@2.0.0 to=a-3.0.0@3.0.0 uninstall",
			why:  "Stepping: a 1.0.0 → 2.0.0 (step 1 of 2 to 3.0.0)",
		},
		{
			name: "a service that is put back before it was gone goes on from where it is",
			world: world{
				desired: "a: a-3.0.0 chain=a", chains: "a: a-1.0.0>a-2.0.0>a-3.0.0",
				removing: "a:", states: "a: Deployed a-1.0.0@1.0.0",
			},
			want: "a: a-2.0.0@2.0.0 to=a-3.0.0@3.0.0",
			why:  "Stepping: a 1.0.0 → 2.0.0 (step 1 of 2 to 3.0.0)",
		},
		{
			name: "one that is on its way out is installed anew",
			world: world{
				desired: "a: a-3.0.0 chain=a", chains: "a: a-1.0.0>a-2.0.0>a-3.0.0",
				removing: "a:", states: "a: Deleting a-1.0.0@1.0.0",
			},
			want: "a: a-3.0.0@3.0.0",
			why:  "Stepping: a is installed in version 3.0.0",
		},
	})
}

func TestWhereThereIsNoWayTheVersionStaysAndValuesGoThrough(t *testing.T) {
	testResolve(t, []resolveCase{
		{
			name: "the chain does not lead there",
			world: world{
				desired: "a: a-3.0.0 chain=a values=new", chains: "a: a-1.0.0>a-2.0.0 a-2.5.0>a-3.0.0",
				stored: "a: a-1.0.0@1.0.0 values=old", states: "a: Deployed a-1.0.0@1.0.0",
			},
			want: "a: a-1.0.0@1.0.0 values=new",
			why: "NoUpgradePath: a version 3.0.0 is out of reach: ServiceTemplateChain a does not lead from template a-1.0.0 to a-3.0.0 " +
				"(from 1.0.0 it leads to 2.0.0 as a-2.0.0)",
		},
		{
			name: "the chain does not have the present template",
			world: world{
				desired: "a: a-3.0.0 chain=a values=new", chains: "a: a-2.0.0>a-3.0.0",
				stored: "a: a-1.0.0@1.0.0", states: "a: Deployed a-1.0.0@1.0.0",
			},
			want: "a: a-1.0.0@1.0.0 values=new",
			why: "NoUpgradePath: a version 3.0.0 is out of reach: ServiceTemplateChain a does not lead from template a-1.0.0 to a-3.0.0 " +
				"(from 1.0.0 it leads to nothing)",
		},
		{
			name: "the chain does not have the desired template",
			world: world{
				desired: "a: a-3.0.0 chain=a values=new", chains: "a: a-1.0.0>a-2.0.0",
				stored: "a: a-1.0.0@1.0.0", states: "a: Deployed a-1.0.0@1.0.0",
			},
			want: "a: a-1.0.0@1.0.0 values=new",
			why: "NotInChain: a version 3.0.0 is out of reach: template a-3.0.0 is not in ServiceTemplateChain a: add it there " +
				"(it lists 1.0.0 as a-1.0.0, 2.0.0 as a-2.0.0)",
		},
		{
			name:  "nor is such a template installed",
			world: world{desired: "a: a-3.0.0 chain=a", chains: "a: a-1.0.0>a-2.0.0"},
			why: "NotInChain: a version 3.0.0 is out of reach: template a-3.0.0 is not in ServiceTemplateChain a: add it there " +
				"(it lists 1.0.0 as a-1.0.0, 2.0.0 as a-2.0.0)",
		},
		{
			name: "the chain does not exist",
			world: world{
				desired: "a: a-3.0.0 chain=x values=new", stored: "a: a-1.0.0@1.0.0", states: "a: Deployed a-1.0.0@1.0.0",
			},
			want: "a: a-1.0.0@1.0.0 values=new",
			why:  "ChainMissing: a ServiceTemplateChain x does not exist: create it",
		},
		{
			name: "the chain contradicts itself",
			world: world{
				desired: "a: a-3.0.0 chain=a", chains: "a: a-1.0.0>a-3.0.0@3.0.0 a-2.0.0>a-3.0.0@3.1.0",
				stored: "a: a-1.0.0@1.0.0", states: "a: Deployed a-1.0.0@1.0.0",
			},
			want: "a: a-1.0.0@1.0.0",
			why: "ChainInvalid: a ServiceTemplateChain a contradicts itself: template a-3.0.0 has the versions 3.0.0 and 3.1.0: " +
				"give each template one version",
		},
		{
			name: "the chain does not have the desired version",
			world: world{
				desired: "a: chain=a version=9.0.0", chains: "a: a-1.0.0>a-2.0.0",
				stored: "a: a-1.0.0@1.0.0 values=x", states: "a: Deployed a-1.0.0@1.0.0",
			},
			want: "a: a-1.0.0@1.0.0 values=x",
			why:  "NotInChain: a ServiceTemplateChain a has no template with version 9.0.0: add one (it lists 1.0.0 as a-1.0.0, 2.0.0 as a-2.0.0)",
		},
		{
			name: "what already is where it should be needs no chain",
			world: world{
				desired: "a: a-1.0.0 chain=x\nb: b-1.0.0 after=a", stored: "a: a-1.0.0@1.0.0", states: "a: Deployed a-1.0.0@1.0.0",
			},
			want: "a: a-1.0.0@1.0.0\nb: b-1.0.0@1.0.0 after=a",
			why:  "Deployed: a 1.0.0 is deployed\nStepping: b is installed in version 1.0.0",
		},
	})
}

func TestFailedIsNoTrap(t *testing.T) {
	const steps = "a: a-1.0.0>a-2.0.0>a-3.0.0>a-4.0.0"
	testResolve(t, []resolveCase{
		{
			name: "it takes new values in the version that failed",
			world: world{
				desired: "a: a-2.0.0 values=new", stored: "a: a-2.0.0@2.0.0 values=old",
				states: "a: Failed a-2.0.0@2.0.0 last=a-1.0.0@1.0.0 message=bad-values",
			},
			want: "a: a-2.0.0@2.0.0 values=new",
			why:  "Failed: a 2.0.0 failed: bad-values",
		},
		{
			name: "it goes back to what it last had Deployed, without an edge",
			world: world{
				desired: "a: a-1.0.0 chain=a", chains: steps, stored: "a: a-2.0.0@2.0.0 to=a-4.0.0@4.0.0",
				states: "a: Failed a-2.0.0@2.0.0 last=a-1.0.0@1.0.0",
			},
			want: "a: a-1.0.0@1.0.0",
			why:  "Stepping: a 2.0.0 → 1.0.0",
		},
		{
			name: "it goes on anywhere without a chain",
			world: world{
				desired: "a: a-9.0.0", stored: "a: a-2.0.0@2.0.0", states: "a: Failed a-2.0.0@2.0.0 last=a-1.0.0@1.0.0",
			},
			want: "a: a-9.0.0@9.0.0",
			why:  "Stepping: a 2.0.0 → 9.0.0",
		},
		{
			name: "it goes on along an edge when something else is desired",
			world: world{
				desired: "a: a-4.0.0 chain=a", chains: steps, stored: "a: a-2.0.0@2.0.0 values=old",
				states: "a: Failed a-2.0.0@2.0.0 last=a-1.0.0@1.0.0",
			},
			want: "a: a-3.0.0@3.0.0 to=a-4.0.0@4.0.0",
			why:  "Stepping: a 2.0.0 → 3.0.0 (step 1 of 2 to 4.0.0)",
		},
		{
			name: "and from a step too, when something else is desired than when it was taken",
			world: world{
				desired: "a: a-3.0.0 chain=a", chains: steps, stored: "a: a-2.0.0@2.0.0 to=a-4.0.0@4.0.0",
				states: "a: Failed a-2.0.0@2.0.0 last=a-1.0.0@1.0.0",
			},
			want: "a: a-3.0.0@3.0.0",
			why:  "Stepping: a 2.0.0 → 3.0.0",
		},
		{
			name: "but a step that failed is not skipped; new values mend it",
			world: world{
				desired: "a: a-4.0.0 chain=a values=new", chains: steps, stored: "a: a-2.0.0@2.0.0 to=a-4.0.0@4.0.0 values=old",
				states: "a: Failed a-2.0.0@2.0.0 last=a-1.0.0@1.0.0 message=hook",
			},
			want: "a: a-2.0.0@2.0.0 to=a-4.0.0@4.0.0 values=new",
			why:  "StepFailed: a step 2.0.0 to 4.0.0 failed: hook",
		},
		{
			name: "nor does it go where there is no way",
			world: world{
				desired: "a: a-1.0.0 chain=a", chains: steps, stored: "a: a-3.0.0@3.0.0",
				states: "a: Failed a-3.0.0@3.0.0 last=a-2.0.0@2.0.0",
			},
			want: "a: a-3.0.0@3.0.0",
			why: "NoUpgradePath: a version 1.0.0 is out of reach: ServiceTemplateChain a does not lead from template a-3.0.0 to a-1.0.0 " +
				"(from 3.0.0 it leads to 4.0.0 as a-4.0.0)",
		},
		{
			name: "a failure of another version is not that of the one in the set",
			world: world{
				desired: "a: a-4.0.0", stored: "a: a-3.0.0@3.0.0", states: "a: Failed a-2.0.0@2.0.0",
			},
			want: "a: a-3.0.0@3.0.0",
			why:  "InFlight: a 3.0.0 is on its way",
		},
	})
}

func TestOneBadServiceBlocksItselfAndItsDependentsOnly(t *testing.T) {
	testResolve(t, []resolveCase{
		{
			name: "a template that is missing",
			world: world{
				desired: "a: a-2.0.0 values=new\nb: b-2.0.0 after=a\nc: c-2.0.0", missing: "a-2.0.0",
				stored: "a: a-1.0.0@1.0.0 values=old\nb: b-1.0.0@1.0.0",
				states: "a: Deployed a-1.0.0@1.0.0\nb: Deployed b-1.0.0@1.0.0",
			},
			want: "a: a-1.0.0@1.0.0 values=old\nb: b-1.0.0@1.0.0\nc: c-2.0.0@2.0.0",
			why: `
				TemplateMissing: a ServiceTemplate a-2.0.0 does not exist: create it
				WaitingForDependencies: b waits for a
				Stepping: c is installed in version 2.0.0`,
		},
		{
			name: "a duplicate",
			world: world{
				desired: "a: a-2.0.0\na: a-3.0.0\nb: b-2.0.0 after=a\nc: c-2.0.0",
				stored:  "a: a-1.0.0@1.0.0", states: "a: Deployed a-1.0.0@1.0.0",
			},
			want: "a: a-1.0.0@1.0.0\nc: c-2.0.0@2.0.0",
			why: `
				DuplicateService: a ClusterDeployment ns/platform lists the service more than once: keep one
				WaitingForDependencies: b waits for a
				Stepping: c is installed in version 2.0.0`,
		},
		{
			name: "a template that is not in its chain",
			world: world{
				desired: "a: a-2.0.0 chain=a\nb: b-2.0.0 after=a\nc: c-2.0.0", chains: "a: a-1.0.0>a-3.0.0",
			},
			want: "c: c-2.0.0@2.0.0",
			why: `
				NotInChain: a version 2.0.0 is out of reach: template a-2.0.0 is not in ServiceTemplateChain a: add it there (it lists 1.0.0 as a-1.0.0, 3.0.0 as a-3.0.0)
				WaitingForDependencies: b waits for a
				Stepping: c is installed in version 2.0.0`,
		},
	})
}

func TestDisabledServicesAreKeptAsTheyRun(t *testing.T) {
	testResolve(t, []resolveCase{
		{
			name: "not advanced, not changed, not deleted, and ready for what depends on them",
			world: world{
				desired: "a: a-2.0.0 values=new disable\nb: b-1.0.0 after=a",
				stored:  "a: a-1.0.0@1.0.0 values=old", states: "a: Deployed a-1.0.0@1.0.0",
			},
			want: "a: a-1.0.0@1.0.0 values=old\nb: b-1.0.0@1.0.0 after=a",
			why:  "Disabled: a is disabled and left as it is\nStepping: b is installed in version 1.0.0",
		},
		{
			name:  "not installed, so that what depends on them waits",
			world: world{desired: "a: a-2.0.0 disable\nb: b-1.0.0 after=a"},
			why:   "Disabled: a is disabled and not installed\nWaitingForDependencies: b waits for a",
		},
	})
}
