package serviceset

import (
	"cmp"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// cycles returns the groups of services that depend on each other, each as a shortest cycle through its first service,
// ordered by keys.
func (g *graph) cycles() []Cycle {
	component := components(g.len(), g.dependencies)
	members := make(map[int32][]int32)
	for i, c := range component {
		members[c] = append(members[c], int32(i))
	}
	var groups [][]int32
	for _, group := range members {
		if len(group) > 1 || slices.Contains(g.dependencies(group[0]), group[0]) {
			groups = append(groups, group)
		}
	}
	slices.SortFunc(groups, func(a, b []int32) int { return cmp.Compare(a[0], b[0]) })
	cycles := make([]Cycle, len(groups))
	for i, group := range groups {
		cycles[i].Path = g.path(group[0], component)
		for _, n := range group {
			cycles[i].Services = append(cycles[i].Services, g.key(n))
		}
	}
	return cycles
}

// path returns a shortest way from a service back to itself inside of its component. Among ways of the same length, the
// one is taken whose services come first.
func (g *graph) path(start int32, component []int32) []client.ObjectKey {
	from := map[int32]int32{}
	for queue := []int32{start}; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		for _, n := range slices.Sorted(slices.Values(g.dependencies(at))) {
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
