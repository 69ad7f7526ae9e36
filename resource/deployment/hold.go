package deployment

import (
	"context"
	"fmt"
	"strings"

	"github.com/operatorkit/operatorkit/resource/deployment/api"
	"github.com/operatorkit/operatorkit/resource/deployment/scheduler"
)

// Run carries the plan out if what it depends on is still so, and is ErrStalePlan otherwise. From before it looks at that until it ends,
// what it takes is reserved: nobody who plans with the same client takes it meanwhile.
func (p *Plan) Run(ctx context.Context, cli Client) error {
	if p.Empty() {
		return nil
	}
	release, err := p.hold(ctx, cli)
	if err != nil {
		return err
	}
	defer release()
	return p.Execute(withNames(ctx, p.names), cli)
}

// hold reserves what the plan takes, and checks that what it depends on is still so.
func (p *Plan) hold(ctx context.Context, cli Client) (release func(), err error) {
	owner := api.OwnershipOf(ctx)
	own, conflict := scheduler.ReservationsOf(cli).Hold(p.taking(owner), owner)
	if conflict != "" {
		return nil, stale(conflict)
	}
	if err := p.check(ctx, cli, own); err != nil {
		own.Release()
		return nil, err
	}
	return own.Release, nil
}

// check tells whether what the plan depends on is still so.
func (p *Plan) check(ctx context.Context, cli Client, own *scheduler.Reservation) error {
	if p.Basis == nil {
		return nil
	}
	state, err := scheduler.InspectFor(ctx, cli, own, p.Basis.Seen())
	if err != nil {
		return err
	}
	if changes := p.Basis.Changes(state); len(changes) > 0 {
		return stale(changes...)
	}
	return nil
}

// shownChanges is how many changes are in an error.
const shownChanges = 3

func stale(changes ...string) error {
	if more := len(changes) - shownChanges; more > 0 {
		changes = append(changes[:shownChanges:shownChanges], fmt.Sprintf("and %d more", more))
	}
	return fmt.Errorf("%w; nothing was done: %s", ErrStalePlan, strings.Join(changes, "; "))
}

// taking returns what the plan will put onto machines, or may bring back there.
func (p *Plan) taking(owner api.Ownership) scheduler.Taking {
	taking := scheduler.Taking{}
	// What it mounts is that of the service.
	spec := api.ServiceSpec{Mode: p.spec.Mode, Volumes: p.spec.Volumes, Container: api.ContainerSpec{VolumeMounts: p.spec.Container.VolumeMounts}}
	takes := func(machineID, name string, ports []api.PortSpec) {
		taking.Add(machineID, []api.Container{{
			Name: name, Owner: owner.Owner(p.ServiceName), ServiceName: p.ServiceName, State: api.ContainerCreated, Ports: ports, Spec: spec,
		}})
	}
	for _, op := range leaves(p.Operations) {
		switch o := op.(type) {
		case *CreateVolumeOperation:
			taking.Add(o.MachineID, nil, api.VolumeOf(o.VolumeSpec, owner.Owner(p.ServiceName)))
		case *PreDeployOperation:
			takes(o.MachineID, o.ContainerName, nil)
		case *RunContainerOperation:
			takes(o.MachineID, o.ContainerName, o.Spec.Ports)
		case *RunJobOperation:
			takes(o.Run.MachineID, o.Run.ContainerName, o.Run.Spec.Ports)
		case *ReplaceContainerOperation:
			takes(o.New.MachineID, o.New.ContainerName, o.New.Spec.Ports)
			for i := range o.Old {
				takes(o.Old[i].MachineID, o.Old[i].Name, o.Old[i].Ports)
			}
		case *StartContainerOperation:
			takes(o.MachineID, o.Container.Name, o.Container.Ports)
		case *UpdateContainerOperation:
			takes(o.MachineID, o.Container.Name, o.Container.Ports)
		}
	}
	return taking
}

// places returns where the plan puts containers, or starts them.
func (p *Plan) places() []scheduler.Place {
	var places []scheduler.Place
	for _, op := range leaves(p.Operations) {
		switch o := op.(type) {
		case *PreDeployOperation:
			places = append(places, scheduler.Place{MachineID: o.MachineID, Container: o.ContainerName})
		case *RunContainerOperation:
			places = append(places, scheduler.Place{MachineID: o.MachineID, Container: o.ContainerName})
		case *ReplaceContainerOperation:
			places = append(places, scheduler.Place{MachineID: o.New.MachineID, Container: o.New.ContainerName})
		case *RunJobOperation:
			place := scheduler.Place{MachineID: o.Run.MachineID}
			if o.Existing == nil {
				place.Container = o.Run.ContainerName
			}
			places = append(places, place)
		case *StartContainerOperation:
			places = append(places, scheduler.Place{MachineID: o.MachineID})
		}
	}
	return places
}

// snapshot is a client that sees the machines as they were.
type snapshot struct {
	Client
	state *scheduler.ClusterState
}

// ClusterState implements scheduler.Inspected.
func (s *snapshot) ClusterState() *scheduler.ClusterState { return s.state }

// serviceIn returns a service as it is in a state, or nil.
func serviceIn(state *scheduler.ClusterState, name string) *api.Service {
	var service *api.Service
	for _, m := range state.Machines {
		for i := range m.Inventory.Containers {
			c := &m.Inventory.Containers[i]
			if !state.Owns(name, c) || c.ServiceID == "" {
				continue
			}
			if service == nil {
				service = &api.Service{ID: c.ServiceID, Name: c.ServiceName, Mode: c.Spec.Mode}
			}
			service.Containers = append(service.Containers, *c)
		}
	}
	return service
}
