// Command operator runs the quickstart on the cluster of the kubeconfig: try "operator --help".
package main

import (
	"context"
	"os"

	"github.com/operatorkit/operatorkit/examples/quickstart"
	"github.com/operatorkit/operatorkit/operator/command"
)

func main() {
	os.Exit(command.Execute(context.Background(), quickstart.Config, os.Args[1:], os.Stdout, os.Stderr))
}
