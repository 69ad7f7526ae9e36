package docker

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	moby "github.com/moby/moby/client"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operatorkit/operatorkit/resource/deployment/api"
)

// inspections is how many containers of a machine are inspected at once.
const inspections = 8

// InspectMachine implements api.MachineClient. What it returns is asked for now, never remembered.
func (c *Client) InspectMachine(ctx context.Context, machineID string) (api.Inventory, error) {
	m, err := c.machine(machineID)
	if err != nil {
		return api.Inventory{}, err
	}
	return m.look(ctx)
}

// look returns what is on the machine, and remembers it.
func (m *machine) look(ctx context.Context) (api.Inventory, error) {
	seen := &snapshot{changes: m.changes.Load(), last: m.last.Load()}
	seen.inventory.AsOf = strconv.FormatInt(seen.last, 10)
	err := m.do(ctx, func(ctx context.Context, engine *moby.Client) error {
		var err error
		if seen.inventory.Containers, err = m.containers(ctx, engine); err != nil {
			return fmt.Errorf("list the containers: %w", err)
		}
		if seen.inventory.Volumes, err = m.client.volumes(ctx, engine); err != nil {
			return fmt.Errorf("list the volumes: %w", err)
		}
		if seen.inventory.Images, err = images(ctx, engine); err != nil {
			return fmt.Errorf("list the images: %w", err)
		}
		return nil
	})
	if err != nil {
		return api.Inventory{}, err
	}
	m.mu.Lock()
	if m.seen == nil || m.seen.changes <= seen.changes {
		m.seen = seen
	}
	m.mu.Unlock()
	return *seen.inventory.DeepCopy(), nil
}

// Unchanged implements scheduler.Follower.
func (c *Client) Unchanged(machineID string, seen *api.Inventory) bool {
	m, err := c.machine(machineID)
	if err != nil {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.conn != nil && m.conn.ctx.Err() == nil && seen.AsOf == strconv.FormatInt(m.last.Load(), 10)
}

// containers returns all containers, by name.
func (m *machine) containers(ctx context.Context, engine *moby.Client) ([]api.Container, error) {
	c, changes := m.client, m.changes.Load()
	list, err := engine.ContainerList(ctx, moby.ContainerListOptions{All: true})
	if err != nil {
		return nil, err
	}
	found := make([]*api.Container, len(list.Items))
	var group errgroup.Group
	group.SetLimit(inspections)
	for i, item := range list.Items {
		switch {
		case c.known(item.Labels):
			if found[i] = m.recall(&item); found[i] != nil {
				continue
			}
			group.Go(func() error {
				inspected, err := c.inspect(ctx, engine, item.ID)
				if err == nil {
					found[i] = &inspected
				} else if errdefs.IsNotFound(err) {
					err = nil
				}
				return err
			})
		case item.Labels[LabelConfigsOf] == "":
			found[i] = c.others(&item)
		}
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	var out []api.Container
	for _, f := range found {
		if f != nil {
			out = append(out, *f)
		}
	}
	m.keep(out, changes)
	slices.SortFunc(out, func(a, b api.Container) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID)) })
	return out, nil
}

// recall returns a container of a list by what is known of it since it was inspected, or nil.
func (m *machine) recall(item *container.Summary) *api.Container {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.details[item.ID]
	if known == nil {
		return nil
	}
	out, now := known.DeepCopy(), m.client.others(item)
	out.Name, out.State, out.Health, out.Ports, out.ExitCode = now.Name, now.State, healthOf(item), nil, 0
	if out.State == api.ContainerExited {
		// Lists say the exit code in words alone.
		if _, err := fmt.Sscanf(item.Status, "Exited (%d)", &out.ExitCode); err != nil {
			return nil
		}
	}
	if out.Active() {
		out.Ports = now.Ports
	}
	return out
}

// keep keeps what is known of containers, unless some may have been updated since the machine's changes were counted.
func (m *machine) keep(containers []api.Container, changes int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	details := map[string]*api.Container{}
	for i := range containers {
		switch id := containers[i].ID; {
		case m.details[id] != nil:
			details[id] = m.details[id]
		case containers[i].ServiceName != "" && m.changes.Load() == changes:
			details[id] = containers[i].DeepCopy()
		}
	}
	m.details = details
}

// forget has a container inspected again.
func (m *machine) forget(containerID string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.details, containerID)
}

// healthOf returns what the check of a container says. Engines before version 1.52 of the API say it in words alone.
func healthOf(item *container.Summary) api.Health {
	if api.ContainerState(item.State) != api.ContainerRunning {
		return api.HealthNone
	}
	if item.Health != nil {
		if item.Health.Status == container.NoHealthcheck {
			return api.HealthNone
		}
		return api.Health(item.Health.Status)
	}
	for words, health := range map[string]api.Health{
		"(health: starting)": api.HealthStarting, "(healthy)": api.HealthHealthy, "(unhealthy)": api.HealthUnhealthy,
	} {
		if strings.HasSuffix(item.Status, words) {
			return health
		}
	}
	return api.HealthNone
}

