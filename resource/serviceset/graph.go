package serviceset

import (
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// graph is services and what they depend on. Nodes are numbers, in the order in which the services are listed.
type graph struct {
	services []listing
	index    map[client.ObjectKey]int32
	broken   []bool // depends on something absent

	first  []int32 // where a node's dependencies begin in edges
	edges  []int32
	absent []AbsentDependency

	layered []int32 // what order has returned
}

// listing is a service as somebody lists it.
type listing struct {
	key     client.ObjectKey
	service *v1alpha1.Service // must not be changed
	owner   *Owner
	double  bool // the owner lists it again; the first one counts
}

// listings adds what an owner lists to a list.
func listings(list []listing, o *Owner) []listing {
	for i := range o.Services {
		list = append(list, listing{key: o.Services[i].Key(), service: &o.Services[i], owner: o})
	}
	return list
}

// newGraph makes a graph of services, whose list it takes over. Of those with the same key, the first one counts. A service depends on
// those that it names, and on those of the owners that come before its own.
func newGraph(list []listing, owners *precedence) *graph {
	g := &graph{services: list[:0], index: make(map[client.ObjectKey]int32, len(list))}
	edges := 0
	for _, s := range list {
		if i, ok := g.index[s.key]; ok {
			g.services[i].double = g.services[i].double || g.services[i].owner == s.owner
			continue
		}
		g.index[s.key] = int32(g.len())
		g.services = append(g.services, s)
		edges += len(s.service.DependsOn)
	}
	g.connect(edges, owners)
	return g
}

func (g *graph) connect(edges int, owners *precedence) {
	g.first = make([]int32, 1, g.len()+1)
	g.edges = make([]int32, 0, edges)
	g.broken = make([]bool, g.len())
	for i := range g.services {
		for _, d := range g.services[i].service.DependsOn {
			key := d.Key()
			target, ok := g.index[key]
			if !ok {
				g.broken[i] = true
				g.absent = append(g.absent, AbsentDependency{Service: g.key(int32(i)), DependsOn: key})
				continue
			}
			g.edges = append(g.edges, target)
		}
		for _, o := range owners.first(&g.services[i]) {
			g.edges = slices.AppendSeq(g.edges, g.counted(o))
		}
		g.first = append(g.first, int32(len(g.edges)))
	}
}

func (g *graph) len() int { return len(g.services) }

func (g *graph) key(i int32) client.ObjectKey { return g.services[i].key }

// dependencies returns the nodes that a node depends on directly.
func (g *graph) dependencies(i int32) []int32 { return g.edges[g.first[i]:g.first[i+1]] }

// order returns the nodes so that each comes after all that it depends on. Nodes of a cycle, and what depends on them, are
// left out. It is computed once.
func (g *graph) order() []int32 {
	if g.layered != nil {
		return g.layered
	}
	dependents := make([][]int32, g.len())
	missing := make([]int, g.len())
	order := make([]int32, 0, g.len())
	for i := range int32(g.len()) {
		for _, d := range g.dependencies(i) {
			dependents[d] = append(dependents[d], i)
		}
		if missing[i] = len(g.dependencies(i)); missing[i] == 0 {
			order = append(order, i)
		}
	}
	for done := 0; done < len(order); done++ {
		for _, d := range dependents[order[done]] {
			missing[d]--
			if missing[d] == 0 {
				order = append(order, d)
			}
		}
	}
	g.layered = order
	return order
}
