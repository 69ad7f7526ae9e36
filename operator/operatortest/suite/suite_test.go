package main

import (
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"

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
	const all, sums = "github.com/operatorkit/operatorkit/operator/internal/...", "github.com/operatorkit/operatorkit/operator/internal/ring"
	commands, err := commands(t.Context(), options{race: all + " !" + sums, packages: []string{all}})
	if err != nil {
		t.Fatal(err)
	}
	if len(commands) != 2 {
		t.Fatalf("there are the commands %q, want one with the race detector, and one without", commands)
	}
	with, without := commands[0], commands[1]
	if !slices.Contains(with, "-race") || slices.Contains(with, sums) || slices.Contains(without, "-race") || !slices.Equal(without[len(without)-1:], []string{sums}) {
		t.Errorf("the commands are %q: the ring is not to run with the race detector, and the others are", commands)
	}
}

func TestEachTestIsInOneSliceAndSlicesAreAlike(t *testing.T) {
	const parts, tests, sweeps = 4, 1000, 18
	var names []string
	for i := range tests {
		names = append(names, fmt.Sprint("TestThatIsNumber", i))
	}
	for i := range sweeps {
		names = append(names, fmt.Sprint("TestItSurvivesACrashAtWrite", i))
	}
	found := map[string]int{}
	for part := range parts {
		s := slice{part + 1, parts}
		mine, crashes := s.mine(names), 0
		for _, name := range mine {
			found[name]++
			if strings.Contains(name, "Crash") {
				crashes++
			}
		}
		if n := len(mine); n < tests/parts*3/4 || n > tests/parts*5/4 {
			t.Errorf("slice %d has %d of %d tests", part+1, n, tests)
		}
		if crashes < sweeps/parts || crashes > sweeps/parts+1 {
			t.Errorf("slice %d has %d of %d crash sweeps", part+1, crashes, sweeps)
		}
	}
	for _, name := range names {
		if found[name] != 1 {
			t.Errorf("%s is in %d slices", name, found[name])
		}
	}
}
