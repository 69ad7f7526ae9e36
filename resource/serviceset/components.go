package serviceset

// components returns the strongly connected components of a graph of n nodes: the same number for nodes that can reach
// each other. Nodes that next does not lead to by themselves have a number of their own. The order has the nodes component by
// component, each component after all that it leads to. It is Tarjan's algorithm, O(n + edges), with a stack of its own, because
// chains of dependencies may be long.
func components(n int, next func(int32) []int32) (component, order []int32) {
	t := tarjan{
		next:      next,
		component: make([]int32, n),
		order:     make([]int32, 0, n),
		low:       make([]int32, n),
		number:    make([]int32, n),
		edge:      make([]int32, n),
	}
	for v := range int32(n) {
		if t.number[v] == 0 {
			t.visit(v)
		}
	}
	return t.component, t.order
}

type tarjan struct {
	next      func(int32) []int32
	component []int32 // 0 until it is known, then counted from 1
	order     []int32
	low       []int32 // the lowest number that can be reached
	number    []int32 // the order of the first visit, counted from 1
	edge      []int32 // how many edges of a node were followed
	path      []int32 // the nodes under way
	open      []int32 // the nodes that were visited and have no component yet
	visited   int32
	found     int32
}

func (t *tarjan) visit(root int32) {
	t.enter(root)
	for len(t.path) > 0 {
		v := t.path[len(t.path)-1]
		if next := t.next(v); int(t.edge[v]) < len(next) {
			w := next[t.edge[v]]
			t.edge[v]++
			switch {
			case t.number[w] == 0:
				t.enter(w)
			case t.component[w] == 0:
				t.low[v] = min(t.low[v], t.number[w])
			}
			continue
		}
		t.leave(v)
	}
}

func (t *tarjan) enter(v int32) {
	t.visited++
	t.number[v], t.low[v] = t.visited, t.visited
	t.path = append(t.path, v)
	t.open = append(t.open, v)
}

func (t *tarjan) leave(v int32) {
	t.path = t.path[:len(t.path)-1]
	if len(t.path) > 0 {
		parent := t.path[len(t.path)-1]
		t.low[parent] = min(t.low[parent], t.low[v])
	}
	if t.low[v] != t.number[v] {
		return
	}
	t.found++
	for {
		w := t.open[len(t.open)-1]
		t.open = t.open[:len(t.open)-1]
		t.component[w] = t.found
		t.order = append(t.order, w)
		if w == v {
			return
		}
	}
}
