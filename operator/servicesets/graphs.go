package servicesets

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/operator/inspector/graph"
	"github.com/operatorkit/operatorkit/operator/internal/statuses"
	"github.com/operatorkit/operatorkit/resource/serviceset"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// graphs draws a ClusterDeployment: first all its services, whoever owns them, then those of each ServiceSet.
func (c *clusters) graphs(ctx context.Context, obj any) ([]*graph.Graph, error) {
	cd := obj.(*v1alpha1.ClusterDeployment)
	state, err := c.compute(ctx, cd)
	if err != nil {
		return nil, err
	}
	whole := &graph.Graph{Name: "cluster", Title: "Services of cluster " + clusterName(cd.Namespace, cd.Name)}
	owned := map[client.ObjectKey]bool{}
	for _, lost := range []bool{false, true} {
		for _, r := range state.reports {
			for i := range r.services {
				s := &r.services[i]
				if lost == (s.reason == v1alpha1.ReasonOverridden) && !owned[s.key] {
					owned[s.key] = true
					whole.Nodes = append(whole.Nodes, s.node(r.owner.String()))
				}
			}
		}
	}
	sortNodes(whole)
	graphs := []*graph.Graph{whole}
	for _, r := range state.reports {
		graphs = append(graphs, r.graph())
	}
	return graphs, nil
}

// graph draws the services of one ServiceSet.
func (r *report) graph() *graph.Graph {
	g := &graph.Graph{Name: r.key.Name, Title: fmt.Sprintf("Services of %s in service set %s", &r.owner, r.key)}
	for i := range r.services {
		g.Nodes = append(g.Nodes, r.services[i].node(""))
	}
	return g
}

func (s *serviceReport) node(group string) graph.Node {
	n := graph.Node{ID: s.key.String(), Label: nameOf(s.key), State: s.graphState(), Message: s.message, Group: group}
	for _, v := range s.versions {
		if v.Template != "" || v.Version != "" {
			n.Versions = append(n.Versions, label(v))
		}
	}
	n.Versions = slices.Compact(n.Versions)
	for _, d := range s.dependsOn {
		n.DependsOn = append(n.DependsOn, serviceset.ServiceKey(d.Namespace, d.Name).String())
	}
	for _, key := range s.waitsFor {
		n.WaitsFor = append(n.WaitsFor, key.String())
	}
	return n
}

func (s *serviceReport) graphState() graph.State {
	switch {
	case s.blocked:
		return graph.Blocked
	case s.reason == v1alpha1.ReasonRemoving:
		return graph.Removing
	case s.reason == v1alpha1.ReasonDisabled, s.reason == v1alpha1.ReasonOverridden:
		return graph.Disabled
	case s.reason == v1alpha1.ReasonWaiting:
		return graph.Waiting
	case s.ready:
		return graph.Ready
	}
	return graph.Progressing
}

// graphs draws a MultiClusterService: its services with the number of clusters that have them, and the ServiceSet of the
// management cluster if there is one.
func (s *services) graphs(ctx context.Context, obj any) ([]*graph.Graph, error) {
	mcs := obj.(*v1alpha1.MultiClusterService)
	state, err := s.compute(ctx, mcs)
	if err != nil {
		return nil, err
	}
	places, err := s.places(ctx, mcs, state)
	if err != nil {
		return nil, err
	}
	sets, err := s.setsThat(ctx, func(*v1alpha1.ServiceSet) bool { return true })
	if err != nil {
		return nil, err
	}
	at := map[client.ObjectKey][]*v1alpha1.ServiceSet{}
	for _, set := range sets {
		at[clusterKey(set)] = append(at[clusterKey(set)], set)
	}
	g := &graph.Graph{Name: "services", Title: "Services of MultiClusterService " + mcs.Name}
	for i := range mcs.Spec.ServiceSpec.Services {
		g.Nodes = append(g.Nodes, overall(mcs, &mcs.Spec.ServiceSpec.Services[i], places, at, state))
	}
	sortNodes(g)
	if state.management == nil {
		return []*graph.Graph{g}, nil
	}
	return []*graph.Graph{g, state.management.graph()}, nil
}

