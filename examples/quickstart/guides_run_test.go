package quickstart_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/cert"

	"github.com/operatorkit/operatorkit/operator/operatortest"
)

// elsewhere are the commands of pages that TestCommandsOfGuidesRun leaves out, by how they begin: with the package and the name of the test
// that runs them, or with why none does. The tests that "go test" names are run as all others are.
var elsewhere = []struct{ begin, test, why string }{
	{begin: "go run ./operator/operatorkit new", test: "./operator/operatorkit TestProjectsPassTheirOwnTests"},
	{begin: "cd ../shop", test: "./operator/operatorkit TestProjectsPassTheirOwnTests"},
	{begin: "go run ./operator/operatortest/testenv -- go test", test: "./operator/operatortest/testenv TestScripts"},
	{begin: "go run ./operator/operatortest/testenv -- go run ./operator/bench", test: "./operator/bench TestChosenRowsAreWrittenAsTableAndJSON"},
	{begin: "go run ./examples/database", test: "./examples/database TestWhatThereIsIsPlanned"},
	{begin: "make bench", test: "./operator/bench TestChosenRowsAreWrittenAsTableAndJSON"},
	{begin: "make run", test: "./examples/platform TestTheStory"},
	{begin: "make test-charts", test: "./operator/statemanagers/charttest TestChartsAreComparedStepByStep"},
	{begin: "make test", why: ".ci/run does"},
	{begin: "make lint", why: ".ci/run does"},
	{begin: "make generate", why: "make lint does"},
	{begin: "make test-all", why: "it is what runs all of these tests"},
	{begin: "kubectl port-forward", why: "a control plane has no nodes, and so no Pod that runs"},
	{begin: "kubectl logs", why: "a control plane has no nodes, and so no Pod that runs"},
}

// begins tells whether a command is of those that begin so.
func begins(line, begin string) bool { return line == begin || strings.HasPrefix(line, begin+" ") }

func runsElsewhere(line string) bool {
	for _, e := range elsewhere {
		if begins(line, e.begin) {
			return true
		}
	}
	return begins(line, "go test")
}

func TestWhatRunsElsewhereIsOnAPageAndItsTestIsThere(t *testing.T) {
	var lines []string
	for _, page := range pages(t) {
		lines = append(lines, linesToRun(t, page)...)
	}
	for _, e := range elsewhere {
		found := false
		for _, line := range lines {
			found = found || begins(line, e.begin)
		}
		if !found {
			t.Errorf("%s: no page has it any more", e.begin)
		}
		dir, test, _ := strings.Cut(e.test, " ")
		if e.test != "" {
			if err := knownTest([]string{dir, "-run", "^" + test + "$"}); err != nil {
				t.Errorf("%s: %v", e.begin, err)
			}
		}
		if (e.test == "") != (e.why != "") {
			t.Errorf("%s: say which test runs it, or why none does", e.begin)
		}
	}
}

// exitCodes are those of commands that don't end with 0 on the pages, which say so.
var exitCodes = map[string]int{
	"operator plan -A --detailed-exitcode": 2,
	"operator explain home -o dot":         1, // Websites are not drawn.
}

// Each command of the pages, one after the other as they stand there, by a real shell: with the operator Shadowed, whose name is shop, and its
// Website "home", on a control plane of its own. What the text around a command takes for granted is done for it: "explain" and
// curl have an operator that runs, and "run" is ended once it is ready.
func TestCommandsOfGuidesRun(t *testing.T) {
	if testing.Short() {
		t.Skip("left to make test-all: it runs a program for each command")
	}
	s := newShell(t)
	for i, page := range pages(t) {
		lines := linesToRun(t, page)
		if len(lines) == 0 {
			continue
		}
		t.Run(page, func(t *testing.T) {
			s.home(t, fmt.Sprintf("Text %d.", i))
			for _, line := range lines {
				switch {
				case runsElsewhere(line):
				case begins(line, "operator run") && !strings.Contains(line, "--help"):
					// It would be in the way of others.
					s.start(t, strings.Replace(line, "0.0.0.0:8443", "0.0.0.0:0", 1)).stop(t)
				case begins(line, "operator explain"), begins(line, "curl"):
					s.besideOperator(t, line)
				default:
					if err := s.run(line); err != nil {
						t.Errorf("%s: %v", line, err)
					}
				}
			}
		})
	}
}

// shell runs commands in a folder, with a kubeconfig and the programs that pages name.
type shell struct {
	dir string
	env []string
}