// others returns a container that is of no service of the cluster, of which only matters what it holds, and whose it is.
func (c *Client) others(item *container.Summary) *api.Container {
	out := &api.Container{
		ID: item.ID, Owner: c.ownerOf(item.Labels), State: api.ContainerState(item.State), Created: metav1.Unix(item.Created, 0),
	}
	if len(item.Names) > 0 {
		out.Name = strings.TrimPrefix(item.Names[0], "/")
	}
	for _, p := range item.Ports {
		if p.PublicPort != 0 {
			out.Ports = append(out.Ports, port(p.IP, p.PublicPort, p.PrivatePort, p.Type))
		}
	}
	out.Ports = unique(out.Ports)
	return out
}

func port(ip netip.Addr, published, in uint16, protocol string) api.PortSpec {
	p := api.PortSpec{Mode: api.PortModeHost, PublishedPort: published, ContainerPort: in, Protocol: api.Protocol(protocol)}
	if ip.IsValid() && !ip.IsUnspecified() {
		p.HostIP = ip.String()
	}
	return p
}

// unique sorts ports, and makes one of those that are held for both families of addresses.
func unique(ports []api.PortSpec) []api.PortSpec {
	slices.SortFunc(ports, func(a, b api.PortSpec) int {
		return cmp.Or(cmp.Compare(a.ContainerPort, b.ContainerPort), cmp.Compare(a.String(), b.String()))
	})
	return slices.Compact(ports)
}

// InspectContainer implements api.ContainerClient.
func (c *Client) InspectContainer(ctx context.Context, machineID, name string) (api.Container, error) {
	m, err := c.machine(machineID)
	if err != nil {
		return api.Container{}, err
	}
	var out api.Container
	err = m.do(ctx, func(ctx context.Context, engine *moby.Client) error {
		out, err = c.inspect(ctx, engine, name)
		return err
	})
	return out, err
}

func (c *Client) inspect(ctx context.Context, engine *moby.Client, name string) (api.Container, error) {
	inspected, err := engine.ContainerInspect(ctx, name, moby.ContainerInspectOptions{})
	if err != nil {
		return api.Container{}, err
	}
	return c.describe(&inspected.Container)
}

// describe returns a container as planning sees it.
func (c *Client) describe(in *container.InspectResponse) (api.Container, error) {
	if in.State == nil || in.Config == nil || in.HostConfig == nil {
		return api.Container{}, errLeftOut
	}
	out := api.Container{ID: in.ID, Name: strings.TrimPrefix(in.Name, "/"), State: api.ContainerState(in.State.Status)}
	if out.State == api.ContainerExited {
		out.ExitCode = in.State.ExitCode
	}
	if created, err := time.Parse(time.RFC3339Nano, in.Created); err == nil {
		out.Created = metav1.NewTime(created)
	}
	if h := in.State.Health; h != nil && h.Status != container.NoHealthcheck && out.State == api.ContainerRunning {
		out.Health = api.Health(h.Status)
	}
	if in.NetworkSettings != nil && out.Active() {
		out.Ports = published(in.NetworkSettings.Ports)
	}
	labels := in.Config.Labels
	out.Owner = c.ownerOf(labels)
	if c.known(labels) {
		out.ServiceID, out.ServiceName = labels[LabelServiceID], labels[LabelService]
		out.Hook, out.Attempt = labels[LabelHook] != "", labels[LabelAttempt]
		out.Spec = recorded(labels)
		asItIs(&out.Spec.Container, in.HostConfig)
	}
	return out, nil
}

func published(ports network.PortMap) []api.PortSpec {
	var out []api.PortSpec
	for p, bindings := range ports {
		for _, b := range bindings {
			held, err := network.ParsePort(b.HostPort)
			if err == nil && held.Num() != 0 {
				out = append(out, port(b.HostIP, held.Num(), p.Num(), string(p.Proto())))
			}
		}
	}
	return unique(out)
}

// asItIs makes what changes in place as the engine has it.
func asItIs(c *api.ContainerSpec, host *container.HostConfig) {
	r := &c.Resources
	r.CPU = quantity(r.CPU, host.NanoCPUs, nanoCPUs, func(n int64) *resource.Quantity {
		return resource.NewScaledQuantity(n, resource.Nano)
	})
	inBytes := func(n int64) *resource.Quantity { return resource.NewQuantity(n, resource.BinarySI) }
	r.Memory = quantity(r.Memory, host.Memory, bytes, inBytes)
	r.MemoryReservation = quantity(r.MemoryReservation, host.MemoryReservation, bytes, inBytes)
	c.RestartPolicy = api.RestartPolicy{
		Name: api.RestartPolicyName(cmp.Or(host.RestartPolicy.Name, container.RestartPolicyDisabled)), MaxRetries: host.RestartPolicy.MaximumRetryCount,
	}
}

// quantity returns what the engine has, in the words of the specification if that is the same.
func quantity(said *resource.Quantity, is int64, count func(*resource.Quantity) int64, write func(int64) *resource.Quantity) *resource.Quantity {
	switch {
	case count(said) == is:
		return said
	case is == 0:
		return nil
	}
	return write(is)
}

// nanoCPUs returns a number of CPUs in the unit of engines, and 0 for nil.
func nanoCPUs(q *resource.Quantity) int64 {
	if q == nil {
		return 0
	}
	return q.ScaledValue(resource.Nano)
}

// bytes returns a size in bytes, and 0 for nil.
func bytes(q *resource.Quantity) int64 {
	if q == nil {
		return 0
	}
	return q.Value()
}
