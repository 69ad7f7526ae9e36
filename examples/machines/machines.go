// Package machines shows deployments onto machines: three Docker engines on one host, and a service with six containers of an image that is
// built here, which waits for a job, the migration of its database. compose.yaml is a shop that spreads over three machines: a page, an API
// and a PostgreSQL, which reach each other by their names, and customers through an ingress; TestAComposeFileRunsOnThreeMachines runs it, and
// updates it while its customers ask.
//
//	$ sudo -E make run EXAMPLE=machines                    # with engines and a control plane of its own
//	$ go run ./examples/machines/cmd/operator run          # on the cluster of your kubeconfig
//	$ go run ./examples/machines/cmd/operator plan -A      # what it would change on its machines
//	$ go run ./examples/machines/cmd/operator ps           # what runs where; see package operator/machines/commands for more
package machines

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/command"
	"github.com/operatorkit/operatorkit/operator/machines"
	"github.com/operatorkit/operatorkit/operator/machines/commands"
	"github.com/operatorkit/operatorkit/operator/machines/v1alpha1"
)

// Name is the name of the operator.
const Name = "machines"

// Config is what the command line of the operator is made of.
func Config(config machines.Config) command.Config {
	return command.Config{
		Name:        Name,
		Short:       "Runs services as containers on machines with Docker engines",
		CRDFiles:    v1alpha1.CRDs,
		Commands:    commands.New,
		AddToScheme: []func(*runtime.Scheme) error{v1alpha1.AddToScheme},
		New: func(_ context.Context, d *operator.Dependencies) ([]*framework.Framework, error) {
			return machines.New(d, config)
		},
	}
}
