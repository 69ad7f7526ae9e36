package serviceset

import (
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
		list = append(list, listing{key: keyOf(&o.Services[i]), service: &o.Services[i], owner: o})
	}
	return list
}

// newGraph makes a graph of services, whose list it takes over. Of those with the same key, the first one counts.
func newGraph(list []listing) *graph {
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
	g.connect(edges)
	return g
}

func (g *graph) connect(edges int) {
	g.first = make([]int32, 1, g.len()+1)
	g.edges = make([]int32, 0, edges)
	g.broken = make([]bool, g.len())
	for i := range g.services {
		for _, d := range g.services[i].service.DependsOn {
			key := ServiceKey(d.Namespace, d.Name)
			target, ok := g.index[key]
			if !ok {
				g.broken[i] = true
				g.absent = append(g.absent, AbsentDependency{Service: g.key(int32(i)), DependsOn: key})
				continue
			}
			g.edges = append(g.edges, target)
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
	dependents := g.reverse()
	missing := make([]int32, g.len())
	order := make([]int32, 0, g.len())
	for i := range missing {
		missing[i] = int32(len(g.dependencies(int32(i))))
		if missing[i] == 0 {
			order = append(order, int32(i))
		}
	}
	for done := 0; done < len(order); done++ {
		for _, d := range dependents.of(order[done]) {
			missing[d]--
			if missing[d] == 0 {
				order = append(order, d)
			}
		}
	}
	g.layered = order
	return order
}

// adjacency is edges grouped by the node they begin at.
type adjacency struct{ first, edges []int32 }

func (a adjacency) of(i int32) []int32 { return a.edges[a.first[i]:a.first[i+1]] }

// reverse returns what depends on each node.
func (g *graph) reverse() adjacency {
	first := make([]int32, g.len()+2)
	for _, target := range g.edges {
		first[target+2]++
	}
	for i := 2; i < len(first); i++ {
		first[i] += first[i-1]
	}
	edges := make([]int32, len(g.edges))
	for i := range int32(g.len()) {
		for _, target := range g.dependencies(i) {
			edges[first[target+1]] = i
			first[target+1]++
		}
	}
	return adjacency{first: first[:g.len()+1], edges: edges}
}
