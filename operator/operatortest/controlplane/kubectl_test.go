package main

import "testing"

func TestKubectlLooksForAnInstanceOnlyWhenItNeedsOne(t *testing.T) {
	for _, test := range []struct {
		args           []string
		needs, chooses bool
	}{
		{args: nil},
		{args: []string{"version", "--client"}},
		{args: []string{"version", "--client=true"}},
		{args: []string{"kustomize", "dir"}},
		{args: []string{"get", "--help"}},
		{args: []string{"version"}, needs: true},
		{args: []string{"get", "pods"}, needs: true},
		{args: []string{"-n", "default", "get", "pods"}, needs: true},
		{args: []string{"get", "pods", "--kubeconfig", "file"}, needs: true, chooses: true},
		{args: []string{"--kubeconfig=file", "get", "pods"}, needs: true, chooses: true},
		{args: []string{"-s", "https://127.0.0.1:1", "get", "pods"}, needs: true, chooses: true},
	} {
		t.Setenv("KUBECONFIG", "")
		if got := needsCluster(test.args); got != test.needs {
			t.Errorf("needsCluster(%q) = %v", test.args, got)
		}
		if got := choosesCluster(test.args); got != test.chooses {
			t.Errorf("choosesCluster(%q) = %v", test.args, got)
		}
		t.Setenv("KUBECONFIG", "file")
		if !choosesCluster(test.args) {
			t.Errorf("with KUBECONFIG: choosesCluster(%q) = false", test.args)
		}
	}
}
