// Command controlplane is a Kubernetes control plane in one program: etcd, the
// API server, the controller manager and kubectl, each as a sub-command of the
// same name. Package operatortest builds it, starts its parts as processes of
// their own and stops them; people use it for kubectl:
//
//	controlplane kubectl get namespaces
//
// It is a module of its own so that users of the library never have its
// dependencies in their build list.
package main

import (
	"fmt"
	"io"
	"os"
)

const usage = `controlplane is a Kubernetes control plane in one program.

Usage:
  controlplane kubectl ...                  kubectl, against the running instance
  controlplane etcd ...                     the store
  controlplane kube-apiserver ...           the API server
  controlplane kube-controller-manager ...  controllers, garbage collection included
  controlplane version                      the versions of the parts

Each part takes --help.
`

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// run carries out one sub-command and returns the exit code of the process.
func run(args []string, stdout, stderr io.Writer) int {
	if len(args) == 0 {
		fmt.Fprint(stderr, usage)
		return 2
	}
	name, args := args[0], args[1:]
	switch name {
	case "etcd":
		endWithParent()
		return runEtcd(args, stderr)
	case "kube-apiserver":
		endWithParent()
		return runAPIServer(args)
	case "kube-controller-manager":
		endWithParent()
		return runControllerManager(args)
	case "kubectl":
		return runKubectl(args, stderr)
	case "version":
		return printVersions(stdout)
	case "help", "-h", "--help":
		fmt.Fprint(stdout, usage)
		return 0
	default:
		fmt.Fprintf(stderr, "unknown command %q\n\n%s", name, usage)
		return 2
	}
}
