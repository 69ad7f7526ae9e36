// Package platform is the operator of a platform: it puts services onto clusters, layer by layer, upgrades them step by
// step, and puts right what changes there. It consists of the two operators that the project brings along: servicesets
// works out what each cluster gets now, statemanagers puts it there.
//
//	$ make run                                          # on three control planes of its own, with a registry of charts
//	$ go run ./examples/platform/cmd/operator run       # on the cluster of your kubeconfig
//	$ go run ./examples/platform/cmd/operator plan -A   # what it would change there, and on all clusters
//
// What a platform team writes is in platform.yaml and services.yaml.
package platform

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/command"
	"github.com/operatorkit/operatorkit/operator/servicesets"
	"github.com/operatorkit/operatorkit/operator/statemanagers"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// Config is what the command line of the operator is made of. The configuration of the native state manager is read when
// the operator starts, not before; that of service sets needs no sources.
func Config(services servicesets.Config, native *statemanagers.NativeConfig) command.Config {
	return command.Config{
		Name:        "platform",
		Short:       "Puts services onto clusters, layer by layer",
		CRDFiles:    v1alpha1.CRDs,
		AddToScheme: []func(*runtime.Scheme) error{v1alpha1.AddToScheme},
		New: func(_ context.Context, d *operator.Dependencies) ([]*framework.Framework, error) {
			sources, err := servicesets.NewSources(d, services.SystemNamespace)
			if err != nil {
				return nil, err
			}
			shared := services
			shared.Sources = sources
			sets, err := servicesets.New(d, shared)
			if err != nil {
				return nil, err
			}
			managers, err := statemanagers.New(d, statemanagers.Config{SystemNamespace: services.SystemNamespace, Sources: sources, Native: native})
			return append(sets, managers...), err
		},
	}
}
