package quickstart_test

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/operatorkit/operatorkit/operator/operatortest"
)

// buildDemo builds the program that "make run" runs.
func buildDemo(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "demo")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./cmd/demo").CombinedOutput(); err != nil {
		t.Fatalf("build the demo: %v\n%s", err, out)
	}
	return program
}

func TestDemoEndsByItselfOnceItHasConverged(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), buildDemo(t), "--once")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{
		`\+ website/home +created`, `\+ configmap/home-page +created`, `\+ service/home +created`,
		`~ configmap/blog-page +data.index.html`, `~ configmap/home-page +data.index.html`,
		`- website/shop +deleted`, `- configmap/shop-page +deleted`, `- service/shop +deleted`,
		`done: everything has converged`, `KUBECONFIG=`, `http://127.0.0.1:\d+/metrics`, `watch it at +http://127.0.0.1:\d+/\n`,
		// What is going to be done is told before it is.
		`(?s)\+ Service quickstart/home\n.*2 to create, 0 to update, 0 to delete\n.*\+ service/home +created`,
		`(?s)- <p>Nothing here yet.</p>\n *\+ <p>First post!</p>\n.*~ configmap/blog-page +data.index.html`,
		`(?s)Website quickstart/home \(update, .*resource set v2\)\n.*~ website/home +metadata.labels`,
	} {
		if !regexp.MustCompile(want).Match(out) {
			t.Errorf("the output lacks %s:\n%s", want, out)
		}
	}
}

func TestKubectlSeesTheDemoAndCtrlCEndsEverything(t *testing.T) {
	kubectl, err := operatortest.Binary(t.Context(), operatortest.Config{})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), buildDemo(t))
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
	var dataDir, page string
	for lines.Scan() {
		if _, address, ok := strings.Cut(lines.Text(), "watch it at "); ok {
			page = strings.TrimSpace(address)
		}
		if _, path, ok := strings.Cut(lines.Text(), "KUBECONFIG="); ok {
			dataDir = filepath.Dir(path)
		}
		if strings.Contains(lines.Text(), "until Ctrl-C") {
			break
		}
	}

	get := exec.CommandContext(t.Context(), kubectl, "kubectl", "--kubeconfig", filepath.Join(dataDir, "kubeconfig"), "-n", "quickstart", "get", "websites,configmaps,services", "-o", "name")
	out, err := get.CombinedOutput()
	if err != nil {
		t.Errorf("kubectl: %v\n%s", err, out)
	}
	for _, want := range []string{"website.examples.operatorkit.io/blog", "website.examples.operatorkit.io/home", "configmap/home-page", "service/blog"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("kubectl does not see %s:\n%s", want, out)
		}
	}

	if text := show(t, page); !strings.Contains(text, "quickstart") {
		t.Errorf("the inspector at %s shows %s", page, text)
	}

	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	for lines.Scan() {
		// The rest of the output is read so that the demo does not wait for it.
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("after Ctrl-C: %v\n%s", err, &stderr)
	}
	if _, err := os.Stat(dataDir); !os.IsNotExist(err) {
		t.Errorf("the data folder is left: %v", err)
	}
}

// show returns what is at an address.
func show(t *testing.T, address string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
