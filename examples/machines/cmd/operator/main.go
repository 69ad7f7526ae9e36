// Command operator runs services on machines, by the cluster of the kubeconfig: try "operator --help".
package main

import (
	"context"
	"os"

	example "github.com/operatorkit/operatorkit/examples/machines"
	"github.com/operatorkit/operatorkit/operator/command"
	"github.com/operatorkit/operatorkit/operator/machines"
)

func main() {
	os.Exit(command.Execute(context.Background(), example.Config(machines.Config{}), os.Args[1:], os.Stdout, os.Stderr))
}
