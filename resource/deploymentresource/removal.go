package deploymentresource

import (
	"cmp"
	"context"
	"slices"

	"github.com/operatorkit/operatorkit/resource/deployment"
	"github.com/operatorkit/operatorkit/resource/deployment/api"
	"github.com/operatorkit/operatorkit/resource/deployment/scheduler"
)

// removal is the strategy that takes all containers of a service away.
type removal struct{}

// Type implements deployment.Strategy.
func (removal) Type() string { return "removal" }

// Plan implements deployment.Strategy. Containers that run go by their own grace period, several at once.
func (r removal) Plan(ctx context.Context, cli scheduler.Client, svc *api.Service, spec api.ServiceSpec) (deployment.Plan, error) {
	state, err := scheduler.Inspect(ctx, cli)
	if err != nil {
		return deployment.Plan{}, err
	}
	basis := state.Basis(spec, nil)
	plan := deployment.Plan{ServiceName: spec.Name, Strategy: r.Type(), Basis: &basis}
	if svc != nil {
		plan.ServiceID = svc.ID
	}
	var removals []deployment.Operation
	for _, m := range slices.SortedFunc(slices.Values(state.Machines), func(a, b *scheduler.Machine) int { return cmp.Compare(a.Name, b.Name) }) {
		if !m.Available() {
			continue
		}
		containers := containersOf(state, &m.Inventory, spec.Name)
		slices.SortFunc(containers, func(a, b *api.Container) int { return cmp.Compare(a.Name, b.Name) })
		for _, c := range containers {
			removals = append(removals, &deployment.RemoveContainerOperation{
				ServiceID: plan.ServiceID, MachineID: m.ID, Reason: "the service is deleted",
				Container: deployment.ContainerRef{
					ID: c.ID, Name: c.Name, MachineID: m.ID, GracePeriod: c.Spec.Container.GracePeriod(),
				},
			})
		}
	}
	if len(removals) > 0 {
		plan.Operations = []deployment.Operation{&deployment.ParallelOperation{Operations: removals}}
	}
	return plan, nil
}
