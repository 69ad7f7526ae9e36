package servicesets

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
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
	for _, r := range state.reports {
		for _, earlier := range state.reports {
			if earlier.owner.Kind == v1alpha1.MultiClusterServiceKind && slices.Contains(r.owner.DependsOn, earlier.owner.Key.Name) {
				r.standOn(earlier, whole)
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

// standOn draws that the services of a MultiClusterService come after those of another: what stands on nothing of its own list stands on
// what nothing stands on in the other's.
func (r *report) standOn(earlier *report, whole *graph.Graph) {
	under := map[client.ObjectKey]bool{}
	for i := range earlier.services {
		for _, d := range earlier.services[i].dependsOn {
			under[d.Key()] = true
		}
	}
	for i := range r.services {
		s := &r.services[i]
		at := slices.IndexFunc(whole.Nodes, func(n graph.Node) bool { return n.ID == s.key.String() && n.Group == r.owner.String() })
		if at < 0 || len(s.dependsOn) > 0 {
			continue
		}
		for j := range earlier.services {
			key := earlier.services[j].key
			if under[key] || key == s.key {
				continue
			}
			whole.Nodes[at].DependsOn = append(whole.Nodes[at].DependsOn, key.String())
			if slices.Contains(s.waitsFor, key) {
				whole.Nodes[at].WaitsFor = append(whole.Nodes[at].WaitsFor, key.String())
			}
		}
	}
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
		n.DependsOn = append(n.DependsOn, d.Key().String())
	}
	for _, key := range s.waitsFor {
		// What another MultiClusterService comes first with is drawn by standOn.
		if s.reason != v1alpha1.ReasonWaiting || slices.Contains(n.DependsOn, key.String()) {
			n.WaitsFor = append(n.WaitsFor, key.String())
		}
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
	services := mcs.Spec.ServiceSpec.Services
	for i, on := range talliesOf(mcs, places, at) {
		g.Nodes = append(g.Nodes, on.node(&services[i], state.fault != nil))
	}
	sortNodes(g)
	graphs := []*graph.Graph{g}
	if state.management != nil {
		graphs = append(graphs, state.management.graph())
	}
	order, err := s.order(ctx, mcs)
	if len(order.Nodes) > 1 {
		graphs = append(graphs, order)
	}
	return graphs, err
}

// order draws a MultiClusterService with those that it depends on, and those that depend on it.
func (s *services) order(ctx context.Context, mcs *v1alpha1.MultiClusterService) (*graph.Graph, error) {
	g := &graph.Graph{Name: "order", Title: "What MultiClusterService " + mcs.Name + " comes after, and before"}
	all, err := s.allServices(ctx)
	if err != nil {
		return g, err
	}
	names, _ := serviceset.Dependencies(mcs, all) // what is wrong stands in the conditions
	names = append(append(names, mcs.Name), serviceset.Dependents(mcs.Name, all)...)
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		n := graph.Node{ID: name, Label: name, State: graph.Blocked, Message: "does not exist"}
		if at := slices.IndexFunc(all, func(one v1alpha1.MultiClusterService) bool { return one.Name == name }); at >= 0 {
			one := &all[at]
			n.State, n.DependsOn, n.Message = stateOfAll(one), one.Spec.DependsOn, "deployed on "+one.Status.ClustersDeployed+" clusters"
		}
		g.Nodes = append(g.Nodes, n)
	}
	return g, nil
}

// stateOfAll says how a MultiClusterService is on all clusters together.
func stateOfAll(mcs *v1alpha1.MultiClusterService) graph.State {
	is := func(condition string) bool { return meta.IsStatusConditionTrue(mcs.Status.Conditions, condition) }
	switch {
	case mcs.DeletionTimestamp != nil:
		return graph.Removing
	case is(v1alpha1.ConditionBlocked):
		return graph.Blocked
	case is(v1alpha1.ConditionReady):
		return graph.Ready
	case is(v1alpha1.ConditionProgressing):
		return graph.Progressing
	}
	return graph.Waiting
}

// tally is on how many clusters a service is how.
type tally struct{ desired, deployed, failed, overridden int }

// talliesOf counts the clusters for each service of a MultiClusterService, from what state managers report. sets are all of each cluster,
// each of which is looked at once.
func talliesOf(mcs *v1alpha1.MultiClusterService, places []place, sets map[client.ObjectKey][]*v1alpha1.ServiceSet) []tally {
	services := mcs.Spec.ServiceSpec.Services
	tallies := make([]tally, len(services))
	on := newPhaser(services)
	for i := range places {
		if !places[i].desired {
			continue
		}
		set, others := setOf(mcs, sets[client.ObjectKey{Namespace: places[i].Namespace, Name: places[i].Name}])
		phases := on.of(set)
		for j := range services {
			tallies[j].count(phases[j], services[j].Key(), others)
		}
	}
	return tallies
}

// count counts a cluster. others are the sets of other owners on it.
func (t *tally) count(phase v1alpha1.ServicePhase, key client.ObjectKey, others []*v1alpha1.ServiceSet) {
	if phase == v1alpha1.ServiceStatePending && slices.ContainsFunc(others, func(other *v1alpha1.ServiceSet) bool { return lists(other, key) }) {
		t.overridden++
		return
	}
	t.desired++
	switch phase {
	case v1alpha1.ServiceStateDeployed:
		t.deployed++
	case v1alpha1.ServiceStateFailed:
		t.failed++
	}
}

// node draws the service on all clusters together.
func (t tally) node(service *v1alpha1.Service, faulty bool) graph.Node {
	key := service.Key()
	n := graph.Node{ID: key.String(), Label: nameOf(key), State: graph.Progressing}
	for _, d := range service.DependsOn {
		n.DependsOn = append(n.DependsOn, d.Key().String())
	}
	n.Versions = []string{label(v1alpha1.ServiceVersion{Template: service.Template, Version: service.Version})}
	n.Message = fmt.Sprintf("deployed on %d of %s", t.deployed, statuses.Count(t.desired, "cluster"))
	if t.failed > 0 {
		n.Message += fmt.Sprintf(", failed on %d", t.failed)
	}
	if t.overridden > 0 {
		n.Message += fmt.Sprintf(", overridden on %d", t.overridden)
	}
	switch {
	case service.Disable:
		n.State = graph.Disabled
	case t.failed > 0 || faulty:
		n.State = graph.Blocked
	case t.deployed == t.desired:
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
	return slices.ContainsFunc(set.Spec.Services, func(e v1alpha1.ServiceWithValues) bool { return e.Key() == key })
}

// phaser finds out the states of services on one cluster after another. What it holds is used again for the next one.
type phaser struct {
	services []v1alpha1.Service
	// sorted are the places of the services in the order of their keys, in which sets have them.
	sorted   []int
	reported map[client.ObjectKey]v1alpha1.ServicePhase
	entries  map[client.ObjectKey]*v1alpha1.ServiceWithValues
	phases   []v1alpha1.ServicePhase
}

func newPhaser(services []v1alpha1.Service) *phaser {
	p := &phaser{
		services: services, phases: make([]v1alpha1.ServicePhase, len(services)),
		reported: map[client.ObjectKey]v1alpha1.ServicePhase{}, entries: map[client.ObjectKey]*v1alpha1.ServiceWithValues{},
	}
	for i := range services {
		p.sorted = append(p.sorted, i)
	}
	slices.SortFunc(p.sorted, func(i, j int) int { return v1alpha1.CompareKeys(services[i].Key(), services[j].Key()) })
	return p
}

// of returns the states of the services on a cluster, in their order, until it is called again. One that runs in another version than the
// desired one is Provisioning.
func (p *phaser) of(set *v1alpha1.ServiceSet) []v1alpha1.ServicePhase {
	if set != nil && p.inOrder(set) {
		return p.phases
	}
	clear(p.reported)
	clear(p.entries)
	if set != nil {
		addPhases(p.reported, set)
		for i := range set.Spec.Services {
			p.entries[set.Spec.Services[i].Key()] = &set.Spec.Services[i]
		}
	}
	for i := range p.services {
		key := p.services[i].Key()
		p.phases[i] = phaseOf(&p.services[i], p.entries[key], p.reported[key])
	}
	return p.phases
}

// inOrder finds out the states without looking anything up, and tells whether it could: the set lists and reports services in the order of
// their keys, and no others, as sets mostly do.
func (p *phaser) inOrder(set *v1alpha1.ServiceSet) bool {
	entries, states := set.Spec.Services, set.Status.Services
	for _, i := range p.sorted {
		var entry *v1alpha1.ServiceWithValues
		key, reported := p.services[i].Key(), v1alpha1.ServiceStatePending
		if len(entries) > 0 && entries[0].Key() == key {
			entry, entries = &entries[0], entries[1:]
		}
		if len(states) > 0 && states[0].Key() == key {
			reported, states = states[0].State, states[1:]
		}
		p.phases[i] = phaseOf(&p.services[i], entry, reported)
	}
	return len(entries)+len(states)+len(set.Spec.Removing) == 0
}

// phaseOf is the state of a service on a cluster whose set has that entry of it, nil for none, and reports it so.
func phaseOf(service *v1alpha1.Service, entry *v1alpha1.ServiceWithValues, reported v1alpha1.ServicePhase) v1alpha1.ServicePhase {
	if entry == nil {
		return v1alpha1.ServiceStatePending
	}
	other := service.Template != "" && service.Template != entry.Template || service.Version != "" && service.Version != entry.Version
	if other && reported == v1alpha1.ServiceStateDeployed {
		return v1alpha1.ServiceStateProvisioning
	}
	return reported
}

func sortNodes(g *graph.Graph) {
	slices.SortFunc(g.Nodes, func(a, b graph.Node) int { return strings.Compare(a.ID, b.ID) })
}
