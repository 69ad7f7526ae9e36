package serviceset

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

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
	r, err := in.resolver()
	if err != nil {
		return nil, err
	}
	return r.Resolution, nil
}

func (in *Input) resolver() (*resolver, error) {
	return newCluster(byPrecedence(&in.Owner, in.Others), in.Templates, in.Chains).resolver(&in.Owner)
}

// resolver works out what one owner's ServiceSet should have.
type resolver struct {
	*cluster
	*Resolution

	owner    *Owner
	touched  []int32            // the nodes that may be touched, by key
	deployed []client.ObjectKey // what of Services is new or may be, by key
}

// resolver works out what the ServiceSet of one of the owners should have. The error is a *GraphError.
func (c *cluster) resolver(owner *Owner) (*resolver, error) {
	own, err := c.own(owner)
	if err != nil {
		return nil, err
	}
	var entries []v1alpha1.ServiceWithValues
	if owner.Set != nil {
		entries = owner.Set.Spec.Services
	}
	stored, unlisted := c.stored(entries)
	size := max(own.len(), len(entries))
	r := &resolver{cluster: c, owner: owner, Resolution: &Resolution{
		Decisions: make([]Decision, 0, size), Services: make([]v1alpha1.ServiceWithValues, 0, size),
	}}
	r.Removing = stillThere(owner.Set, c.index)
	next := int32(0)
	for i := range own.services {
		at, _ := c.find(own.services[i].key, next)
		next = at + 1
		r.listed(at, stored[at])
		stored[at] = nil
	}
	unlisted = append(unlisted, slices.DeleteFunc(stored, func(s *v1alpha1.ServiceWithValues) bool { return s == nil })...)
	if len(unlisted) > 0 {
		for _, s := range unlisted {
			r.unlisted(s)
		}
		sortEntries(r.Services)
		slices.SortFunc(r.Decisions, func(a, b Decision) int { return v1alpha1.CompareKeys(a.Service, b.Service) })
	}
	sortRemovals(r.Removing)
	return r, nil
}

// stored returns the entries of a ServiceSet by their nodes, and those of which nobody lists the service. Of entries with the same key, the
// first one counts.
func (c *cluster) stored(entries []v1alpha1.ServiceWithValues) (byNode, unlisted []*v1alpha1.ServiceWithValues) {
	byNode = make([]*v1alpha1.ServiceWithValues, c.len())
	seen := map[client.ObjectKey]bool{}
	next := int32(0)
	for i := range entries {
		s := &entries[i]
		key := s.Key()
		at, listed := c.find(key, next)
		switch {
		case listed:
			next = at + 1
			byNode[at] = cmp.Or(byNode[at], s)
		case !seen[key]:
			seen[key] = true
			unlisted = append(unlisted, s)
		}
	}
	return byNode, unlisted
}

// own returns the graph of what an owner lists, or what is wrong with it.
func (c *cluster) own(owner *Owner) (*graph, error) {
	own := c.graph
	for _, o := range c.owners {
		if o != owner && len(o.Services) > 0 {
			own = newGraph(listings(make([]listing, 0, len(owner.Services)), owner), &precedence{})
			break
		}
	}
	return own, own.check(owner.Set)
}

// check returns what is wrong with dependencies, nil if nothing is.
func (g *graph) check(set *v1alpha1.ServiceSet) error {
	fault := &GraphError{Absent: slices.SortedFunc(slices.Values(g.absent), func(a, b AbsentDependency) int {
		return cmp.Or(v1alpha1.CompareKeys(a.Service, b.Service), v1alpha1.CompareKeys(a.DependsOn, b.DependsOn))
	})}
	if len(g.absent) > 0 && set != nil {
		installed := make(map[client.ObjectKey]bool, len(set.Spec.Services))
		for i := range set.Spec.Services {
			installed[set.Spec.Services[i].Key()] = true
		}
		for i := range fault.Absent {
			fault.Absent[i].Installed = installed[fault.Absent[i].DependsOn]
		}
	}
	fault.Cycles = g.cycles()
	if len(fault.Absent)+len(fault.Cycles) == 0 {
		return nil
	}
	return fault
}

// listed says what becomes of a service that the owner lists. stored is what its ServiceSet has, nil if it has nothing.
func (r *resolver) listed(i int32, stored *v1alpha1.ServiceWithValues) {
	n := &r.nodes[i]
	d := Decision{Service: n.key, Desired: n.goal}
	switch {
	case n.holder == r.owner:
		d.From = versionOf(n.stored)
	case stored != nil:
		d.From = versionOf(stored)
	}
	d.To = d.From
	switch n.handover(r.owner) {
	case givenUp:
		d.To, stored = v1alpha1.ServiceVersion{}, nil
		d.Reason, d.Message = v1alpha1.ReasonOverridden, n.whoHasIt(r.owner)
	case lending:
		d.Reason, d.Message = v1alpha1.ReasonOverridden, n.whoHasIt(r.owner)
		if fault := r.stuck(n.owner); stored != nil && fault != nil {
			d.Reason = v1alpha1.ReasonHandoverStuck
			d.Message = fmt.Sprintf("stays here until %s takes it over, which can't be done: %s", n.owner, fault)
		}
	case taking:
		r.takeOver(n, d)
		return
	case awaiting:
		d.Reason, d.Message = v1alpha1.ReasonInFlight, n.whoLetsGo()
		r.explainStuck(&d, n.also)
	case own:
		switch {
		case n.fault != nil:
			d.Reason, d.Message = n.fault.reason, n.fault.message
		case !r.eligible[i]:
			r.wait(i, &d)
		default:
			r.touch(i, stored, d)
			return
		}
	}
	r.keep(stored, d)
}

// keep decides that an entry of the ServiceSet, if there is one, stays as it is.
func (r *resolver) keep(stored *v1alpha1.ServiceWithValues, d Decision) {
	if stored != nil {
		r.Services = append(r.Services, *stored)
	}
	r.Decisions = append(r.Decisions, d)
}

// deploy decides on an entry that is new, or may be.
func (r *resolver) deploy(entry v1alpha1.ServiceWithValues, d Decision) {
	r.deployed = append(r.deployed, d.Service)
	r.keep(&entry, d)
}

// touch decides on a service that may be touched.
func (r *resolver) touch(i int32, stored *v1alpha1.ServiceWithValues, d Decision) {
	r.touched = append(r.touched, i)
	n := &r.nodes[i]
	if n.service.Disable {
		d.Reason = v1alpha1.ReasonDisabled
		r.keep(stored, d)
		return
	}
	p := position{desired: n.service, goal: n.goal, stored: n.stored, state: n.state, ways: r.chains, unseen: n.stored != nil && !n.observed()}
	if entry, d := p.step(); d.To.Template != "" {
		r.deploy(entry, d)
	} else {
		r.keep(stored, d)
	}
}

// wait says what a service waits for that must not be touched.
func (r *resolver) wait(i int32, d *Decision) {
	d.Reason, d.WaitsFor = v1alpha1.ReasonWaiting, r.unready(i)
	held := slices.DeleteFunc(r.precedence.first(&r.services[i]), func(o *Owner) bool {
		return !slices.ContainsFunc(r.counted(o), func(at int32) bool { return !r.ready[at] })
	})
	if len(held) > 0 {
		d.Because = fmt.Sprintf("MultiClusterService %s depends on %s", r.owner.Key.Name, strings.Join(nameOwners(held), ", "))
	}
	if loop, ok := r.loops[i]; ok {
		d.Reason = v1alpha1.ReasonDependencyCycle
		d.Message = "can't be resolved together with what other owners have on the cluster: " + loop
	}
}
