package deploymentresource

import (
	"context"
	"fmt"
	"slices"

	"github.com/operatorkit/operatorkit/resource/deployment"
	"github.com/operatorkit/operatorkit/resource/deployment/api"
	"github.com/operatorkit/operatorkit/resource/deployment/scheduler"
)

// Service is a service as it should be.
type Service struct {
	// Client sees and changes the machines. Required.
	Client deployment.Client
	// Spec is what the service should be. It need not be resolved. For a removal only its name counts.
	Spec api.ServiceSpec
	// Strategy makes the plan. It must not have a state of its own. Default: a deployment.RollingStrategy.
	Strategy deployment.Strategy
	// Resolver resolves Spec. Default: that of deployment.Deployment.
	Resolver *deployment.ServiceSpecResolver
	// Completed and Attempt are those of deployment.Deployment.
	Completed bool
	Attempt   string
}

// Work is what there is to do for a service, at one moment. It must not be changed, but for Hold by who made it.
type Work struct {
	// State is what was on the machines.
	State *scheduler.ClusterState
	// Spec is the specification, resolved.
	Spec api.ServiceSpec
	// Plan brings the service to it.
	Plan deployment.Plan
	// Left says for a removal what there is, or may be, of the service, and where. Empty is nothing.
	Left []string
	// Hold says why the plan is not carried out now, although it is not empty. Default: empty, and it is.
	Hold string

	client  deployment.Client
	removal bool
}

// Plan returns what there is to do for a service of the resource that ctx belongs to. It changes nothing on machines. The error is that of deployment.Deployment.Plan.
func Plan(ctx context.Context, service Service) (*Work, error) {
	return compute(ctx, service, false)
}

// Removal returns what there is to do so that nothing but its volumes is left of a service.
func Removal(ctx context.Context, service Service) (*Work, error) {
	zero := int32(0)
	// The image is none that is looked for: a specification has one.
	service.Spec = api.ServiceSpec{Name: service.Spec.Name, Replicas: &zero, Container: api.ContainerSpec{Image: "none"}}
	service.Strategy, service.Resolver, service.Completed = removal{}, nil, false
	return compute(ctx, service, true)
}

func compute(ctx context.Context, service Service, removes bool) (*Work, error) {
	state, err := scheduler.Inspect(ctx, service.Client)
	if err != nil {
		return nil, err
	}
	d := deployment.NewDeployment(service.Client, service.Spec, service.Strategy)
	d.Resolver, d.State, d.Completed, d.Attempt = service.Resolver, state, service.Completed, service.Attempt
	p, err := d.Plan(ctx)
	if err != nil {
		return nil, err
	}
	work := &Work{State: state, Spec: d.Spec, Plan: p, client: service.Client, removal: removes}
	if removes {
		work.Left = leftOf(state, service.Spec.Name)
	}
	return work, nil
}

// run carries the plan out, if what it depends on is still so.
func (w *Work) run(ctx context.Context, progress func(deployment.ProgressEvent)) error {
	if err := w.Plan.Run(deployment.WithProgress(ctx, progress), w.client); err != nil {
		return fmt.Errorf("deploy service %s: %w", w.Spec.Name, err)
	}
	return nil
}

// containersOf returns the containers of a service that are in an inventory, those of hooks included.
func containersOf(state *scheduler.ClusterState, inventory *api.Inventory, service string) []*api.Container {
	var containers []*api.Container
	for i := range inventory.Containers {
		if c := &inventory.Containers[i]; state.Owns(service, c) {
			containers = append(containers, c)
		}
	}
	return containers
}

// leftOf says what there is, or may be, of a service.
func leftOf(state *scheduler.ClusterState, service string) []string {
	var left []string
	for _, m := range state.Machines {
		switch {
		case m.Available():
			if n := len(containersOf(state, &m.Inventory, service)); n > 0 {
				left = append(left, fmt.Sprintf("%s on %s", count(n), m.Name))
			}
		case m.Blind() && m.Untouched:
		case m.Blind():
			left = append(left, fmt.Sprintf("what may be on %s, which can't be seen; bring it back, or declare it gone for good", m.Name))
		case m.Unknown():
			if n := len(containersOf(state, m.LastSeen, service)); n > 0 {
				left = append(left, fmt.Sprintf("%s on %s, which can't be seen now; bring it back, or declare it gone for good", count(n), m.Name))
			}
		}
	}
	slices.Sort(left)
	return left
}

func count(n int) string {
	if n == 1 {
		return "1 container"
	}
	return fmt.Sprintf("%d containers", n)
}
