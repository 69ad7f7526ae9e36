package gateways_test

import (
	"bufio"
	"bytes"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// buildDemo builds the program that "make run EXAMPLE=nats-controller" runs.
func buildDemo(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "demo")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./cmd/demo").CombinedOutput(); err != nil {
		t.Fatalf("build the demo: %v\n%s", err, out)
	}
	return program
}

// newDemo returns the demo with its temporary files in a folder of its own, which is returned too.
func newDemo(t *testing.T, args ...string) (cmd *exec.Cmd, temporary string) {
	t.Helper()
	temporary = t.TempDir()
	cmd = exec.CommandContext(t.Context(), buildDemo(t), args...)
	cmd.Env = append(os.Environ(), "TMPDIR="+temporary)
	return cmd, temporary
}

// nothingIsLeft checks that a folder is empty.
func nothingIsLeft(t *testing.T, dir string) {
	t.Helper()
	left, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range left {
		t.Errorf("%s is left in the folder for temporary files", file.Name())
	}
}

func TestDemoEndsByItselfOnceItHasConverged(t *testing.T) {
	cmd, temporary := newDemo(t, "--once")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{
		`\+ gateway/shop +created`, `\+ route/shop.example.com +created`, `\+ configmap/shop +created`, `\+ registration/shop +created`,
		`~ configmap/shop .*data.certificate.sha256`,
		`~ route/shop.example.com +backend: 6.6.6.6:80 → 10.0.0.1:80`,
		`~ configmap/shop +data.backend: 6.6.6.6:80 → 10.0.0.1:80`,
		`~ registration/shop +address: 6.6.6.6:80 → 10.0.0.1:80`,
		`! event/blog +Warning NoCertificate: certificate blog does not exist`,
		`- gateway/docs +deleted`, `- configmap/docs +deleted`, `- route/docs.example.com +deleted`, `- registration/docs +deleted`,
		`- gateway/wiki +deleted`, `- configmap/wiki +deleted`, `- route/wiki.example.com +deleted`, `- registration/wiki +deleted`,
		`~ data.backend: "10.0.0.1:80" -> "10.0.1.1:80"`, `3 to collect as garbage`,
		`- configmap/blog +deleted`, `- route/blog.example.com +deleted`, `- registration/blog +deleted`,
		`done: everything has converged`,
		`KUBECONFIG=`, `nats --server nats://127.0.0.1:\d+`, `curl http://127.0.0.1:\d+/registrations`, `http://127.0.0.1:\d+/metrics`,
	} {
		if !regexp.MustCompile(want).Match(out) {
			t.Errorf("the output lacks %s:\n%s", want, out)
		}
	}
	nothingIsLeft(t, temporary)
}

func TestCtrlCEndsTheDemoAndEverythingItStarted(t *testing.T) {
	cmd, temporary := newDemo(t)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(stdout)
	var registrations string
	for lines.Scan() && !strings.Contains(lines.Text(), "until Ctrl-C") {
		if _, url, ok := strings.Cut(lines.Text(), "curl "); ok {
			registrations = url
		}
	}
	response, err := http.Get(registrations)
	if err != nil {
		t.Fatalf("the registry does not answer: %v\n%s", err, &stderr)
	}
	_ = response.Body.Close()
	http.DefaultClient.CloseIdleConnections()

	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	for lines.Scan() {
		// The rest of the output is read so that the demo does not wait for it.
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("after Ctrl-C: %v\n%s", err, &stderr)
	}
	nothingIsLeft(t, temporary)
}
