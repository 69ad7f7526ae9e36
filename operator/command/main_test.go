package command_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"testing/fstest"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/spf13/pflag"
	"golang.org/x/text/encoding/unicode"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/command"
	"github.com/operatorkit/operatorkit/operator/operatortest"
)

// TestMain makes the test binary the programs "copyist", "gardener", "nursery", "painter" and "shipyard" for the scripts in testdata. The gardener gets SIGTERM when its log shows
// the text of the variable SIGTERM_AT.
func TestMain(m *testing.M) {
	testscript.Main(leakChecked{m}, map[string]func(){
		"gardener": func() {
			stderr := &signaller{os.Stderr, os.Getenv("SIGTERM_AT")}
			os.Exit(command.Execute(context.Background(), gardener(), os.Args[1:], os.Stdout, stderr))
		},
		"copyist": func() {
			os.Exit(command.Execute(context.Background(), copyist(), os.Args[1:], os.Stdout, os.Stderr))
		},
		"shipyard": func() {
			os.Exit(command.Execute(context.Background(), shipyard(), os.Args[1:], os.Stdout, os.Stderr))
		},
		"painter": func() {
			os.Exit(command.Execute(context.Background(), painter(), os.Args[1:], os.Stdout, os.Stderr))
		},
		"nursery": func() {
			os.Exit(command.Execute(context.Background(), nursery(), os.Args[1:], os.Stdout, os.Stderr))
		},
	})
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

const gardenCRD = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: gardens.command.test.operatorkit.io
spec:
  group: command.test.operatorkit.io
  scope: Namespaced
  names:
    plural: gardens
    singular: garden
    kind: Garden
    listKind: GardenList
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
`

// gardener is an operator that greets ConfigMaps.
func gardener() command.Config {
	greeting := "hello"
	return command.Config{
		Name:         "gardener",
		Short:        "Gardener greets ConfigMaps.",
		Version:      "v1.2.3",
		CRDFiles:     fstest.MapFS{"crds/gardens.yaml": {Data: []byte(gardenCRD)}},
		EnvVariables: []string{"OPERATORKIT_SEASON"},
		Flags: func(flags *pflag.FlagSet) {
			flags.StringVar(&greeting, "greeting", greeting, "what to say")
		},
		New: func(_ context.Context, deps *operator.Dependencies) ([]*framework.Framework, error) {
			if greeting == "" {
				return nil, errors.New("there is no greeting")
			}
			source, err := deps.NewSource(&corev1.ConfigMap{})
			if err != nil {
				return nil, err
			}
			set, err := framework.NewResourceSet(framework.ResourceSetConfig{
				Handles: framework.HandlesType[*corev1.ConfigMap], Resources: []framework.Resource{&greeter{deps, greeting}},
			})
			if err != nil {
				return nil, err
			}
			router, err := framework.NewResourceRouter(framework.ResourceRouterConfig{
				Logger: deps.Logger, ResourceSets: []*framework.ResourceSet{set},
			})
			if err != nil {
				return nil, err
			}
			f, err := deps.NewFramework(framework.Config{Name: "greeter", Source: source, ResourceRouter: router})
			return []*framework.Framework{f}, err
		},
	}
}

// greeter logs its greeting for every object.
type greeter struct {
	deps     *operator.Dependencies
	greeting string
}

func (g *greeter) Name() string { return "greeter" }

func (g *greeter) EnsureCreated(_ context.Context, obj any) error {
	g.deps.Logger.Log("level", "info", "message", g.greeting+" "+obj.(client.Object).GetName(), "workers", g.deps.Workers, "shutdown", g.deps.ShutdownTimeout)
	return nil
}

func (g *greeter) EnsureDeleted(context.Context, any) error { return nil }

// TestScripts runs the scripts in testdata, each with a namespace of its own in a real API server, which holds
// a ConfigMap "bed". Besides the commands of testscript there are "kubectl", "exits CODE PROGRAM
// ARGUMENTS", and "inspect", after which the nursery runs and the variable INSPECTOR is the address of its inspector.
func TestScripts(t *testing.T) {
	instance := operatortest.Start(t)
	crds, err := operator.ReadCRDs(nursery().CRDFiles)
	if err != nil {
		t.Fatal(err)
	}
	instance.InstallCRDs(t, crds...)
	kubectl, err := operatortest.Binary(t.Context(), operatortest.Config{})
	if err != nil {
		t.Fatal(err)
	}
	c := operatortest.NewClient(t, instance.RESTConfig(), nil)
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":       exits,
			"fingerprint": fingerprint,
			"inspect":     inspect,
			"utf16": func(ts *testscript.TestScript, _ bool, args []string) {
				text, err := unicode.UTF16(unicode.LittleEndian, unicode.UseBOM).NewEncoder().String(ts.ReadFile(args[0]))
				ts.Check(err)
				ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(text), 0o600))
			},
			"kubectl": func(ts *testscript.TestScript, neg bool, args []string) {
				args = append([]string{"kubectl", "--kubeconfig", instance.Kubeconfig(), "--namespace", ts.Getenv("NAMESPACE")}, args...)
				if err := ts.Exec(kubectl, args...); (err != nil) != neg {
					ts.Fatalf("kubectl: %v", err)
				}
			},
		},
		Setup: func(env *testscript.Env) error {
			env.Setenv("CONFIG", instance.Kubeconfig())
			namespace := instance.Namespace(t)
			env.Setenv("NAMESPACE", namespace)
			return c.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "bed"}})
		},
	})
}

// inspect runs the nursery for the namespace of a script until the script ends. Its framework "signs" knows all its objects.
func inspect(ts *testscript.TestScript, _ bool, _ []string) {
	ctx, cancel := context.WithCancel(context.Background())
	ended, started := make(chan int, 1), make(chan string, 1)
	stderr := &awaited{patterns: []*regexp.Regexp{regexp.MustCompile(`serving the inspector .*address=(\S+)`), regexp.MustCompile(`(?m)^.* started .*framework=signs`)}, found: started}
	args := []string{"run", "--kubeconfig", ts.Getenv("CONFIG"), "--namespace", ts.Getenv("NAMESPACE"), "--listen-address", "", "--inspector-address", "127.0.0.1:0", "--log-format", "text"}
	go func() { ended <- command.Execute(ctx, nursery(), args, io.Discard, stderr) }()
	select {
	case address := <-started:
		ts.Setenv("INSPECTOR", address)
	case code := <-ended:
		cancel()
		ts.Fatalf("the nursery ended with %d: %s", code, stderr)
	}
	ts.Defer(func() {
		cancel()
		if code := <-ended; code != command.ExitOK {
			ts.Logf("the nursery ended with %d: %s", code, stderr)
		}
	})
}

// awaited is a log that tells what the first of its patterns has found as soon as all have found something.
type awaited struct {
	log
	patterns []*regexp.Regexp
	found    chan string
	told     sync.Once
}

func (a *awaited) Write(p []byte) (int, error) {
	n, err := a.log.Write(p)
	text := a.String()
	var first []string
	for i, pattern := range a.patterns {
		found := pattern.FindStringSubmatch(text)
		if found == nil {
			return n, err
		}
		if i == 0 {
			first = found
		}
	}
	a.told.Do(func() { a.found <- first[1] })
	return n, err
}

// fingerprint sets the variable FINGERPRINT to the first one in a file.
func fingerprint(ts *testscript.TestScript, _ bool, args []string) {
	found := regexp.MustCompile(`"fingerprint": "([0-9a-f]{12})"`).FindStringSubmatch(ts.ReadFile(args[0]))
	if found == nil {
		ts.Fatalf("%s has no fingerprint", args[0])
	}
	ts.Setenv("FINGERPRINT", found[1])
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

// signaller passes on what is written, and sends this process SIGTERM when it sees a text.
type signaller struct {
	io.Writer
	text string
}

func (s *signaller) Write(p []byte) (int, error) {
	if s.text != "" && bytes.Contains(p, []byte(s.text)) {
		s.text = ""
		if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
			return 0, err
		}
	}
	return s.Writer.Write(p)
}
