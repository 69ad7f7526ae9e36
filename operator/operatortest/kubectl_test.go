package operatortest_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operatorkit/operatorkit/operator/operatortest"
)

func TestKubectlFindsTheRunningInstance(t *testing.T) {
	t.Parallel()
	binary, err := operatortest.Binary(t.Context(), operatortest.Config{})
	if err != nil {
		t.Fatal(err)
	}
	// A cache of its own, so that nothing else that runs on the machine is found.
	cache := t.TempDir()
	config := operatortest.Config{BinaryPath: binary, CacheDir: cache}

	stdout, stderr, err := kubectl(t, binary, cache, "get", "namespaces")
	if err == nil || !strings.Contains(stderr, "no running control plane found; start one") || !strings.Contains(stderr, "--kubeconfig") {
		t.Errorf("with none running: %v, stdout %q, stderr %q; want an error that says what to do", err, stdout, stderr)
	}
	if stdout, stderr, err = kubectl(t, binary, cache, "version", "--client"); err != nil || !strings.Contains(stdout, "v1.37.2") {
		t.Errorf("what needs no control plane: %v, %s%s", err, stdout, stderr)
	}

	program, err := operatortest.Run(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = program.Stop(context.Background()) })
	test := operatortest.Start(t, operatortest.WithConfig(config)) // started later
	createConfigMap(t, newClient(t, program.RESTConfig()), "default", "of-the-program")
	createConfigMap(t, newClient(t, test.RESTConfig()), "default", "of-the-test")

	sees := func(want string, args ...string) {
		t.Helper()
		stdout, stderr, err := kubectl(t, binary, cache, append(args, "get", "configmaps", "-n", "default", "-o", "name")...)
		if err != nil || stdout != "configmap/"+want+"\n" {
			t.Errorf("kubectl %v: %v, %s%s; want %s", args, err, stdout, stderr, want)
		}
	}
	sees("of-the-program")
	sees("of-the-test", "--kubeconfig", test.Kubeconfig())
	if err := program.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	sees("of-the-test")

	if stdout, stderr, err = kubectl(t, binary, cache, "create", "configmap", "made-by-kubectl"); err != nil {
		t.Fatalf("%v: %s%s", err, stdout, stderr)
	}
	if _, err := newClient(t, test.RESTConfig()).CoreV1().ConfigMaps("default").Get(t.Context(), "made-by-kubectl", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
	if _, stderr, err = kubectl(t, binary, cache, "get", "configmap", "none-such"); err == nil || !strings.Contains(stderr, `configmaps "none-such" not found`) {
		t.Errorf("an error of kubectl: %v, %s", err, stderr)
	}
}

func TestWhatAKilledProcessLeftInTheListOfInstancesGoes(t *testing.T) {
	t.Parallel()
	binary, err := operatortest.Binary(t.Context(), operatortest.Config{})
	if err != nil {
		t.Fatal(err)
	}
	cache := t.TempDir()
	gone := exec.Command(binary, "version")
	if err := gone.Run(); err != nil {
		t.Fatal(err)
	}
	instances := filepath.Join(cache, "instances")
	if err := os.Mkdir(instances, 0o700); err != nil {
		t.Fatal(err)
	}
	left := filepath.Join(instances, "left.json")
	text := []byte(`{"pid":` + strconv.Itoa(gone.Process.Pid) + `,"kubeconfig":"/none"}`)
	if err := os.WriteFile(left, text, 0o600); err != nil {
		t.Fatal(err)
	}

	kube, err := operatortest.Run(t.Context(), operatortest.Config{BinaryPath: binary, CacheDir: cache})
	if err != nil {
		t.Fatal(err)
	}
	files, _ := filepath.Glob(filepath.Join(instances, "*"))
	if len(files) != 1 || slices.Contains(files, left) {
		t.Errorf("list of instances: %v, want the running one only", files)
	}
	if err := kube.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if files, _ = filepath.Glob(filepath.Join(instances, "*")); len(files) != 0 {
		t.Errorf("list of instances after the stop: %v", files)
	}
}

// kubectl runs the binary with nothing in its environment that names a cluster.
func kubectl(t *testing.T, binary, cache string, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), binary, append([]string{"kubectl"}, args...)...)
	cmd.Env = append(os.Environ(), "KUBECONFIG=", "HOME="+t.TempDir(), operatortest.CacheVariable+"="+cache)
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	err = cmd.Run()
	return out.String(), errOut.String(), err
}
