package docker

import (
	"context"
	"fmt"
	"sync"

	"golang.org/x/sync/errgroup"

	moby "github.com/moby/moby/client"

	"github.com/operatorkit/operatorkit/resource/deployment/api"
)

// atOnce is how many machines are asked at once.
const atOnce = 32

// InspectService implements api.ServiceClient, for the services of whoever ctx says. Machines that don't answer are passed over.
func (c *Client) InspectService(ctx context.Context, nameOrID string) (api.Service, error) {
	machines, err := c.all()
	if err != nil {
		return api.Service{}, err
	}
	var mu sync.Mutex
	found := make([][]api.Container, len(machines))
	var group errgroup.Group
	group.SetLimit(atOnce)
	for i, m := range machines {
		group.Go(func() error {
			// What is on the others is not less there because this one does not answer.
			_ = m.do(ctx, func(ctx context.Context, engine *moby.Client) error {
				containers, err := m.containersOf(ctx, engine, nameOrID)
				mu.Lock()
				defer mu.Unlock()
				found[i] = containers
				return err
			})
			return nil
		})
	}
	_ = group.Wait()
	if ctx.Err() != nil {
		return api.Service{}, context.Cause(ctx)
	}
	var service api.Service
	for _, containers := range found {
		for _, container := range containers {
			if service.ID == "" {
				service.ID, service.Name, service.Mode = container.ServiceID, container.ServiceName, container.Spec.Mode
			}
			service.Containers = append(service.Containers, container)
		}
	}
	if service.ID == "" {
		return api.Service{}, fmt.Errorf("service %s: %w", nameOrID, api.ErrNotFound)
	}
	return service, nil
}

func (m *machine) containersOf(ctx context.Context, engine *moby.Client, nameOrID string) ([]api.Container, error) {
	all, err := m.containers(ctx, engine)
	if err != nil {
		return nil, err
	}
	var out []api.Container
	ours := api.OwnershipOf(ctx)
	for _, container := range all {
		if !ours.Owns(container.Owner) || container.ServiceName == "" || container.Failed() {
			continue
		}
		if container.ServiceName == nameOrID || container.ServiceID == nameOrID {
			out = append(out, container)
		}
	}
	return out, nil
}
