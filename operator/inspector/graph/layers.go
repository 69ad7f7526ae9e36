package graph

import (
	"cmp"
	"slices"
)

// maxBends is how many bends all edges of a picture may have together. Edges for which none are left go straight, behind
// nodes that stand in their way. The longest go without first.
const maxBends = 20_000

// vertex is something that has a place in a column: a node, or a bend of edges that go on to a further column.
type vertex struct {
	// node is the index of the node, or -1 for a bend.
	node int
	rank int
	// y is the middle, and height how much room it takes.
	y, height float64
	// left and right are the neighbours in the columns next to it.
	left, right []int
}

// layers are what stands in the columns of the nodes that edges join, directly or not.
type layers struct {
	vertices []vertex
	// columns hold vertices from top to bottom, the first column at the left.
	columns [][]int
	// lanes is how many edges that lead back pass below.
	lanes int
	// top and bottom are those of its vertices in the picture.
	top, bottom float64
}

// components returns the nodes that edges join, directly or not: the largest first. Those without edges are in none.
func (n *network) components() (components [][]int) {
	parent := make([]int, len(n.nodes))
	for i := range parent {
		parent[i] = i
	}
	var root func(v int) int
	root = func(v int) int {
		if parent[v] != v {
			parent[v] = root(parent[v])
		}
		return parent[v]
	}
	joined := make([]bool, len(n.nodes))
	for _, e := range n.edges {
		a, b := root(e.from), root(e.to)
		parent[max(a, b)] = min(a, b)
		joined[e.from], joined[e.to] = true, true
	}
	at := map[int]int{}
	for v := range n.nodes {
		r := root(v)
		if _, ok := at[r]; !ok && joined[v] {
			at[r] = len(components)
			components = append(components, nil)
		}
		if joined[v] {
			components[at[r]] = append(components[at[r]], v)
		}
	}
	slices.SortStableFunc(components, func(a, b []int) int { return cmp.Compare(len(b), len(a)) })
	return components
}

// bends are the vertices that each edge passes, by the index of the edge.
type bends map[int][]int

// newLayers puts the nodes of each component into columns, with bends in the columns that their edges pass. Edges from one
// node share bends.
func newLayers(n *network, nodeHeight, bendHeight float64) ([]*layers, bends) {
	components := n.components()
	all := make([]*layers, len(components))
	home, place := make([]int, len(n.nodes)), make([]int, len(n.nodes))
	for c, nodes := range components {
		all[c] = &layers{}
		for _, v := range nodes {
			home[v], place[v] = c, all[c].add(vertex{node: v, rank: n.rank[v], height: nodeHeight})
		}
	}
	passed, left := bends{}, maxBends
	shared := map[[2]int]int{}
	for _, i := range n.byLength() {
		e := &n.edges[i]
		l := all[home[e.from]]
		if e.back {
			l.lanes++
			continue
		}
		if left -= n.length(e) - 1; left < 0 {
			continue
		}
		at := place[e.from]
		for rank := n.rank[e.from] + 1; rank < n.rank[e.to]; rank++ {
			key := [2]int{e.from, rank}
			next, ok := shared[key]
			if !ok {
				next = l.add(vertex{node: -1, rank: rank, height: bendHeight})
				shared[key] = next
				l.link(at, next)
			}
			passed[i] = append(passed[i], next)
			at = next
		}
		l.link(at, place[e.to])
	}
	return all, passed
}

// byLength returns the edges, the shortest first.
func (n *network) byLength() []int {
	order := make([]int, len(n.edges))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(n.length(&n.edges[a]), n.length(&n.edges[b])) })
	return order
}

// length is how many columns further an edge ends.
func (n *network) length(e *edge) int { return n.rank[e.to] - n.rank[e.from] }

func (l *layers) add(v vertex) int {
	for len(l.columns) <= v.rank {
		l.columns = append(l.columns, nil)
	}
	l.vertices = append(l.vertices, v)
	l.columns[v.rank] = append(l.columns[v.rank], len(l.vertices)-1)
	return len(l.vertices) - 1
}

func (l *layers) link(a, b int) {
	l.vertices[a].right = append(l.vertices[a].right, b)
	l.vertices[b].left = append(l.vertices[b].left, a)
}
