package statemanagers

import (
	"cmp"
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/operator/inspector/graph"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager/native"
)

// graphs draws a ServiceSet: its services as the status tells of them, and those of other sets of the cluster that they depend
// on. It asks no cluster.
func (m *managed) graphs(_ context.Context, obj any) ([]*graph.Graph, error) {
	set := obj.(*v1alpha1.ServiceSet)
	others, err := m.others(set)
	if err != nil {
		return nil, err
	}
	where := "the management cluster"
	if set.Spec.Cluster != "" {
		where = "cluster " + set.Spec.Cluster
	}
	g := &graph.Graph{Name: "services", Title: fmt.Sprintf("Services of service set %s on %s", client.ObjectKeyFromObject(set), where)}
	d := &drawing{graph: g, drawn: map[client.ObjectKey]bool{}, deployed: map[client.ObjectKey]bool{}}
	for _, of := range append([]*v1alpha1.ServiceSet{set}, others...) {
		d.know(of)
	}
	d.draw(set, "", func(client.ObjectKey) bool { return true })
	needed := map[client.ObjectKey]bool{}
	for i := range set.Spec.Services {
		for _, on := range set.Spec.Services[i].DependsOn {
			needed[on.Key()] = true
		}
	}
	for _, other := range others {
		d.draw(other, "service set "+other.Name, func(key client.ObjectKey) bool { return needed[key] })
	}
	return []*graph.Graph{g}, nil
}

// drawing is a graph that is being drawn.
type drawing struct {
	graph    *graph.Graph
	drawn    map[client.ObjectKey]bool
	deployed map[client.ObjectKey]bool
}

// know notes which services of a set are Deployed as it lists them.
func (d *drawing) know(set *v1alpha1.ServiceSet) {
	entries := desiredOf(set)
	for key, s := range statesOf(&set.Status) {
		if entry := entries[key]; entry != nil && isDeployed(s, entry) {
			d.deployed[key] = true
		}
	}
}

// draw adds those services of a set for which a condition holds, unless they are there.
func (d *drawing) draw(set *v1alpha1.ServiceSet, group string, wanted func(client.ObjectKey) bool) {
	entries, states := desiredOf(set), statesOf(&set.Status)
	all := map[client.ObjectKey]bool{}
	for key := range entries {
		all[key] = true
	}
	for key := range states {
		all[key] = true
	}
	for _, key := range keysOf(all) {
		if !d.drawn[key] && wanted(key) {
			d.drawn[key] = true
			d.graph.Nodes = append(d.graph.Nodes, d.node(key, entries[key], states[key], group))
		}
	}
}

// node draws a service: entry is nil for one that is to go, state for one that is not begun.
func (d *drawing) node(key client.ObjectKey, entry *v1alpha1.ServiceWithValues, state *v1alpha1.ServiceState, group string) graph.Node {
	n := graph.Node{ID: key.String(), Label: key.Name, State: graph.Waiting, Group: group}
	if key.Namespace != metav1.NamespaceDefault {
		n.Label = key.String()
	}
	if state != nil {
		n.Message = cmp.Or(state.FailureMessage, messageOf(state))
		n.State = stateOf(entry, state)
		if last := state.LastDeployed; last != nil {
			n.Versions = append(n.Versions, cmp.Or(last.Version, last.Template))
		}
	}
	if entry == nil {
		return n
	}
	if version := cmp.Or(entry.Version, entry.Template); len(n.Versions) == 0 || n.Versions[0] != version {
		n.Versions = append(n.Versions, version)
	}
	for _, on := range entry.DependsOn {
		needs := on.Key()
		n.DependsOn = append(n.DependsOn, needs.String())
		if n.State == graph.Waiting && !d.deployed[needs] {
			n.WaitsFor = append(n.WaitsFor, needs.String())
		}
	}
	return n
}

// stateOf returns how a service is drawn.
func stateOf(entry *v1alpha1.ServiceWithValues, state *v1alpha1.ServiceState) graph.State {
	switch {
	case state.State == v1alpha1.ServiceStateFailed:
		return graph.Blocked
	case entry == nil:
		return graph.Removing
	case isDeployed(state, entry):
		return graph.Ready
	case meta.IsStatusConditionTrue(state.Conditions, native.ConditionWaiting), state.State == v1alpha1.ServiceStatePending:
		return graph.Waiting
	}
	return graph.Progressing
}

// messageOf returns what the conditions of a service say about how it is.
func messageOf(state *v1alpha1.ServiceState) string {
	for _, condition := range []string{native.ConditionWaiting, native.ConditionDrifted} {
		if c := meta.FindStatusCondition(state.Conditions, condition); c != nil && c.Status == metav1.ConditionTrue {
			return c.Message
		}
	}
	if c := meta.FindStatusCondition(state.Conditions, native.ConditionHealthy); c != nil && c.Status != metav1.ConditionTrue {
		return c.Message
	}
	return ""
}
