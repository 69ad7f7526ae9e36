package main

import (
	"fmt"
	"os/exec"
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

func TestEachTestIsInOneSliceAndSlicesAreAlike(t *testing.T) {
	const slices, tests = 4, 1000
	var in [slices]int
	for i := range tests {
		name, found := fmt.Sprint("TestThatIsNumber", i), 0
		for part := range slices {
			s := slice{part + 1, slices}
			if s.has(name) {
				in[part]++
				found++
			}
		}
		if found != 1 {
			t.Errorf("%s is in %d slices", name, found)
		}
	}
	for part, n := range in {
		if n < tests/slices*3/4 || n > tests/slices*5/4 {
			t.Errorf("slice %d has %d of %d tests", part+1, n, tests)
		}
	}
}