func newShell(t *testing.T) *shell {
	t.Helper()
	kube := operatortest.Start(t, operatortest.Dedicated())
	kube.InstallCRDs(t, monitoring("ServiceMonitor"), monitoring("PrometheusRule"))
	controlplane, err := operatortest.Binary(t.Context(), operatortest.Config{})
	if err != nil {
		t.Fatal(err)
	}
	certificate, key, err := cert.GenerateSelfSignedCertKey("localhost", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, content := range map[string]string{
		"bin/kubectl": fmt.Sprintf("#!/bin/sh\nexec %s kubectl \"$@\"\n", controlplane), "tls/tls.crt": string(certificate), "tls/tls.key": string(key),
	} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(content), 0o700)); err != nil {
			t.Fatal(err)
		}
	}
	s := &shell{dir: dir, env: append(os.Environ(), "KUBECONFIG="+kube.Kubeconfig(), "PATH="+filepath.Join(dir, "bin")+":"+os.Getenv("PATH"))}
	if err := s.run("operator crds --apply"); err != nil {
		t.Fatal(err)
	}
	return s
}

// monitoring is a kind of the Prometheus Operator, as far as an API server has to know it.
func monitoring(kind string) *apiextensionsv1.CustomResourceDefinition {
	lower, anything := strings.ToLower(kind), true
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: lower + "s.monitoring.coreos.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "monitoring.coreos.com", Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: kind, ListKind: kind + "List", Singular: lower, Plural: lower + "s"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &anything}},
			}},
		},
	}
}

// home has the Website there, in the cluster and as a file, with a text that it did not have before.
func (s *shell) home(t *testing.T, text string) {
	t.Helper()
	site := `apiVersion: examples.operatorkit.io/v1alpha1
kind: Website
metadata: {name: home, labels: {examples.operatorkit.io/version: v1}}
spec: {title: Home, text: ` + text + `}
`
	if err := os.WriteFile(filepath.Join(s.dir, "site.yaml"), []byte(site), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"kubectl apply -f site.yaml", "kubectl annotate website home operatorkit.io/plan-"} {
		if err := s.run(line); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
	}
}

// run runs a command to its end, which is to be with its exit code. What compiles the operator is that, compiled.
func (s *shell) run(line string) error {
	cmd := s.command(strings.Replace(line, "go run ./examples/quickstart/cmd/operator", "operator", 1))
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return err
	}
	if got := cmd.ProcessState.ExitCode(); got != exitCodes[line] {
		return fmt.Errorf("exit code %d, want %d: %s", got, exitCodes[line], out)
	}
	return nil
}

// command is one that the shell becomes, so that a signal reaches it.
func (s *shell) command(line string) *exec.Cmd {
	cmd := exec.Command("sh", "-c", "exec "+line)
	cmd.Dir, cmd.Env = s.dir, s.env
	return cmd
}

// besideOperator runs a command that asks an operator that runs, as soon as that has looked at home.
func (s *shell) besideOperator(t *testing.T, line string) {
	t.Helper()
	p := s.start(t, "operator run")
	defer p.stop(t)
	asking := &shell{dir: s.dir, env: append(s.env, "OPERATORKIT_INSPECTOR_ADDRESS="+p.address("serving the inspector"))}
	asked := strings.Replace(line, "127.0.0.1:6060", p.address("serving profiles"), 1)
	operatortest.Eventually(t, line, func() error { return asking.run(asked) })
}

// started is an operator that runs.
type started struct {
	cmd   *exec.Cmd
	ended chan error

	mu  sync.Mutex
	log bytes.Buffer
}

// Write implements io.Writer.
func (p *started) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.Write(b)
}

func (p *started) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.String()
}

// address returns where the operator serves something, as its log tells, and nothing before that.
func (p *started) address(serving string) string {
	if found := regexp.MustCompile(serving + `.* address=(\S+)`).FindStringSubmatch(p.String()); found != nil {
		return found[1]
	}
	return ""
}

// start starts an operator, on addresses that are free, and returns when it is ready.
func (s *shell) start(t *testing.T, line string) *started {
	t.Helper()
	p := &started{cmd: s.command(line), ended: make(chan error, 1)}
	for _, address := range []string{"LISTEN", "INSPECTOR", "DEBUG"} {
		p.cmd.Env = append(p.cmd.Env, "OPERATORKIT_"+address+"_ADDRESS=127.0.0.1:0")
	}
	p.cmd.Env = append(p.cmd.Env, "OPERATORKIT_LOG_FORMAT=text")
	p.cmd.Stderr = p
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer cancel()
		p.ended <- p.cmd.Wait()
	}()
	t.Cleanup(func() { _ = p.cmd.Process.Kill() })
	ready := func() error {
		if ctx.Err() != nil {
			return nil
		}
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.address("serving health and metrics")+"/readyz", http.NoBody)
		if err != nil {
			return err
		}
		answer, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(request)
		if err != nil {
			return err
		}
		if answer.StatusCode != http.StatusOK {
			err = fmt.Errorf("/readyz answers %s", answer.Status)
		}
		return errors.Join(err, answer.Body.Close())
	}
	operatortest.Eventually(t, line+" is ready", ready)
	if ctx.Err() != nil {
		t.Fatalf("%s: it has ended: %v\n%s", line, <-p.ended, p)
	}
	return p
}

// stop ends the operator as Kubernetes does.
func (p *started) stop(t *testing.T) {
	t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := <-p.ended; err != nil {
		t.Errorf("%s: %v\n%s", p.cmd, err, p)
	}
}
