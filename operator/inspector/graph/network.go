package graph

import (
	"cmp"
	"slices"
)

// edge joins two nodes. It leads from what is needed to what needs it.
type edge struct {
	from, to int
	// depends tells that to depends on from. Otherwise the edge is there only because one waits for the other.
	depends bool
	// fromWaits and toWaits tell that this end waits for the other one.
	fromWaits, toWaits bool
	// back tells that the edge does not lead from left to right.
	back bool
}

// waits tells whether one end waits for the other.
func (e *edge) waits() bool { return e.fromWaits || e.toWaits }

// HasCycle tells whether nodes depend on each other in a circle, or one on itself.
func (g *Graph) HasCycle() bool {
	return slices.ContainsFunc(newNetwork(g).edges, func(e edge) bool { return e.cyclic() })
}

// network is a graph in a form that does not depend on the order of anything in it.
type network struct {
	// nodes are sorted by ID, of which each is there once.
	nodes []Node
	// edges are sorted by from and then to.
	edges []edge
	// rank is the column of each node, from 0. Edges that are not back lead to a higher rank.
	rank []int
}

func newNetwork(g *Graph) *network {
	n := &network{nodes: slices.Clone(g.Nodes)}
	slices.SortFunc(n.nodes, compareNodes)
	n.nodes = slices.CompactFunc(n.nodes, func(a, b Node) bool { return a.ID == b.ID })
	n.join()
	n.rankNodes()
	return n
}

func compareNodes(a, b Node) int {
	return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Label, b.Label), cmp.Compare(a.State, b.State), cmp.Compare(a.Group, b.Group),
		cmp.Compare(a.Message, b.Message), slices.Compare(a.Versions, b.Versions),
		slices.Compare(slices.Sorted(slices.Values(a.DependsOn)), slices.Sorted(slices.Values(b.DependsOn))),
		slices.Compare(slices.Sorted(slices.Values(a.WaitsFor)), slices.Sorted(slices.Values(b.WaitsFor))))
}

// indexes returns the nodes with these IDs, without those that are not there, each once and in order.
func (n *network) indexes(ids []string) []int {
	var found []int
	for _, id := range ids {
		if i, ok := slices.BinarySearchFunc(n.nodes, id, func(node Node, id string) int { return cmp.Compare(node.ID, id) }); ok {
			found = append(found, i)
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// join makes the edges. Waiting is told by the edge of the dependency, in either direction, and by one of its own if there
// is none.
func (n *network) join() {
	type ends struct{ from, to int }
	at := map[ends]int{}
	edgeOf := func(from, to int) *edge {
		if i, ok := at[ends{from, to}]; ok {
			return &n.edges[i]
		}
		at[ends{from, to}] = len(n.edges)
		n.edges = append(n.edges, edge{from: from, to: to})
		return &n.edges[len(n.edges)-1]
	}
	for to := range n.nodes {
		for _, from := range n.indexes(n.nodes[to].DependsOn) {
			edgeOf(from, to).depends = true
		}
	}
	for waiter := range n.nodes {
		for _, awaited := range n.indexes(n.nodes[waiter].WaitsFor) {
			_, against := at[ends{waiter, awaited}]
			_, along := at[ends{awaited, waiter}]
			switch {
			case waiter == awaited:
			case against && !along:
				edgeOf(waiter, awaited).fromWaits = true
			default:
				edgeOf(awaited, waiter).toWaits = true
			}
		}
	}
	slices.SortFunc(n.edges, func(a, b edge) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to)) })
}

// rankNodes finds the edges that close cycles, and puts each node right of all it depends on: one column further than the
// last of these, or nearer to what depends on it where that makes more edges shorter than longer.
func (n *network) rankNodes() {
	out := make([][]int, len(n.nodes))
	in := make([]int, len(n.nodes))
	for i := range n.edges {
		if e := &n.edges[i]; e.depends {
			out[e.from] = append(out[e.from], i)
			in[e.to]++
		}
	}
	order := n.sort(out, in)
	n.rank = make([]int, len(n.nodes))
	forward := func(v int) []int {
		return slices.DeleteFunc(out[v], func(i int) bool { return n.edges[i].back })
	}
	for _, v := range order {
		out[v] = forward(v)
		for _, i := range out[v] {
			to := n.edges[i].to
			n.rank[to] = max(n.rank[to], n.rank[v]+1)
		}
	}
	for _, v := range slices.Backward(order) {
		if len(out[v]) <= in[v] {
			continue
		}
		nearest := n.rank[n.edges[out[v][0]].to]
		for _, i := range out[v] {
			nearest = min(nearest, n.rank[n.edges[i].to])
		}
		n.rank[v] = nearest - 1
	}
	for i := range n.edges {
		if e := &n.edges[i]; !e.depends {
			e.back = n.rank[e.from] >= n.rank[e.to]
		}
	}
}

// sort returns the nodes so that each comes after all it depends on, and marks the edges that lead back because they close
// a cycle. It begins with the nodes that depend on nothing, so that the edge that is marked is one into where the cycle is
// entered.
func (n *network) sort(out [][]int, in []int) []int {
	const (
		unseen = iota
		open
		done
	)
	state := make([]int8, len(n.nodes))
	order := make([]int, 0, len(n.nodes))
	var visit func(v int)
	visit = func(v int) {
		state[v] = open
		for _, i := range out[v] {
			switch e := &n.edges[i]; state[e.to] {
			case open:
				e.back = true
			case unseen:
				visit(e.to)
			}
		}
		state[v] = done
		order = append(order, v)
	}
	for _, roots := range []bool{true, false} {
		for v := range n.nodes {
			if state[v] == unseen && (in[v] == 0) == roots {
				visit(v)
			}
		}
	}
	slices.Reverse(order)
	return order
}
