package machines

import (
	"context"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/operator/machines/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/deployment/api"
)

// lastSeen returns what is kept in the status of a Machine of what is on it.
func lastSeen(inventory *api.Inventory) *v1alpha1.LastSeen {
	seen := &v1alpha1.LastSeen{}
	for i := range inventory.Containers {
		if c := &inventory.Containers[i]; c.ServiceName != "" {
			seen.Containers = append(seen.Containers, v1alpha1.SeenContainer{Name: c.Name, Owner: c.Owner, Hook: c.Hook})
		}
	}
	for _, v := range inventory.Volumes {
		seen.Volumes = append(seen.Volumes, v1alpha1.SeenVolume{Name: v.Name, Driver: v.Driver, Owner: v.Owner})
	}
	return seen
}

// inventoryOf is the reverse of lastSeen. What containers do is not known.
func inventoryOf(seen *v1alpha1.LastSeen) *api.Inventory {
	inventory := &api.Inventory{}
	for _, c := range seen.Containers {
		inventory.Containers = append(inventory.Containers, api.Container{Name: c.Name, Owner: c.Owner, ServiceName: c.Owner.Service, Hook: c.Hook})
	}
	for _, v := range seen.Volumes {
		inventory.Volumes = append(inventory.Volumes, api.Volume{Name: v.Name, Driver: v.Driver, Owner: v.Owner})
	}
	return inventory
}

// sight is the cluster as a service may take it. Of machines that can't be seen, and of which the connection knows nothing, it knows what
// statuses say: that of the Machine says what was there when it was seen last, and those of services on which machines plans have done
// something since.
type sight struct {
	*cluster
	service  *v1alpha1.MachineService
	services client.Reader
}

// ListMachines implements api.MachineClient.
func (s *sight) ListMachines(ctx context.Context) ([]api.Machine, error) {
	machines, err := s.cluster.ListMachines(ctx)
	if err != nil {
		return nil, err
	}
	for i := range machines {
		if m := &machines[i]; m.State == api.MachineUnknown && m.LastSeen == nil {
			if err := s.remember(ctx, m); err != nil {
				return nil, err
			}
		}
	}
	return machines, nil
}

// remember adds what is known of a machine from statuses.
func (s *sight) remember(ctx context.Context, m *api.Machine) error {
	is := s.object(m.Name)
	on := statusOn(s.service, m.Name)
	if is == nil || on != nil && on.Planned || s.touches(s.service.Name, m.Name) {
		return nil
	}
	if is.Status.LastSeen == nil {
		m.Untouched = is.Status.EngineVersion == "" && on == nil
		return nil
	}
	m.LastSeen = inventoryOf(is.Status.LastSeen)
	if on != nil {
		for _, c := range on.Containers {
			if !slices.ContainsFunc(m.LastSeen.Containers, func(o api.Container) bool { return o.Name == c.Name }) {
				m.LastSeen.Containers = append(m.LastSeen.Containers, api.Container{
					Name: c.Name, ServiceName: s.service.Name, Owner: api.OwnershipOf(ctx).Owner(s.service.Name), State: c.State, Health: c.Health, Ports: c.Ports,
				})
			}
		}
	}
	return s.plannedVolumes(ctx, m)
}

// plannedVolumes adds the volumes that plans for other services may have made on a machine since it was seen.
func (s *sight) plannedVolumes(ctx context.Context, m *api.Machine) error {
	all := &v1alpha1.MachineServiceList{}
	if err := s.services.List(ctx, all, client.InNamespace(s.service.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("look which services may have volumes on machine %s: %w", m.Name, err)
	}
	for i := range all.Items {
		on := statusOn(&all.Items[i], m.Name)
		if planned := on != nil && on.Planned; !planned && !s.touches(all.Items[i].Name, m.Name) {
			continue
		}
		for _, v := range all.Items[i].Spec.MountedVolumes(api.VolumeTypeVolume) {
			m.LastSeen.Volumes = append(m.LastSeen.Volumes, api.Volume{
				Name: v.Name, Driver: v.DriverName(), Owner: api.OwnershipOf(ctx).Owner(all.Items[i].Name),
			})
		}
	}
	return nil
}

// statusOn returns what the status of a service says of a machine, or nil.
func statusOn(svc *v1alpha1.MachineService, machine string) *v1alpha1.MachineContainers {
	i := slices.IndexFunc(svc.Status.Machines, func(m v1alpha1.MachineContainers) bool { return m.Name == machine })
	if i < 0 {
		return nil
	}
	return &svc.Status.Machines[i]
}

// SingleVolumes implements scheduler.VolumePlanner.
func (s *sight) SingleVolumes(ctx context.Context) (map[string]string, error) {
	if s.service.Spec.Mode != api.ServiceModeGlobal {
		return nil, nil // only a global service asks
	}
	all := &v1alpha1.MachineServiceList{}
	if err := s.services.List(ctx, all, client.InNamespace(s.service.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	single := map[string]string{}
	for i := range all.Items {
		svc := &all.Items[i]
		for _, v := range svc.Spec.MountedVolumes(api.VolumeTypeVolume) {
			if svc.Spec.Mode != api.ServiceModeGlobal && svc.DeletionTimestamp == nil {
				single[v.Name] = svc.Name
			}
		}
	}
	return single, nil
}
