package serviceset

import (
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// Resolve works out what an owner's ServiceSet should have now, from what is desired and what the cluster says. It reads
// nothing else and changes nothing; the same input always has the same result. It takes O(services + dependencies +
// templates), and for each version that is desired along a chain O(edges of the chain).
//
// The error is a *GraphError: dependencies that are absent, or that go in circles. Anything else that is wrong with a
// service blocks that service and those that depend on it, and stands in its Decision.
func Resolve(in Input) (*Resolution, error) {
	own := newGraph(pointers(in.Owner.Services))
	if err := own.check(in.Owner.Set); err != nil {
		return nil, err
	}
	c := newCluster(&in, own)
	r := &Resolution{}
	r.decide(c, &in.Owner)
	if in.Owner.Set == nil {
		r.Services = r.ToDeploy
		return r, nil
	}
	kept := r.retire(c, &in.Owner)
	r.Services = merge(in.Owner.Set.Spec.Services, r.ToDeploy, func(i int) bool { return kept[i] })
	return r, nil
}

// check returns what is wrong with dependencies, nil if nothing is.
func (g *graph) check(set *v1alpha1.ServiceSet) error {
	fault := &GraphError{Absent: g.absent}
	if len(g.absent) > 0 && set != nil {
		installed := make(map[client.ObjectKey]bool, len(set.Spec.Services))
		for i := range set.Spec.Services {
			installed[entryKey(&set.Spec.Services[i])] = true
		}
		for i := range fault.Absent {
			fault.Absent[i].Installed = installed[fault.Absent[i].DependsOn]
		}
	}
	if len(g.order()) < g.len() {
		fault.Cycles = g.cycles()
	}
	if len(fault.Absent)+len(fault.Cycles) == 0 {
		return nil
	}
	return fault
}

// decide says what becomes of each service that is desired.
func (r *Resolution) decide(c *cluster, owner *Owner) {
	nodes := c.listed()
	r.Decisions = make([]Decision, 0, len(nodes))
	waits := make([]client.ObjectKey, 0, c.countUnready()) // of all decisions: one list for many short ones
	eligible := 0
	for _, i := range nodes {
		if c.deployable(i, owner) {
			eligible++
		}
	}
	r.Eligible = make([]v1alpha1.Service, 0, eligible)
	r.ToDeploy = make([]v1alpha1.ServiceWithValues, 0, eligible)
	for _, i := range nodes {
		n := &c.nodes[i]
		d := Decision{Service: c.keys[i], Desired: n.goal}
		if n.stored != nil && n.holder == owner {
			d.From = versionOf(n.stored)
		}
		d.To = d.From
		switch {
		case n.owner != owner:
			d.Reason, d.Message = v1alpha1.ReasonOwnedByOther, n.whoHasIt(owner)
			if n.handedOver(owner) {
				d.To = v1alpha1.ServiceVersion{}
			}
		case n.fault != nil:
			d.Reason, d.Message = n.fault.reason, n.fault.message
		case !c.eligible[i]:
			waits = c.wait(i, &d, waits)
		default:
			d = r.deploy(c, n, d)
		}
		r.Decisions = append(r.Decisions, d)
	}
}

// deployable tells whether a service is the owner's and may be touched.
func (c *cluster) deployable(i int32, owner *Owner) bool {
	return c.nodes[i].owner == owner && c.nodes[i].fault == nil && c.eligible[i]
}

// deploy adds an eligible service.
func (r *Resolution) deploy(c *cluster, n *node, d Decision) Decision {
	r.Eligible = append(r.Eligible, *n.desired)
	desired := &r.Eligible[len(r.Eligible)-1]
	desired.Template, desired.Version = n.goal.Template, n.goal.Version
	if desired.Disable {
		d.Reason = v1alpha1.ReasonDisabled
		return d
	}
	p := position{desired: desired, stored: n.stored, state: n.state, ways: c.chains}
	entry, d := p.step()
	if d.To.Template != "" {
		r.ToDeploy = append(r.ToDeploy, entry)
	}
	return d
}

// wait says what a service waits for that must not be touched. It takes the room for that from the end of waits, and returns
// the rest.
func (c *cluster) wait(i int32, d *Decision, waits []client.ObjectKey) []client.ObjectKey {
	before := len(waits)
	waits = c.unready(i, waits)
	d.Reason, d.WaitsFor = v1alpha1.ReasonWaiting, waits[before:len(waits):len(waits)]
	if loop, ok := c.loops[i]; ok {
		d.Reason = v1alpha1.ReasonDependencyCycle
		d.Message = "can't be resolved together with what other owners have on the cluster: " + loop
	}
	return waits
}

// pointers returns pointers to the services of a list.
func pointers(services []v1alpha1.Service) []*v1alpha1.Service {
	list := make([]*v1alpha1.Service, len(services))
	for i := range services {
		list[i] = &services[i]
	}
	return list
}

// listed returns the nodes that the owner lists, by key.
func (c *cluster) listed() []int32 {
	nodes := make([]int32, 0, c.len())
	for i := range c.nodes {
		if c.nodes[i].listed {
			nodes = append(nodes, int32(i))
		}
	}
	slices.SortFunc(nodes, func(a, b int32) int { return compareKeys(c.keys[a], c.keys[b]) })
	return nodes
}
