package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operatorkit/operatorkit/resource/deployment/api"
	"github.com/operatorkit/operatorkit/resource/deployment/scheduler"
)

// modelImage is on all machines, and modelMonitor is how long its containers are looked at.
const modelImage = "example.com/app:1"

var modelMonitor = metav1.Duration{Duration: 50 * time.Millisecond}

// modelMachines are machines in memory, whose containers work as soon as they are started.
type modelMachines struct {
	mu       sync.Mutex
	machines []api.Machine
	// containers are those of each machine.
	containers map[string][]*api.Container
	// made is how many containers were ever made.
	made         int
	reservations scheduler.Reservations
}

// Reservations implements scheduler.Reserver, as the client of Docker does.
func (m *modelMachines) Reservations() *scheduler.Reservations { return &m.reservations }

func newModelMachines(n int) *modelMachines {
	m := &modelMachines{containers: map[string][]*api.Container{}}
	for i := range n {
		m.machines = append(m.machines, api.Machine{ID: strconv.Itoa(i), Name: fmt.Sprintf("machine-%d", i)})
	}
	return m
}

// change calls with a container.
func (m *modelMachines) change(ctx context.Context, machineID, container string, do func(c *api.Container) error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range m.containers[machineID] {
		if c.ID == container || c.Name == container {
			if err := ctx.Err(); err != nil {
				return err
			}
			return do(c)
		}
	}
	return fmt.Errorf("container %s: %w", container, api.ErrNotFound)
}

// CreateContainer implements api.ContainerClient.
func (m *modelMachines) CreateContainer(ctx context.Context, machineID string, options api.CreateContainerOptions) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if slices.ContainsFunc(m.containers[machineID], func(c *api.Container) bool { return c.Name == options.Name }) {
		return "", api.ErrExists
	}
	m.made++
	c := &api.Container{
		ID: fmt.Sprintf("c%d", m.made), Name: options.Name, ServiceID: options.ServiceID, ServiceName: options.Spec.Name,
		Spec: options.Spec.Clone(), Owner: api.OwnershipOf(ctx).Owner(options.Spec.Name), Hook: options.Hook,
		State: api.ContainerCreated, Created: metav1.Now(),
	}
	m.containers[machineID] = append(m.containers[machineID], c)
	return c.ID, ctx.Err()
}

// StartContainer implements api.ContainerClient.
func (m *modelMachines) StartContainer(ctx context.Context, machineID, container string) error {
	return m.change(ctx, machineID, container, func(c *api.Container) error {
		for _, other := range m.containers[machineID] {
			if other != c && other.Active() && api.PortsConflict(other.HostPorts(), c.HostPorts()) {
				return fmt.Errorf("%s has it: %w", other.Name, api.ErrPortTaken)
			}
		}
		c.State = api.ContainerRunning
		return nil
	})
}

// StopContainer implements api.ContainerClient.
func (m *modelMachines) StopContainer(ctx context.Context, machineID, container string, _ time.Duration) error {
	return m.change(ctx, machineID, container, func(c *api.Container) error {
		c.State = api.ContainerExited
		return nil
	})
}

// RemoveContainer implements api.ContainerClient.
func (m *modelMachines) RemoveContainer(ctx context.Context, machineID, container string) error {
	return m.change(ctx, machineID, container, func(c *api.Container) error {
		m.containers[machineID] = slices.DeleteFunc(m.containers[machineID], func(other *api.Container) bool { return other == c })
		return nil
	})
}

// SetAside implements api.ContainerClient.
func (m *modelMachines) SetAside(ctx context.Context, machineID, container string) error {
	return m.change(ctx, machineID, container, func(c *api.Container) error {
		c.Name += api.FailedSuffix
		return nil
	})
}

// UpdateContainer implements api.ContainerClient.
func (m *modelMachines) UpdateContainer(ctx context.Context, machineID, container string, spec api.ServiceSpec) error {
	return m.change(ctx, machineID, container, func(c *api.Container) error {
		c.Spec.Container.Resources, c.Spec.Container.RestartPolicy = spec.Container.Resources, spec.Container.RestartPolicy
		return nil
	})
}

// InspectContainer implements api.ContainerClient.
func (m *modelMachines) InspectContainer(ctx context.Context, machineID, container string) (found api.Container, err error) {
	err = m.change(ctx, machineID, container, func(c *api.Container) error {
		found = *c.DeepCopy()
		return nil
	})
	return found, err
}

// WaitContainerReady implements api.ContainerClient.
func (m *modelMachines) WaitContainerReady(ctx context.Context, machineID, container string, options api.WaitOptions) error {
	select {
	case <-time.After(options.Monitor):
	case <-ctx.Done():
		return ctx.Err()
	}
	c, err := m.InspectContainer(ctx, machineID, container)
	if err == nil && c.State != api.ContainerRunning {
		err = fmt.Errorf("it is %s: %w", c.State, api.ErrUnhealthy)
	}
	return err
}

// WaitContainerExit implements api.ContainerClient.
func (m *modelMachines) WaitContainerExit(ctx context.Context, machineID, container string) (int, error) {
	return 0, m.StopContainer(ctx, machineID, container, 0)
}

// LastLines implements api.ContainerClient.
func (m *modelMachines) LastLines(ctx context.Context, machineID, container string) (string, error) {
	_, err := m.InspectContainer(ctx, machineID, container)
	return "", err
}

// GetDomain implements api.DNSClient.
func (m *modelMachines) GetDomain(context.Context) (string, error) { return "", api.ErrNotFound }

// InspectImage implements api.ImageClient.
func (m *modelMachines) InspectImage(_ context.Context, _, image string) (api.Image, error) {
	return api.Image{ID: "sha-" + image, Tags: []string{image}}, nil
}

// PullImage implements api.ImageClient.
func (m *modelMachines) PullImage(ctx context.Context, _, _ string, _ func(api.PullProgress)) error {
	return ctx.Err()
}

// ResolveDigest implements api.ImageClient.
func (m *modelMachines) ResolveDigest(_ context.Context, image string) (string, error) {
	return "", fmt.Errorf("image %s: %w", image, api.ErrNotFound)
}

// ListMachines implements api.MachineClient.
func (m *modelMachines) ListMachines(ctx context.Context) ([]api.Machine, error) {
	return slices.Clone(m.machines), ctx.Err()
}

// InspectMachine implements api.MachineClient.
func (m *modelMachines) InspectMachine(ctx context.Context, machineID string) (api.Inventory, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var there api.Inventory
	for _, c := range m.containers[machineID] {
		there.Containers = append(there.Containers, *c.DeepCopy())
	}
	return there, ctx.Err()
}

// InspectService implements api.ServiceClient.
func (m *modelMachines) InspectService(ctx context.Context, nameOrID string) (api.Service, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, all := range m.containers {
		for _, c := range all {
			if c.ServiceName == nameOrID || c.ServiceID == nameOrID {
				return api.Service{ID: c.ServiceID, Name: c.ServiceName, Mode: c.Spec.Mode}, ctx.Err()
			}
		}
	}
	return api.Service{}, fmt.Errorf("service %s: %w", nameOrID, api.ErrNotFound)
}

// CreateVolume implements api.VolumeClient.
func (m *modelMachines) CreateVolume(context.Context, string, api.VolumeSpec) error { return nil }
