// Command operator runs the platform on the cluster of the kubeconfig: try "operator --help".
package main

import (
	"context"
	"os"

	"github.com/operatorkit/operatorkit/examples/platform"
	"github.com/operatorkit/operatorkit/operator/command"
	"github.com/operatorkit/operatorkit/operator/servicesets"
	"github.com/operatorkit/operatorkit/operator/statemanagers"
)

func main() {
	config := platform.Config(servicesets.Config{}, &statemanagers.NativeConfig{})
	os.Exit(command.Execute(context.Background(), config, os.Args[1:], os.Stdout, os.Stderr))
}
