package main

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"suite": main})
}

func TestScripts(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "env", "GOCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Setup: func(env *testscript.Env) error {
			env.Setenv("GOCACHE", strings.TrimSpace(string(out)))
			env.Setenv("GOFLAGS", "")
			env.Setenv("CI", "")
			return nil
		},
	})
}

func TestAPackageCanBeLeftOutOfTheRaceDetector(t *testing.T) {
	const all, sums = "github.com/operatorkit/operatorkit/operator/internal/...", "github.com/operatorkit/operatorkit/operator/internal/slots"
	commands, err := commands(t.Context(), options{race: all + " !" + sums, packages: []string{all}})
	if err != nil {
		t.Fatal(err)
	}
	if len(commands) != 2 {
		t.Fatalf("there are the commands %+v, want one with the race detector, and one without", commands)
	}
	with, without := commands[0], commands[1]
	flags := slices.Contains(with.args, "-race") && !slices.Contains(without.args, "-race") && with.race && !without.race
	if !flags || slices.Contains(with.packages, sums) || !slices.Equal(without.packages, []string{sums}) {
		t.Errorf("the commands are %+v: the slots are not to run with the race detector, and the others are", commands)
	}
}

// The longest tests are those of longest.txt, so that a slice is not measured by its number of tests alone.
func TestEachTestIsInOneSliceAndSlicesAreAlike(t *testing.T) {
	const parts, tests = 4, 1000
	var names []string
	for i := range tests {
		names = append(names, fmt.Sprint("TestThatIsNumber", i))
	}
	took, sum := map[string]time.Duration{}, time.Duration(0)
	for _, test := range longest() {
		took[test.name] += test.took
		sum += test.took
	}
	names = append(names, slices.Collect(maps.Keys(took))...)
	most := slices.Max(slices.Collect(maps.Values(took)))
	found := map[string]int{}
	for part := range parts {
		s := slice{part + 1, parts}
		mine := s.mine(names)
		var takes time.Duration
		for _, name := range mine {
			found[name]++
			takes += took[name]
		}
		if n := len(mine); n < tests/parts*3/4 || n > tests/parts*5/4 {
			t.Errorf("slice %d has %d of %d tests", part+1, n, tests)
		}
		if takes > sum/parts+most {
			t.Errorf("the longest tests of slice %d take %s of %s, the longest one of all %s", part+1, takes, sum, most)
		}
	}
	for _, name := range names {
		if found[name] != 1 {
			t.Errorf("%s is in %d slices", name, found[name])
		}
	}
}

func TestPackagesWithTheLongestTestsBeginFirst(t *testing.T) {
	slowest := slices.MaxFunc(longest(), func(a, b longTest) int { return cmp.Compare(a.took, b.took) })
	others := goPackage{ImportPath: "example.com/others"}
	packages := []goPackage{others, {ImportPath: "example.com/" + slowest.dir}}
	longestFirst(packages, []string{slowest.name})
	if packages[1].ImportPath != others.ImportPath {
		t.Errorf("the packages begin in the order %v, want the one of the longest test first", packages)
	}
	packages = []goPackage{others, packages[0]}
	longestFirst(packages, []string{"TestOfAnotherSlice"})
	if packages[0].ImportPath != others.ImportPath {
		t.Errorf("the packages begin in the order %v: none has a long test of the slice, want them as they were", packages)
	}
}

func TestTheLongestTestsAreThere(t *testing.T) {
	listed := longest()
	if lines := strings.Count(longestText, "\n"); len(listed) != lines || lines == 0 {
		t.Fatalf("%d of %d lines of longest.txt can be read, want all: write each as make test-all warns of a slow test", len(listed), lines)
	}
	for _, test := range listed {
		files, err := filepath.Glob(filepath.Join("..", "..", "..", test.dir, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		isThere := slices.ContainsFunc(files, func(file string) bool {
			text, err := os.ReadFile(file)
			return err == nil && strings.Contains(string(text), "func "+test.name+"(")
		})
		if !isThere {
			t.Errorf("%s has no %s: take it out of longest.txt, or write there what it is called now", test.dir, test.name)
		}
	}
}
