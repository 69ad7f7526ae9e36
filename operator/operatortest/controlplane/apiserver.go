package main

import (
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // metrics of the client, as in the original program
	_ "k8s.io/component-base/metrics/prometheus/version"  // metric of the version, as in the original program
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
)

// runAPIServer runs the API server with its own flags until SIGTERM or SIGINT.
func runAPIServer(args []string) int {
	command := app.NewAPIServerCommand()
	command.SetArgs(args)
	return cli.Run(command)
}
