package serviceset

import (
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// precedence is which owners of a cluster come before which, because MultiClusterServices depend on each other.
type precedence struct {
	earlier map[*Owner][]*Owner
	lists   map[*Owner]map[client.ObjectKey]bool // what those list that come before others
}

func newPrecedence(owners []*Owner) *precedence {
	p := &precedence{earlier: map[*Owner][]*Owner{}, lists: map[*Owner]map[client.ObjectKey]bool{}}
	for _, o := range owners {
		for _, other := range owners {
			if !o.dependsOn(other) {
				continue
			}
			p.earlier[o] = append(p.earlier[o], other)
			if p.lists[other] == nil {
				p.lists[other] = make(map[client.ObjectKey]bool, len(other.Services))
				for i := range other.Services {
					p.lists[other][other.Services[i].Key()] = true
				}
			}
		}
	}
	return p
}

// dependsOn tells whether another owner comes before this one.
func (o *Owner) dependsOn(other *Owner) bool {
	return o != other && other.Kind == v1alpha1.MultiClusterServiceKind && slices.Contains(o.DependsOn, other.Key.Name)
}

// first returns the owners whose services have to be ready before a service is touched. A service that one of them lists too is one of
// theirs in this, whoever owns it: it waits for no more than theirs do.
func (p *precedence) first(l *listing) []*Owner {
	all := p.earlier[l.owner]
	var found []*Owner
	for _, o := range all {
		theirs := slices.ContainsFunc(all, func(lister *Owner) bool { return p.lists[lister][l.key] && !lister.dependsOn(o) })
		if !theirs {
			found = append(found, o)
		}
	}
	return found
}

// counted returns the nodes of what an owner lists, without what is disabled: nobody waits for that, because it is left as it is.
func (g *graph) counted(o *Owner) []int32 {
	nodes, known := g.nodes[o]
	if known {
		return nodes
	}
	for i := range o.Services {
		if at := g.index[o.Services[i].Key()]; !o.Services[i].Disable && !g.services[at].service.Disable {
			nodes = append(nodes, at)
		}
	}
	g.nodes[o] = nodes
	return nodes
}

// withdrawn returns those owners who want nothing any more.
func withdrawn(owners []*Owner) []*Owner {
	return slices.DeleteFunc(slices.Clone(owners), func(o *Owner) bool { return len(o.Services) > 0 })
}

// goesBefore tells whether an owner's services leave before those of another. Those that depend on each other leave together.
func (o *Owner) goesBefore(other *Owner) bool { return o.dependsOn(other) && !other.dependsOn(o) }

// dependents returns the owners of which something is still there that goes before an owner's services.
func (c *cluster) dependents(owner *Owner) []*Owner {
	var found []*Owner
	for _, o := range c.owners {
		if o.goesBefore(owner) && len(c.present(o)) > 0 {
			found = append(found, o)
		}
	}
	return found
}

// hasDependentSets tells whether there is a ServiceSet of an owner whose services go before those of another.
func (c *cluster) hasDependentSets(owner *Owner) bool {
	return slices.ContainsFunc(c.owners, func(o *Owner) bool { return o.Set != nil && o.goesBefore(owner) })
}

// present returns what an owner's ServiceSet has, and what is being removed from it and not gone yet.
func (c *cluster) present(o *Owner) []client.ObjectKey {
	if o.Set == nil {
		return nil
	}
	var keys []client.ObjectKey
	for i := range o.Set.Spec.Services {
		keys = append(keys, o.Set.Spec.Services[i].Key())
	}
	removing := stillThere(o.Set, c.index)
	for i := range removing {
		keys = append(keys, removing[i].Key())
	}
	return keys
}

// nameOwners lists MultiClusterServices in a sentence.
func nameOwners(owners []*Owner) []string {
	names := make([]string, len(owners))
	for i, o := range owners {
		names[i] = o.Key.Name
	}
	return names
}
