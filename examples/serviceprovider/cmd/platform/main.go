// Command platform runs the platform's operator on the platform cluster: try "platform --help".
package main

import (
	"context"
	"os"

	postgres "github.com/operatorkit/operatorkit/examples/serviceprovider"
	"github.com/operatorkit/operatorkit/operator/command"
)

func main() {
	os.Exit(command.Execute(context.Background(), postgres.Platform, os.Args[1:], os.Stdout, os.Stderr))
}
