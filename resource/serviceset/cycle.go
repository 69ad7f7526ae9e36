package serviceset

import (
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// cycles returns the groups of services that depend on each other, each as a shortest cycle through its first service,
// ordered by keys.
func (g *graph) cycles() []Cycle {
	component := components(g.len(), g.dependencies)
	members := make(map[int32][]int32)
	for i, c := range component {
		members[c] = append(members[c], int32(i))
	}
	var cycles []Cycle
	for _, group := range members {
		if len(group) == 1 && !slices.Contains(g.dependencies(group[0]), group[0]) {
			continue
		}
		slices.SortFunc(group, func(a, b int32) int { return v1alpha1.CompareKeys(g.key(a), g.key(b)) })
		cycle := Cycle{Path: g.path(group[0], component)}
		for _, i := range group {
			cycle.Services = append(cycle.Services, g.key(i))
		}
		cycles = append(cycles, cycle)
	}
	slices.SortFunc(cycles, func(a, b Cycle) int { return v1alpha1.CompareKeys(a.Services[0], b.Services[0]) })
	return cycles
}

// path returns a shortest way from a service back to itself inside of its component. Among ways of the same length, the
// one is taken whose services come first.
func (g *graph) path(start int32, component []int32) []client.ObjectKey {
	from := map[int32]int32{}
	for queue := []int32{start}; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		next := slices.Clone(g.dependencies(at))
		slices.SortFunc(next, func(a, b int32) int { return v1alpha1.CompareKeys(g.key(a), g.key(b)) })
		for _, n := range next {
			if _, seen := from[n]; seen || component[n] != component[start] {
				continue
			}
			from[n] = at
			if n == start {
				return g.walkBack(start, from)
			}
			queue = append(queue, n)
		}
	}
	return nil
}

func (g *graph) walkBack(start int32, from map[int32]int32) []client.ObjectKey {
	path := []client.ObjectKey{g.key(start)}
	for at := from[start]; at != start; at = from[at] {
		path = append(path, g.key(at))
	}
	path = append(path, g.key(start))
	slices.Reverse(path)
	return path
}
