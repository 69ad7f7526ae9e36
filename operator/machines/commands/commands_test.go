package commands_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/identity"
	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/command"
	"github.com/operatorkit/operatorkit/operator/machines"
	"github.com/operatorkit/operatorkit/operator/machines/commands"
	"github.com/operatorkit/operatorkit/operator/machines/v1alpha1"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/resource/deployment"
	"github.com/operatorkit/operatorkit/resource/deployment/api"
	"github.com/operatorkit/operatorkit/resource/deployment/docker"
	"github.com/operatorkit/operatorkit/resource/deployment/docker/dockertest"
)

var pool = dockertest.Pool{Images: []dockertest.Image{dockertest.App("app:1", map[string]string{"VERSION": "1"})}}

func TestMain(m *testing.M) {
	code := m.Run()
	if err := errors.Join(pool.Close(), operatortest.FindLeaks()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// config is that of an operator with the commands.
func config() command.Config {
	return command.Config{
		Name: "machines", Commands: commands.New, AddToScheme: []func(*runtime.Scheme) error{v1alpha1.AddToScheme}, KeepGlobalLoggers: true,
		New: func(context.Context, *operator.Dependencies) ([]*framework.Framework, error) {
			return nil, errors.New("it is not run")
		},
	}
}

// world is a namespace with two machines on which the operator has put services.
type world struct {
	*testing.T
	config    command.Config
	namespace string
	engines   []*dockertest.Engine
	cli       *docker.Client
}

func newWorld(t *testing.T) *world {
	t.Helper()
	dockertest.Require(t)
	kube := operatortest.Start(t)
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	crds, err := operator.ReadCRDs(v1alpha1.CRDs)
	if err != nil {
		t.Fatal(err)
	}
	kube.InstallCRDs(t, crds...)
	w := &world{T: t, config: config(), namespace: kube.Namespace(t), engines: pool.Take(t, 2)}
	w.config.RESTConfig = kube.RESTConfig()
	user := operatortest.NewClient(t, kube.RESTConfig(), scheme)
	for _, e := range w.engines {
		m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: e.Name()}, Spec: v1alpha1.MachineSpec{Address: e.Host()}}
		if err := user.Create(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	if w.cli, err = docker.New(docker.Config{Cluster: w.namespace, Machines: dockertest.Machines(w.engines)}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.cli.Close() })
	return w
}

// deploy deploys a service as an operator of a name does.
func (w *world) deploy(operator string, spec api.ServiceSpec) error {
	ctx := identity.NewContext(w.Context(), &identity.Scope{Identity: machines.ServicesOf(operator)})
	_, err := deployment.NewDeployment(w.cli, spec, nil).Run(ctx)
	return err
}

// run runs a command in the namespace with something on stdin, and returns its exit code and what it has written.
func (w *world) run(stdin string, args ...string) (code int, stdout, stderr string) {
	w.Helper()
	var out, errs bytes.Buffer
	args = append([]string{args[0], "-n", w.namespace}, args[1:]...)
	config := w.config
	config.Commands = func(program *command.Program) []*cobra.Command {
		all := commands.New(program)
		for _, c := range all {
			c.SetIn(strings.NewReader(stdin))
		}
		return all
	}
	code = command.Execute(w.Context(), config, args, &out, &errs)
	return code, out.String(), errs.String()
}

func service(name, image string, replicas int32) api.ServiceSpec {
	return api.ServiceSpec{
		Name: name, Replicas: &replicas, Ports: []api.PortSpec{{Mode: api.PortModeHost, ContainerPort: 8080}},
		Container: api.ContainerSpec{Image: image, PullPolicy: api.PullNever, SecretEnv: map[string]api.Hidden{"TOKEN": "hunter2-and-more"}},
	}
}

func TestServicesAreSeenAndUsedAcrossMachines(t *testing.T) {
	w := newWorld(t)
	if err := errors.Join(w.deploy("machines", service("web", "app:1", 2)), w.deploy("another", service("db", "app:1", 1))); err != nil {
		t.Fatal(err)
	}
	broken := service("job", "app:1", 1)
	broken.Container.Command, broken.Container.RestartPolicy.Name = []string{"say", "hunter2-and-more"}, api.RestartNo
	if err := w.deploy("machines", broken); !errors.Is(err, api.ErrUnhealthy) {
		t.Fatalf("got %v", err)
	}

	_, ps, _ := w.run("", "ps")
	for _, want := range []string{
		`(?m)^SERVICE +MACHINE +CONTAINER +IMAGE +STATE +PORTS +AGE$`, `(?m)^web +engine-1 +web-\w+ +app:1 +running \(healthy\) +[0-9.]+:\d+:8080/tcp +\d+`,
		`(?m)^web +engine-2 +web-`, `(?m)^job +engine-\d +job-\w+-failed +app:1 +exited \(1\), kept for its log `,
	} {
		if !regexp.MustCompile(want).MatchString(ps) {
			t.Errorf("ps lacks %s:\n%s", want, ps)
		}
	}
	if strings.Contains(ps, "db") {
		t.Errorf("ps shows what is another operator's:\n%s", ps)
	}
	if _, one, _ := w.run("", "ps", "web"); strings.Count(one, "\n") != 3 || strings.Contains(one, "job") {
		t.Errorf("ps web shows\n%s", one)
	}

	code, _, logs := w.run("", "logs", "job", "--tail", "1")
	if code != 0 || !regexp.MustCompile(`(?m)^engine-\d/job-\w+-failed \| .*are not known$`).MatchString(logs) || strings.Contains(logs, "hunter2") {
		t.Errorf("logs ended with %d:\n%s", code, logs)
	}
	if code, _, text := w.run("", "logs", "db"); code != command.ExitFailure || !strings.Contains(text, "service db has no containers") {
		t.Errorf("the logs of another operator's service: %d, %s", code, text)
	}

	if code, _, text := w.run("", "exec", "web", "--", "/app", "exit", "3"); code != 3 {
		t.Errorf("exec ended with %d: %s", code, text)
	}
	if code, _, text := w.run("", "exec", "web", "--", "/absent"); code == 0 {
		t.Errorf("a program that is not there: %d, %s", code, text)
	}
	if code, _, text := w.run("", "exec", "job", "--", "/app", "exit", "0"); code != command.ExitFailure || !strings.Contains(text, "no container of service job runs") {
		t.Errorf("a container that does not run: %d, %s", code, text)
	}
	if code, out, text := w.run("to be echoed\n", "exec", "web", "-i", "--", "/app", "echo"); code != 0 || out != "to be echoed\n" {
		t.Errorf("exec ended with %d, and has written %q, %q", code, out, text)
	}

	if err := w.engines[1].Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if code, out, text := w.run("", "ps"); code != 0 || !strings.Contains(text, "not seen: engine-2: ") || !strings.Contains(out, "engine-1") {
		t.Errorf("ps ended with %d:\n%s%s", code, out, text)
	}
}

func TestComposeFilesAreConverted(t *testing.T) {
	file := filepath.Join(t.TempDir(), "docker-compose.yaml")
	if err := os.WriteFile(file, []byte("services: {web: {image: app, depends_on: [db], cgroup_parent: x}, db: {image: db}}"), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) (int, string, string) {
		var out, errs bytes.Buffer
		code := command.Execute(t.Context(), config(), append([]string{"compose", "convert", "-f", file, "-n", "shop"}, args...), &out, &errs)
		return code, out.String(), errs.String()
	}
	code, out, text := run()
	if code != 0 || strings.Count(out, "kind: MachineService\n") != 2 || strings.Count(out, "namespace: shop\n") != 2 ||
		text != "services.web.cgroup_parent: it has no counterpart, and is left out\n" {
		t.Errorf("it ended with %d:\n%s%s", code, out, text)
	}
	if code, out, text := run("--strict"); code != command.ExitFailure || out != "" || !strings.Contains(text, "not everything has a counterpart") {
		t.Errorf("--strict ended with %d:\n%s%s", code, out, text)
	}
	variables := filepath.Join(filepath.Dir(file), "other.env")
	for path, content := range map[string]string{
		file: "services: {web: {image: 'app:${TAG:-none}'}}", filepath.Join(filepath.Dir(file), ".env"): "TAG=beside", variables: "TAG=given",
	} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if code, out, text := run("--strict"); code != 0 || !strings.Contains(out, "image: app:beside\n") {
		t.Errorf("with a file .env it ended with %d:\n%s%s", code, out, text)
	}
	if code, out, text := run("--env-file", variables); code != 0 || !strings.Contains(out, "image: app:given\n") {
		t.Errorf("with --env-file it ended with %d:\n%s%s", code, out, text)
	}
	if code, _, text := run("more"); code != command.ExitUsage {
		t.Errorf("an argument that is not understood: %d, %s", code, text)
	}
}
