package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/operatorkit/operatorkit/operator/operatortest"
)

// kubectl runs it against a control plane, and returns what it says.
func kubectl(t *testing.T, kube *operatortest.Instance, args ...string) string {
	t.Helper()
	binary, err := operatortest.Binary(t.Context(), operatortest.Config{})
	if err != nil {
		t.Fatal(err)
	}
	// The clean-up calls it, too, when the context of the test has ended.
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), binary, append([]string{"kubectl", "--kubeconfig", kube.Kubeconfig()}, args...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// What the manifests give the operator, in all namespaces, is all that it needs.
func TestProjectsRunAsTheirManifestsHaveIt(t *testing.T) {
	if testing.Short() {
		t.Skip("left to make test-all: it links a whole operator")
	}
	dir, kube := newProject(t), operatortest.Start(t)
	tool(t, dir, "make", "build", "manifests")
	t.Cleanup(func() { kubectl(t, kube, "delete", "--ignore-not-found", "-k", filepath.Join(dir, "deploy")) })
	if said := kubectl(t, kube, "apply", "--server-side", "-k", filepath.Join(dir, "deploy")); strings.Contains(said, "Warning") {
		t.Errorf("the API server warns, such as of what Pod Security refuses: %s", said)
	}
	kubectl(t, kube, "wait", "--for=condition=Established", "--timeout=60s", "-f", filepath.Join(dir, "api/v1alpha1/crd"))
	kubectl(t, kube, "apply", "--dry-run=server", "--namespace", "default", "-f", filepath.Join(dir, "samples"))
	config, err := clientcmd.LoadFromFile(kube.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	for name := range config.AuthInfos {
		config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: strings.TrimSpace(kubectl(t, kube, "create", "token", "shop", "--namespace", "shop"))}
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	operator := exec.CommandContext(t.Context(), filepath.Join(dir, "bin/shop"), "run", "--kubeconfig", path, "--leader-elect", "--leader-election-namespace", "shop",
		"--crds=check", "--listen-address=", "--inspector-address=", "--log-format=text")
	operator.Stdout, operator.Stderr = &log, &log
	if err := operator.Start(); err != nil {
		t.Fatal(err)
	}
	namespace := kube.Namespace(t)
	kubectl(t, kube, "apply", "--namespace", namespace, "-f", filepath.Join(dir, "samples"))
	kubectl(t, kube, "wait", "--for=condition=Ready", "--timeout=60s", "--namespace", namespace, "store/home")
	kubectl(t, kube, "delete", "--timeout=60s", "--namespace", namespace, "-f", filepath.Join(dir, "samples"))
	if err := operator.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := operator.Wait(); err != nil {
		t.Errorf("the operator ended with %v", err)
	}
	if strings.Contains(log.String(), "forbidden") {
		t.Errorf("something was forbidden:\n%s", &log)
	}
}
