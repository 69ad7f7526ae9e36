package machines

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/identity"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/internal/claims"
	"github.com/operatorkit/operatorkit/operator/internal/statuses"
	"github.com/operatorkit/operatorkit/operator/machines/v1alpha1"
)

// The names of the frameworks, which are parts of their finalizers.
const (
	machinesName = "machines"
	servicesName = "machineservices"
)

// ServicesOf returns whose the containers of services are that an operator of a name puts onto machines. Who looks at them with a
// docker.Client of its own gives it a context of that: identity.NewContext.
func ServicesOf(operator string) identity.Identity {
	return identity.Identity{Operator: operator, Framework: servicesName}
}

// sources are what the frameworks look at, and a reader of them.
type sources struct {
	machines, services *informer.Kubernetes
	// secrets and configMaps have metadata only.
	secrets, configMaps *informer.Kubernetes
	engines             *engines
	reader              client.Reader
	rollouts            rollouts
	// deployer is the framework for services, which are claimed for it.
	deployer *framework.Framework
	claims   *claims.Claims
	// reports are the claims on Machines, which several operators may use: who has one writes its status.
	reports *claims.Claims
	// readiness are the services as those see them that depend on them.
	readiness *statuses.Changes
	// endpoints are the machines as services see them: their specs and labels.
	endpoints *statuses.Changes
}

// New returns the frameworks for Machines and for MachineServices. The scheme of the Dependencies has to know v1alpha1.AddToScheme
// and that of client-go.
//
// The error is one for which framework.IsInvalidConfig holds if it is about the configuration.
func New(d *operator.Dependencies, config Config) ([]*framework.Framework, error) {
	if err := config.complete(); err != nil {
		return nil, err
	}
	s, err := newSources(d, config)
	if err != nil {
		return nil, err
	}
	ms, err := newMachines(d, s)
	if err != nil {
		return nil, err
	}
	if s.deployer, err = newServices(d, s, config); err != nil {
		return nil, err
	}
	s.claims.Owner, s.reports.Owner = s.deployer, ms
	return []*framework.Framework{ms, s.deployer}, nil
}

func newSources(d *operator.Dependencies, config Config) (*sources, error) {
	s := &sources{}
	var err error
	if s.machines, err = d.NewSource(&v1alpha1.Machine{}); err != nil {
		return nil, err
	}
	if s.services, err = d.NewSource(&v1alpha1.MachineService{}); err != nil {
		return nil, err
	}
	if s.secrets, err = newMetadata(d, secretKind); err != nil {
		return nil, err
	}
	if s.configMaps, err = newMetadata(d, configMapKind); err != nil {
		return nil, err
	}
	s.engines = newEngines(d, config, s.machines, s.secrets)
	s.reader = informer.NewReader(d.Client.Scheme(), s.machines, s.services)
	s.claims = &claims.Claims{Client: d.Client, Kind: v1alpha1.MachineServiceKind}
	s.reports = &claims.Claims{Client: d.Client, Kind: v1alpha1.MachineKind}
	s.readiness = statuses.ChangesOf(s.services, "readiness", func(before, after client.Object) bool {
		return isReady(before.(*v1alpha1.MachineService)) != isReady(after.(*v1alpha1.MachineService))
	})
	s.endpoints = statuses.ChangesOf(s.machines, "endpoints", func(before, after client.Object) bool {
		return statuses.SpecDiffers(before, after) || concerns(before.(*v1alpha1.Machine), after.(*v1alpha1.Machine))
	})
	return s, nil
}
