package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	_ "k8s.io/client-go/plugin/pkg/client/auth" // kubeconfigs of other clusters may ask for them
	"k8s.io/component-base/cli"
	"k8s.io/component-base/logs"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
)

// runKubectl runs kubectl. Unless the caller chose a cluster, it is the running
// instance that operatortest registered last; never the one of the user's
// own ~/.kube/config, which somebody who wants it can name.
func runKubectl(args []string, stderr io.Writer) int {
	if needsCluster(args) && !choosesCluster(args) {
		kubeconfig, err := newestInstance()
		if err != nil {
			fmt.Fprintf(stderr, "controlplane kubectl: %v\n", err)
			return 1
		}
		if err := os.Setenv("KUBECONFIG", kubeconfig); err != nil {
			fmt.Fprintf(stderr, "controlplane kubectl: choose the kubeconfig: %v\n", err)
			return 1
		}
	}
	// kubectl reads its arguments and its name from here, for plugins and
	// for the verbosity of its logs.
	os.Args = append([]string{"kubectl"}, args...)
	if _, err := logs.GlogSetter(cmd.GetLogVerbosity(os.Args)); err != nil {
		fmt.Fprintf(stderr, "controlplane kubectl: set the log level: %v\n", err)
		return 1
	}
	err := cli.RunNoErrOutput(cmd.NewDefaultKubectlCommand())
	if err != nil {
		util.CheckErr(err) // prints it in kubectl's way and exits
		return 1
	}
	return 0
}

// choosesCluster is whether the caller said which cluster is meant.
func choosesCluster(args []string) bool {
	if os.Getenv("KUBECONFIG") != "" {
		return true
	}
	return slices.ContainsFunc(args, func(arg string) bool {
		name, _, _ := strings.Cut(arg, "=")
		return name == "--kubeconfig" || name == "--server" || name == "-s"
	})
}

// needsCluster is whether kubectl will talk to an API server.
func needsCluster(args []string) bool {
	if len(args) == 0 {
		return false
	}
	switch args[0] {
	case "completion", "help", "kustomize", "options", "plugin":
		return false
	}
	return !slices.ContainsFunc(args, func(arg string) bool {
		return arg == "-h" || arg == "--help" || arg == "--client" || arg == "--client=true"
	})
}

var errNoInstance = errors.New(`no running control plane found; start one (for example with "make run"), or name a cluster with --kubeconfig or KUBECONFIG`)
