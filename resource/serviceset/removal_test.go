package serviceset_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/operatorkit/operatorkit/resource/serviceset"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

func TestRemovedServicesGoAfterWhatDependsOnThem(t *testing.T) {
	tests := []struct {
		resolveCase
		removing string
	}{
		{resolveCase{
			name:  "at once, if nothing does",
			world: world{desired: "b: b-1.0.0", stored: "a: a-1.0.0@1.0.0\nb: b-1.0.0@1.0.0", states: "a: Deployed\nb: Deployed"},
			want:  "b: b-1.0.0@1.0.0",
			why:   "Removing: a is removed\nDeployed: b 1.0.0 is deployed",
		}, "a"},
		{resolveCase{
			name:  "what depends on the others goes first",
			world: world{stored: "a: a-1.0.0@1.0.0\nb: b-1.0.0@1.0.0 after=a\nc: c-1.0.0@1.0.0 after=b,a", states: "a: Deployed\nb: Deployed\nc: Deployed"},
			want:  "a: a-1.0.0@1.0.0\nb: b-1.0.0@1.0.0 after=a",
			why:   "Removing: a is removed after b, c\nRemoving: b is removed after c\nRemoving: c is removed",
		}, "c after=b,a"},
		{resolveCase{
			name: "the next one waits until it is gone",
			world: world{
				stored: "a: a-1.0.0@1.0.0\nb: b-1.0.0@1.0.0 after=a", removing: "c: after=b,a",
				states: "a: Deployed\nb: Deployed\nc: Deleting",
			},
			want: "a: a-1.0.0@1.0.0\nb: b-1.0.0@1.0.0 after=a",
			why:  "Removing: a is removed after b, c\nRemoving: b is removed after c",
		}, "c after=b,a"},
		{resolveCase{
			name: "and goes then",
			world: world{
				stored: "a: a-1.0.0@1.0.0\nb: b-1.0.0@1.0.0 after=a", removing: "c: after=b,a",
				states: "a: Deployed\nb: Deployed\nc: Deleted",
			},
			want: "a: a-1.0.0@1.0.0",
			why:  "Removing: a is removed after b\nRemoving: b is removed",
		}, "b after=a"},
		{resolveCase{
			name:  "no state means that it is gone too",
			world: world{stored: "a: a-1.0.0@1.0.0", removing: "b: after=a", states: "a: Deployed"},
			why:   "Removing: a is removed",
		}, "a"},
		{resolveCase{
			name: "a service that has stopped to depend on it lets it go when its entry says so",
			world: world{
				desired: "b: b-1.0.0\nc: c-1.0.0", stored: "a: a-1.0.0@1.0.0\nb: b-1.0.0@1.0.0 after=a\nc: c-1.0.0@1.0.0",
				states: "a: Deployed\nb: Deployed\nc: Deployed",
			},
			want: "a: a-1.0.0@1.0.0\nb: b-1.0.0@1.0.0\nc: c-1.0.0@1.0.0",
			why:  "Removing: a is removed after b\nDeployed: b 1.0.0 is deployed\nDeployed: c 1.0.0 is deployed",
		}, ""},
		{resolveCase{
			name:  "services that depend on each other by hand go together",
			world: world{stored: "a: a-1.0.0@1.0.0 after=b\nb: b-1.0.0@1.0.0 after=a\nc: c-1.0.0@1.0.0 after=c", states: "a: Deployed\nb: Deployed"},
			why:   "Removing: a is removed\nRemoving: b is removed\nRemoving: c is removed",
		}, "a after=b\nb after=a\nc after=c"},
		{resolveCase{
			name: "after what depends on it in another owner's set",
			world: world{
				stored: "a: a-1.0.0@1.0.0", states: "a: Deployed",
				others: []other{{name: "other", stored: "b: b-1.0.0@1.0.0 after=a", removing: "c: after=a", states: "b: Deployed\nc: Deleting"}},
			},
			want: "a: a-1.0.0@1.0.0",
			why:  "Removing: a is removed after b, c",
		}, ""},
		{resolveCase{
			name: "what several owners have had goes with each of them",
			world: world{
				stored: "a: a-1.0.0@1.0.0\nb: b-1.0.0@1.0.0 after=a", states: "a: Deployed\nb: Deployed",
				others: []other{{name: "other", stored: "a: a-1.0.0@1.0.0\nb: b-1.0.0@1.0.0 after=a", states: "a: Deployed\nb: Deployed"}},
			},
			want: "a: a-1.0.0@1.0.0",
			why:  "Removing: a is removed after b\nRemoving: b is removed",
		}, "b after=a"},
		{resolveCase{
			name:  "a service that is listed again is not removed any more",
			world: world{desired: "a: a-1.0.0", removing: "a:", states: "a: Deleting a-1.0.0@1.0.0"},
			want:  "a: a-1.0.0@1.0.0",
			why:   "Stepping: a is installed in version 1.0.0",
		}, ""},
	}
	for _, tt := range tests {
		testResolve(t, []resolveCase{tt.resolveCase})
		t.Run(tt.name+": removing", func(t *testing.T) {
			r, err := serviceset.Resolve(tt.world.input(t))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.removing, saidRemovals(r.Removing)); diff != "" {
				t.Errorf("what is being removed differs (-want +got):\n%s", diff)
			}
		})
	}
}