// overall draws a service of a MultiClusterService on all clusters together, from what state managers report. sets are all of each
// cluster.
func overall(
	mcs *v1alpha1.MultiClusterService, service *v1alpha1.Service, places []place, sets map[client.ObjectKey][]*v1alpha1.ServiceSet, state *serviceState,
) graph.Node {
	key := serviceset.ServiceKey(service.Namespace, service.Name)
	n := graph.Node{ID: key.String(), Label: nameOf(key), State: graph.Progressing}
	for _, d := range service.DependsOn {
		n.DependsOn = append(n.DependsOn, serviceset.ServiceKey(d.Namespace, d.Name).String())
	}
	desired, deployed, failed, overridden := 0, 0, 0, 0
	for i := range places {
		if !places[i].desired {
			continue
		}
		set, others := setOf(mcs, sets[client.ObjectKey{Namespace: places[i].Namespace, Name: places[i].Name}])
		phase := phaseAt(key, service, set)
		if phase == v1alpha1.ServiceStatePending && slices.ContainsFunc(others, func(other *v1alpha1.ServiceSet) bool { return lists(other, key) }) {
			overridden++
			continue
		}
		desired++
		switch phase {
		case v1alpha1.ServiceStateDeployed:
			deployed++
		case v1alpha1.ServiceStateFailed:
			failed++
		}
	}
	n.Versions = []string{label(v1alpha1.ServiceVersion{Template: service.Template, Version: service.Version})}
	n.Message = fmt.Sprintf("deployed on %d of %s", deployed, statuses.Count(desired, "cluster"))
	if failed > 0 {
		n.Message += fmt.Sprintf(", failed on %d", failed)
	}
	if overridden > 0 {
		n.Message += fmt.Sprintf(", overridden on %d", overridden)
	}
	switch {
	case service.Disable:
		n.State = graph.Disabled
	case failed > 0 || state.fault != nil:
		n.State = graph.Blocked
	case deployed == desired:
		n.State = graph.Ready
	}
	return n
}

// setOf returns the ServiceSet of a MultiClusterService among those of a cluster, nil if there is none, and the others.
func setOf(mcs *v1alpha1.MultiClusterService, sets []*v1alpha1.ServiceSet) (own *v1alpha1.ServiceSet, others []*v1alpha1.ServiceSet) {
	for _, set := range sets {
		if set.Spec.MultiClusterService == mcs.Name {
			own = set
		} else {
			others = append(others, set)
		}
	}
	return own, others
}

// lists tells whether a ServiceSet has a service.
func lists(set *v1alpha1.ServiceSet, key client.ObjectKey) bool {
	return slices.ContainsFunc(set.Spec.Services, func(e v1alpha1.ServiceWithValues) bool { return serviceset.ServiceKey(e.Namespace, e.Name) == key })
}

// phaseAt returns the state of a service on a cluster. One that runs in another version than the desired one is Provisioning.
func phaseAt(key client.ObjectKey, service *v1alpha1.Service, set *v1alpha1.ServiceSet) v1alpha1.ServicePhase {
	if set == nil {
		return v1alpha1.ServiceStatePending
	}
	for i := range set.Spec.Services {
		e := &set.Spec.Services[i]
		if serviceset.ServiceKey(e.Namespace, e.Name) != key {
			continue
		}
		phase := phasesOf(set)[key]
		other := service.Template != "" && service.Template != e.Template || service.Version != "" && service.Version != e.Version
		if other && phase == v1alpha1.ServiceStateDeployed {
			return v1alpha1.ServiceStateProvisioning
		}
		return phase
	}
	return v1alpha1.ServiceStatePending
}

func sortNodes(g *graph.Graph) {
	slices.SortFunc(g.Nodes, func(a, b graph.Node) int { return strings.Compare(a.ID, b.ID) })
}
