package main

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"gobuild": main})
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
			return nil
		},
	})
}

// What is built with progress must not wait for something that is built without.
func TestItNeedsTheStandardLibraryAlone(t *testing.T) {
	const module = "github.com/operatorkit/operatorkit/"
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, dependency := range strings.Fields(string(out)) {
		if first, _, _ := strings.Cut(dependency, "/"); strings.Contains(first, ".") && !strings.HasPrefix(dependency, module+"operator/operatortest/") {
			t.Errorf("it imports %s", dependency)
		}
	}
}
