package serviceset_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/operatorkit/operatorkit/resource/serviceset"
)

type resolveCase struct {
	name  string
	world world
	want  string // services of the set
	why   string // decisions
}

func testResolve(t *testing.T, tests []resolveCase) {
	t.Helper()
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r, err := serviceset.Resolve(tt.world.input(t))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(trimmed(tt.want), said(r.Services)); diff != "" {
				t.Errorf("the services differ (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(trimmed(tt.why), saidWhy(r.Decisions)); diff != "" {
				t.Errorf("the decisions differ (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNothingIsTouchedBeforeWhatItDependsOnIsReady(t *testing.T) {
	testResolve(t, []resolveCase{
		{
			name: "first what depends on nothing",
			world: world{desired: `
				c: c-1.0.0 after=b
				b: b-1.0.0 after=a
				a: a-1.0.0`},
			want: `a: a-1.0.0@1.0.0`,
			why: `
				Stepping: a is installed in version 1.0.0
				WaitingForDependencies: b waits for a
				WaitingForDependencies: c waits for b`,
		},
		{
			name: "the next one when it runs",
			world: world{
				desired: "a: a-1.0.0\nb: b-1.0.0 after=a\nc: c-1.0.0 after=b",
				stored:  "a: a-1.0.0@1.0.0",
				states:  "a: Deployed a-1.0.0@1.0.0",
			},
			want: "a: a-1.0.0@1.0.0\nb: b-1.0.0@1.0.0 after=a",
			why: `
				Deployed: a 1.0.0 is deployed
				Stepping: b is installed in version 1.0.0
				WaitingForDependencies: c waits for b`,
		},
		{
			name: "not while it is on its way",
			world: world{
				desired: "a: a-1.0.0\nb: b-1.0.0 after=a",
				stored:  "a: a-1.0.0@1.0.0",
				states:  "a: Provisioning a-1.0.0@1.0.0",
			},
			want: "a: a-1.0.0@1.0.0",
			why:  "InFlight: a 1.0.0 is on its way\nWaitingForDependencies: b waits for a",
		},
		{
			name: "nor while the version that runs is not the one in the set",
			world: world{
				desired: "a: a-2.0.0\nb: b-1.0.0 after=a",
				stored:  "a: a-2.0.0@2.0.0",
				states:  "a: Deployed a-1.0.0@1.0.0",
			},
			want: "a: a-2.0.0@2.0.0",
			why:  "InFlight: a 2.0.0 is on its way\nWaitingForDependencies: b waits for a",
		},
		{
			name: "nor while the one in the set is not the desired one; what is locked stays as it is, values too",
			world: world{
				desired: "a: a-2.0.0\nb: b-2.0.0 after=a values=new",
				stored:  "b: b-1.0.0@1.0.0 after=a values=old\na: a-1.0.0@1.0.0",
				states:  "a: Deployed a-1.0.0@1.0.0\nb: Deployed b-1.0.0@1.0.0",
			},
			want: "a: a-2.0.0@2.0.0\nb: b-1.0.0@1.0.0 after=a values=old",
			why:  "Stepping: a 1.0.0 → 2.0.0\nWaitingForDependencies: b waits for a",
		},
		{
			name: "a failing dependency locks",
			world: world{
				desired: "a: a-1.0.0\nb: b-2.0.0 after=a values=new",
				stored:  "a: a-1.0.0@1.0.0\nb: b-1.0.0@1.0.0 after=a values=old",
				states:  "a: Failed a-1.0.0@1.0.0 message=crash\nb: Deployed b-1.0.0@1.0.0",
			},
			want: "a: a-1.0.0@1.0.0\nb: b-1.0.0@1.0.0 after=a values=old",
			why:  "Failed: a 1.0.0 failed: crash\nWaitingForDependencies: b waits for a",
		},
		{
			name: "a new dependency of a service that runs locks it",
			world: world{
				desired: "a: a-1.0.0\nb: b-2.0.0 after=a",
				stored:  "b: b-1.0.0@1.0.0",
				states:  "b: Deployed b-1.0.0@1.0.0",
			},
			want: "a: a-1.0.0@1.0.0\nb: b-1.0.0@1.0.0",
			why:  "Stepping: a is installed in version 1.0.0\nWaitingForDependencies: b waits for a",
		},
		{
			name: "services of the same name in other namespaces are others",
			world: world{
				desired: "x/a: a-1.0.0\nb: b-1.0.0 after=x/a\na: a-1.0.0",
				stored:  "a: a-1.0.0@1.0.0",
				states:  "a: Deployed a-1.0.0@1.0.0",
			},
			want: "a: a-1.0.0@1.0.0\nx/a: a-1.0.0@1.0.0",
			why:  "Deployed: a 1.0.0 is deployed\nWaitingForDependencies: b waits for x/a\nStepping: x/a is installed in version 1.0.0",
		},
	})
}