func saidRemovals(list []v1alpha1.ServiceRemoval) string {
	var said []string
	for _, r := range list {
		text := shortKey(r.Namespace, r.Name)
		var names []string
		for _, d := range r.DependsOn {
			names = append(names, shortKey(d.Namespace, d.Name))
		}
		if len(names) > 0 {
			text += " after=" + strings.Join(names, ",")
		}
		said = append(said, text)
	}
	return strings.Join(said, "\n")
}

func TestContradictionsBetweenServicesAreErrorsThatNameEveryCulprit(t *testing.T) {
	tests := []struct {
		name  string
		world world
		want  string
	}{
		{
			"absent dependencies, one of a service that was removed",
			world{desired: "a: a-1.0.0 after=x,y\nb: b-1.0.0 after=z\nc: c-1.0.0", stored: "y: y-1.0.0@1.0.0"},
			"service default/a depends on default/x, which is not listed: list it or take it out of dependsOn; " +
				"service default/a depends on default/y, which was removed from the list: put it back or take it out of dependsOn; " +
				"service default/b depends on default/z, which is not listed: list it or take it out of dependsOn",
		},
		{
			"cycles",
			world{desired: "a: a-1.0.0 after=b\nb: b-1.0.0 after=c\nc: c-1.0.0 after=a\nd: d-1.0.0 after=d,a\ne: e-1.0.0 after=a"},
			"services depend on each other: default/a → default/b → default/c → default/a: take one of these dependencies out; " +
				"services depend on each other: default/d → default/d: take one of these dependencies out",
		},
		{
			"a cycle within a greater one",
			world{desired: "a: a-1.0.0 after=b,c\nb: b-1.0.0 after=a\nc: c-1.0.0 after=b"},
			"services depend on each other: default/a → default/b → default/a (all that do: default/a, default/b, default/c): " +
				"take one of these dependencies out",
		},
		{
			"both",
			world{desired: "a: a-1.0.0 after=a\nb: b-1.0.0 after=z"},
			"service default/b depends on default/z, which is not listed: list it or take it out of dependsOn; " +
				"services depend on each other: default/a → default/a: take one of these dependencies out",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := serviceset.Resolve(tt.world.input(t))
			if err == nil {
				t.Fatal("there is no error")
			}
			if diff := cmp.Diff(tt.want, err.Error()); diff != "" {
				t.Errorf("the error differs (-want +got):\n%s", diff)
			}
		})
	}
}
