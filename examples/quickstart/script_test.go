package quickstart_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/operatorkit/operatorkit/examples/internal/demotest"
	"github.com/operatorkit/operatorkit/examples/quickstart"
	"github.com/operatorkit/operatorkit/examples/quickstart/story"
	"github.com/operatorkit/operatorkit/examples/quickstart/v1alpha1"
	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/command"
	"github.com/operatorkit/operatorkit/operator/operatortest"
)

var update = flag.Bool("update", false, "write the expected results in testdata anew")

// TestMain makes the test binary the program "quickstart" for the scripts in testdata, "operator" for the commands of the guides, where it is
// called shop, and the demo.
func TestMain(m *testing.M) {
	demotest.Tell(story.New)
	program := func(config command.Config) func() {
		return func() { os.Exit(command.Execute(context.Background(), config, os.Args[1:], os.Stdout, os.Stderr)) }
	}
	testscript.Main(leakChecked{m}, map[string]func(){"quickstart": program(quickstart.Config), "operator": program(quickstart.Shadowed("shop"))})
}

// leakChecked are tests after which no goroutine may be left.
type leakChecked struct{ *testing.M }

func (m leakChecked) Run() int {
	code := m.M.Run()
	if err := operatortest.FindLeaks(); code == 0 && err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// TestScripts runs the scripts in testdata, each with a namespace of its own in a real API server. Besides the commands of
// testscript there are "kubectl", "exits CODE PROGRAM ARGUMENTS", and "lasting stdout", which writes what the
// last program wrote to stdout.txt, without what is different in each run. With the flag -update the files that are compared
// with it are written anew.
func TestScripts(t *testing.T) {
	kube := operatortest.Start(t)
	crds, err := operator.ReadCRDs(v1alpha1.CRDs)
	if err != nil {
		t.Fatal(err)
	}
	kube.InstallCRDs(t, crds...)
	kubectl, err := operatortest.Binary(t.Context(), operatortest.Config{})
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		UpdateScripts:       *update,
		Setup: func(env *testscript.Env) error {
			env.Setenv("OPERATORKIT_KUBECONFIG", kube.Kubeconfig())
			env.Setenv("NAMESPACE", kube.Namespace(t))
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"kubectl": func(ts *testscript.TestScript, neg bool, args []string) {
				args = append([]string{"kubectl", "--kubeconfig", kube.Kubeconfig(), "--namespace", ts.Getenv("NAMESPACE")}, args...)
				if err := ts.Exec(kubectl, args...); (err != nil) != neg {
					ts.Fatalf("kubectl: %v", err)
				}
			},
			"exits":   exits,
			"lasting": lasting,
		},
	})
}

// exits runs a program, which has to end with an exit code.
func exits(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// fleeting is what is different in each run: UIDs, resource versions, and hashes of names that have the namespace in them.
var fleeting = map[*regexp.Regexp]string{
	regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`): "UID",
	regexp.MustCompile(`"version": "\d+"`):                          `"version": "VERSION"`,
	regexp.MustCompile(`\b[0-9a-f]{24}\b`):                          "HASH",
}

// lasting writes what the last program wrote to a file of the same name, without what is different in each run.
func lasting(ts *testscript.TestScript, _ bool, args []string) {
	text := ts.ReadFile(args[0])
	for pattern, name := range fleeting {
		text = pattern.ReplaceAllString(text, name)
	}
	text = strings.ReplaceAll(text, ts.Getenv("NAMESPACE"), "NAMESPACE")
	ts.Check(os.WriteFile(ts.MkAbs(args[0]+".txt"), []byte(text), 0o600))
}
