package serviceset

import (
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// cycles returns the groups of services that depend on each other, each as a shortest cycle through its first service,
// ordered by keys.
func (g *graph) cycles() []Cycle {
	var cycles []Cycle
	for rest := g.order; len(rest) > 0; {
		end := 1
		for end < len(rest) && g.component[rest[end]] == g.component[rest[0]] {
			end++
		}
		group := rest[:end]
		rest = rest[end:]
		if len(group) == 1 && !slices.Contains(g.dependencies(group[0]), group[0]) {
			continue
		}
		group = slices.Sorted(slices.Values(group))
		cycle := Cycle{Path: g.path(group[0])}
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
func (g *graph) path(start int32) []client.ObjectKey {
	from := map[int32]int32{}
	for queue := []int32{start}; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		for _, n := range g.dependencies(at) {
			if _, seen := from[n]; seen || g.component[n] != g.component[start] {
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
