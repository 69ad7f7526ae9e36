package serviceset_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/operatorkit/operatorkit/resource/serviceset"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// testPaths returns the upgrade paths from a template, each as "a>b>c" without where it begins. One that another path goes on from is left
// out, unless a third one comes to the same template on another way.
func testPaths(t testing.TB, from string, ways ...string) []string {
	t.Helper()
	spec := chainSpec(ways...)
	found, err := serviceset.UpgradePathsOf(from, &spec, template)
	if err != nil {
		t.Fatal(err)
	}
	paths := make([]string, len(found))
	for i, p := range found {
		paths[i] = saidPath(p)
	}
	all := slices.Clone(paths)
	return slices.DeleteFunc(paths, func(path string) bool {
		goal := path[strings.LastIndex(path, ">")+1:]
		goesOn := false
		for _, other := range all {
			before, _, over := strings.Cut(">"+other+">", ">"+goal+">")
			switch {
			case other == path || !over:
			case ">"+path != before+">"+goal:
				return false
			case other != path:
				goesOn = true
			}
		}
		return goesOn
	})
}

func TestEachTemplateThatCanBeReachedHasAPath(t *testing.T) {
	spec := chainSpec("a-1>a-2>a-3>a-4", "a-1>a-3")
	found, err := serviceset.UpgradePathsOf("a-1", &spec, template)
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, p := range found {
		paths = append(paths, saidPath(p))
	}
	if diff := cmp.Diff([]string{"a-2", "a-2>a-3", "a-2>a-3>a-4"}, paths); diff != "" {
		t.Errorf("the paths differ (-want +got):\n%s", diff)
	}
}

func saidPath(p v1alpha1.UpgradePath) string {
	names := make([]string, len(p.Versions))
	for i, v := range p.Versions {
		names[i] = v.Name
	}
	return strings.Join(names, ">")
}

func TestWaysThroughAChain(t *testing.T) {
	tests := []struct {
		name  string
		from  string
		ways  []string
		paths []string
	}{
		{"a chain without branches is one path", "a-1", []string{"a-1>a-2>a-3>a-4"}, []string{"a-2>a-3>a-4"}},
		{"an end has none", "a-2", []string{"a-1>a-2"}, []string{}},
		{"the smallest version that is not below comes first, not the shortest way", "a-1", []string{"a-1>a-3", "a-1>a-2>a-3"}, []string{"a-2>a-3"}},
		{"dead ends are no way", "a-1", []string{"a-1>a-2", "a-1>a-3>a-4"}, []string{"a-2", "a-3>a-4"}},
		{"a way down is not taken up", "a-2", []string{"a-2>a-1>a-4", "a-2>a-3>a-4"}, []string{"a-1", "a-3>a-4"}},
		{"unless there is no other one", "a-2", []string{"a-2>a-1>a-4"}, []string{"a-1>a-4"}},
		{"nor is a way over the goal and back", "a-1", []string{"a-1>a-5>a-3", "a-1>a-2>a-3"}, []string{"a-5", "a-2>a-3"}},
		{"unless there is no other one, either", "a-1", []string{"a-1>a-5>a-3"}, []string{"a-5>a-3"}},
		{"down, the greatest version that is not above comes first", "a-9", []string{"a-9>a-7>a-5>a-3", "a-9>a-5", "a-9>a-3"}, []string{"a-7>a-5>a-3"}},
		{"among equal versions the fewest steps that remain", "a-1", []string{"a-1>x@2>y@3>a-4", "a-1>z@2>a-4"}, []string{"x>y", "z>a-4"}},
		{"then the first by name", "a-1", []string{"a-1>z@2>a-4", "a-1>x@2>a-4", "a-1>y@2>a-4"}, []string{"y", "z", "x>a-4"}},
		{"a new name of the same version is taken on the way", "a-1", []string{"a-1>b@1>c@2>d@3", "a-1>d@3"}, []string{"b>c>d"}},
		{"but not back and forth", "a-1", []string{"a-1>b@1>c@2", "b>a-1@1", "a-1>c@2"}, []string{"b", "c"}},
		{"pre-releases come before their releases", "a-1.0.0", []string{"a-1.0.0>a-2.0.0", "a-1.0.0>a-2.0.0-rc.1>a-2.0.0"}, []string{"a-2.0.0-rc.1>a-2.0.0"}},
		{"without versions the fewest steps", "one", []string{"one>two>three>four", "one>two>four"}, []string{"two>four", "two>three"}},
		{"one template without a version on the way is enough for that", "a-1", []string{"a-1>a-2>x>a-4", "a-1>a-3>a-4"}, []string{"a-2>x", "a-3>a-4"}},
		{"one beside the way is not", "a-1", []string{"a-1>a-3", "a-1>a-2>a-3", "x>a-1", "a-1>y"}, []string{"y", "a-2>a-3"}},
		{"circles end", "a-1", []string{"a-1>a-2>a-3>a-1", "a-3>a-2>a-1"}, []string{"a-2>a-3"}},
		{
			// From 1 the only way is over 5; from 5 the greatest version below would be 4, from where one comes to 1 again.
			"greed does not go in circles", "a-1", []string{"a-1>a-5>a-4>a-1", "a-5>a-2>a-3"}, []string{"a-5>a-4", "a-5>a-2>a-3"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.paths, testPaths(t, tt.from, tt.ways...)); diff != "" {
				t.Errorf("the paths differ (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEqualVersionsAreEqualInMeaning(t *testing.T) {
	tests := []struct {
		a, b string
		want bool
	}{
		{"1.2.3", "1.2.3", true},
		{"v1.2.3", "1.2.3", true},
		{"1.2", "1.2.0", true},
		{"1.2.3", "1.2.4", false},
		{"1.2.3-rc.1", "1.2.3", false},
		{"1.2.3+a", "1.2.3+b", false},
		{"1.2.3+a", "v1.2.3+a", true},
		{"spring", "spring", true},
		{"spring", "Spring", false},
		{"spring", "1.0.0", false},
		{"2024.01.15", "2024.1.15", true},
		{"", "", true},
		{"", "0.0.0", false},
	}
	for _, tt := range tests {
		if got := serviceset.EqualVersions(tt.a, tt.b); got != tt.want {
			t.Errorf("%q and %q: got %v, want %v", tt.a, tt.b, got, tt.want)
		}
		if got := serviceset.EqualVersions(tt.b, tt.a); got != tt.want {
			t.Errorf("%q and %q: got %v, want %v", tt.b, tt.a, got, tt.want)
		}
	}
}
