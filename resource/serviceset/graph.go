package serviceset

import (
	"cmp"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// graph is services and what they depend on. Nodes are numbers, in the order of keys.
type graph struct {
	services []listing
	index    map[client.ObjectKey]int32
	broken   []bool // depends on something absent

	first  []int32 // where a node's dependencies begin in edges
	edges  []int32
	absent []AbsentDependency

	component []int32 // the same for nodes that depend on each other
	order     []int32 // nodes of a component together, after all that they depend on

	nodes map[*Owner][]int32 // what counted has returned
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

// newGraph makes a graph of services. Of those with the same key, the first one counts. A service depends on
// those that it names, and on those of the owners that come before its own.
func newGraph(list []listing, owners *precedence) *graph {
	order := make([]int32, len(list))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int { return cmp.Or(v1alpha1.CompareKeys(list[a].key, list[b].key), cmp.Compare(a, b)) })
	g := &graph{services: make([]listing, 0, len(list)), index: make(map[client.ObjectKey]int32, len(list)), nodes: map[*Owner][]int32{}}
	edges := 0
	for _, i := range order {
		s := &list[i]
		if n := g.len(); n > 0 && g.services[n-1].key == s.key {
			first := &g.services[n-1]
			first.double = first.double || first.owner == s.owner
			continue
		}
		g.index[s.key] = int32(g.len())
		g.services = append(g.services, *s)
		edges += len(s.service.DependsOn)
	}
	g.connect(edges, owners)
	g.component, g.order = components(g.len(), g.dependencies)
	return g
}

// find returns the node of a service. The one that is given is looked at first: most lists are in the order of keys.
func (g *graph) find(key client.ObjectKey, first int32) (int32, bool) {
	if int(first) < g.len() && g.services[first].key == key {
		return first, true
	}
	at, ok := g.index[key]
	return at, ok
}

func (g *graph) connect(edges int, owners *precedence) {
	g.first = make([]int32, 1, g.len()+1)
	g.edges = make([]int32, 0, edges)
	g.broken = make([]bool, g.len())
	for i := range g.services {
		begin := len(g.edges)
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
			g.edges = append(g.edges, g.counted(o)...)
		}
		slices.Sort(g.edges[begin:])
		g.edges = g.edges[:begin+len(slices.Compact(g.edges[begin:]))]
		g.first = append(g.first, int32(len(g.edges)))
	}
}

func (g *graph) len() int { return len(g.services) }

func (g *graph) key(i int32) client.ObjectKey { return g.services[i].key }

// dependencies returns the nodes that a node depends on directly, each once and by key.
func (g *graph) dependencies(i int32) []int32 { return g.edges[g.first[i]:g.first[i+1]] }
