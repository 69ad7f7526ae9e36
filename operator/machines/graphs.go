package machines

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/operator/inspector/graph"
	"github.com/operatorkit/operatorkit/operator/machines/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/deployment"
	"github.com/operatorkit/operatorkit/resource/deployment/api"
	"github.com/operatorkit/operatorkit/resource/deployment/scheduler"
	"github.com/operatorkit/operatorkit/resource/deploymentresource"
)

// graphs draws a service as the engines tell of it now: its machines, the containers on them, and what it stands on.
func (f *serviceFramework) graphs(ctx context.Context, obj any) ([]*graph.Graph, error) {
	svc := obj.(*v1alpha1.MachineService)
	state, err := f.compute(ctx, svc)
	if err != nil {
		return nil, err
	}
	g := &graph.Graph{Name: "containers", Title: fmt.Sprintf("Containers of service %s", client.ObjectKeyFromObject(svc))}
	service := serviceNode(svc)
	if state.work != nil {
		for _, m := range state.work.State.Machines {
			g.Nodes = append(g.Nodes, nodesOn(m, svc, state.work)...)
		}
	}
	for _, n := range g.Nodes {
		if len(n.DependsOn) == 0 {
			continue // a machine
		}
		if n.State != graph.Removing {
			service.DependsOn = append(service.DependsOn, n.ID)
		}
		if n.State == graph.Progressing {
			service.WaitsFor = append(service.WaitsFor, n.ID)
		}
	}
	g.Nodes = append(g.Nodes, service)
	return []*graph.Graph{g}, nil
}

// serviceNode draws a service itself, as its conditions tell of it.
func serviceNode(svc *v1alpha1.MachineService) graph.Node {
	n := graph.Node{ID: "service", Label: svc.Name, Versions: []string{svc.Spec.Container.Image}, State: graph.Unknown}
	ready := meta.FindStatusCondition(svc.Status.Conditions, ConditionReady)
	if ready != nil {
		n.Message = ready.Message
	}
	is := func(condition string) bool { return meta.IsStatusConditionTrue(svc.Status.Conditions, condition) }
	switch {
	case svc.DeletionTimestamp != nil:
		n.State = graph.Removing
	case is(ConditionBlocked):
		n.State = graph.Blocked
	case ready == nil || ready.ObservedGeneration != svc.Generation || is(ConditionProgressing):
		n.State = graph.Progressing
	case is(ConditionReady):
		n.State = graph.Ready
	}
	return n
}

// nodesOn draws a machine, and what it has of a service: nothing if it has nothing.
func nodesOn(m *scheduler.Machine, svc *v1alpha1.MachineService, work *deploymentresource.Work) []graph.Node {
	machine := graph.Node{ID: "machine/" + m.Name, Label: m.Name, State: graph.Ready, Group: "machine"}
	inventory := &m.Inventory
	if m.Unknown() {
		machine.State, machine.Message = graph.Unknown, m.Reason
		if m.LastSeen != nil {
			inventory = m.LastSeen
		}
	}
	nodes := []graph.Node{machine}
	for i := range inventory.Containers {
		c := &inventory.Containers[i]
		if !work.State.Owns(svc.Name, c) || c.Hook && !c.Failed() {
			continue
		}
		nodes = append(nodes, graph.Node{
			ID: "container/" + m.Name + "/" + c.Name, Label: c.Name, Versions: []string{c.Spec.Container.Image}, DependsOn: []string{machine.ID},
			State: containerState(c, m, svc, &work.Spec), Message: containerMessage(c),
		})
	}
	if len(nodes) == 1 && (!m.Blind() || m.Untouched) {
		return nil
	}
	return nodes
}

// containerState returns how a container is drawn. Those of an earlier specification are on their way out, unless the newer one was
// given up.
func containerState(c *api.Container, m *scheduler.Machine, svc *v1alpha1.MachineService, spec *api.ServiceSpec) graph.State {
	goes := svc.DeletionTimestamp != nil || deployment.EvalContainerSpecChange(c.Spec, *spec) == deployment.ContainerNeedsRecreate
	switch {
	case m.Unknown():
		return graph.Unknown
	case c.Failed():
		return graph.Blocked
	case goes && svc.Status.GivenUp == nil:
		return graph.Removing
	case c.Ready():
		return graph.Ready
	case c.State == api.ContainerExited, c.Health == api.HealthUnhealthy:
		return graph.Blocked
	}
	return graph.Progressing
}

// containerMessage says what a container does, and where it is reached.
func containerMessage(c *api.Container) string {
	words := []string{string(c.State)}
	if c.State == api.ContainerExited {
		words = append(words, fmt.Sprintf("exit code %d", c.ExitCode))
	}
	if c.Failed() {
		words = append(words, "kept for its log until the next attempt")
	}
	if c.Health != api.HealthNone {
		words = append(words, string(c.Health))
	}
	ports := slices.Clone(c.Ports)
	slices.SortFunc(ports, func(a, b api.PortSpec) int { return cmp.Compare(a.PublishedPort, b.PublishedPort) })
	for _, p := range ports {
		words = append(words, fmt.Sprintf("port %d", p.PublishedPort))
	}
	return strings.Join(words, ", ")
}
