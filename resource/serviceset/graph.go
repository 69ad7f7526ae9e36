package serviceset

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// graph is services and what they depend on. Nodes are numbers.
type graph struct {
	services []*v1alpha1.Service // of each node
	keys     []client.ObjectKey  // of each node
	index    map[client.ObjectKey]int32
	double   []bool // listed more than once; the first one counts
	broken   []bool // depends on something absent

	first  []int32 // where a node's dependencies begin in edges
	edges  []int32
	absent []AbsentDependency
}

// newGraph makes a graph of services. It keeps the services, and changes none.
func newGraph(services []*v1alpha1.Service) *graph {
	g := &graph{
		services: make([]*v1alpha1.Service, 0, len(services)),
		keys:     make([]client.ObjectKey, 0, len(services)),
		index:    make(map[client.ObjectKey]int32, len(services)),
		double:   make([]bool, 0, len(services)),
	}
	count := 0
	for _, s := range services {
		key := keyOf(s)
		if i, ok := g.index[key]; ok {
			g.double[i] = true
			continue
		}
		g.index[key] = int32(len(g.services))
		g.services = append(g.services, s)
		g.keys = append(g.keys, key)
		g.double = append(g.double, false)
		count += len(s.DependsOn)
	}
	g.connect(count)
	return g
}

func (g *graph) connect(edges int) {
	g.first = make([]int32, 1, len(g.services)+1)
	g.edges = make([]int32, 0, edges)
	g.broken = make([]bool, len(g.services))
	for i, s := range g.services {
		for _, d := range s.DependsOn {
			key := ServiceKey(d.Namespace, d.Name)
			target, ok := g.index[key]
			if !ok {
				g.broken[i] = true
				g.absent = append(g.absent, AbsentDependency{Service: g.keys[i], DependsOn: key})
				continue
			}
			g.edges = append(g.edges, target)
		}
		g.first = append(g.first, int32(len(g.edges)))
	}
}

func (g *graph) len() int { return len(g.services) }

// dependencies returns the nodes that a node depends on directly.
func (g *graph) dependencies(i int32) []int32 { return g.edges[g.first[i]:g.first[i+1]] }

// order returns the nodes so that each comes after all that it depends on. Nodes of a cycle, and what depends on them, are
// left out.
func (g *graph) order() []int32 {
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
