package graph_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/operatorkit/operatorkit/operator/inspector/graph"
)

func TestEachNodeIsDrawnOnceWithinThePictureAndNoTwoOverlap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := graphs(25).Draw(t, "graph")
		p := draw(t, g)
		if len(p.nodes) != len(g.Nodes) || len(p.order) != len(g.Nodes) {
			t.Fatalf("%d of %d nodes are drawn", len(p.nodes), len(g.Nodes))
		}
		for id, a := range p.nodes {
			if a.x < 0 || a.y < 0 || a.x+a.width > p.width || a.y+a.height > p.height {
				t.Fatalf("%s leaves the picture", id)
			}
			for other, b := range p.nodes {
				if id < other && a.x < b.x+b.width && b.x < a.x+a.width && a.y < b.y+b.height && b.y < a.y+a.height {
					t.Fatalf("%s and %s overlap", id, other)
				}
			}
		}
	})
}

func TestEdgesGoForwardButThoseThatAreMarked(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := draw(t, graphs(25).Draw(t, "graph"))
		for _, e := range p.edges {
			if from, to := p.nodes[e.from], p.nodes[e.to]; !e.is("back") && from.x+from.width >= to.x {
				t.Fatalf("%s -> %s does not go forward", e.from, e.to)
			}
		}
	})
}

func TestThereIsAnEdgeForEachDependencyAndForEachWaiting(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := graphs(15).Draw(t, "graph")
		p := draw(t, g)
		exists := func(id string) bool {
			return slices.ContainsFunc(g.Nodes, func(n graph.Node) bool { return n.ID == id })
		}
		depends, waiting := map[string]bool{}, 0
		for _, n := range g.Nodes {
			for _, d := range n.DependsOn {
				if exists(d) {
					depends[nodeID(d)+" "+nodeID(n.ID)] = true
				}
			}
			for _, w := range n.WaitsFor {
				if !exists(w) || w == n.ID {
					continue
				}
				waiting++
				if !slices.ContainsFunc(p.edges, func(e drawnEdge) bool {
					joins := e.from == nodeID(w) && e.to == nodeID(n.ID) || e.to == nodeID(w) && e.from == nodeID(n.ID)
					return joins && e.is("waits") && slices.Contains(e.waits, nodeID(n.ID))
				}) {
					t.Fatalf("no edge tells that %s waits for %s", n.ID, w)
				}
			}
		}
		for _, e := range p.edges {
			if e.is("only") == depends[e.from+" "+e.to] {
				t.Fatalf("%s -> %s is %q", e.from, e.to, e.class)
			}
			delete(depends, e.from+" "+e.to)
			waiting -= len(e.waits)
		}
		if len(depends) > 0 || waiting != 0 {
			t.Fatalf("no edges for %v; %d nodes too many or too few wait", depends, waiting)
		}
	})
}

// acyclic tells whether no walk along the edges comes back.
func acyclic(edges []drawnEdge) bool {
	for len(edges) > 0 {
		left := slices.DeleteFunc(slices.Clone(edges), func(e drawnEdge) bool {
			return !slices.ContainsFunc(edges, func(before drawnEdge) bool { return before.to == e.from })
		})
		if len(left) == len(edges) {
			return false
		}
		edges = left
	}
	return true
}

func TestCyclesAreMarkedAndNothingElse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := graphs(12).Draw(t, "graph")
		p := draw(t, g)
		var dependencies, forward []drawnEdge
		for _, e := range p.edges {
			if e.is("only") {
				continue
			}
			dependencies = append(dependencies, e)
			if !e.is("cycle") {
				forward = append(forward, e)
			}
		}
		if !acyclic(forward) {
			t.Fatalf("a cycle has no marked edge: %v", forward)
		}
		if acyclic(dependencies) != (len(forward) == len(dependencies)) {
			t.Fatalf("%d of %d edges are marked", len(dependencies)-len(forward), len(dependencies))
		}
		if g.HasCycle() == acyclic(dependencies) {
			t.Fatalf("it says %t about whether there is a cycle", g.HasCycle())
		}
	})
}

type point struct{ x, y float64 }

// points are points along a path, close to each other.
func points(t rapid.TB, path string) []point {
	t.Helper()
	const steps = 16
	commands := strings.FieldsFunc(path, func(r rune) bool { return r >= 'A' && r <= 'Z' })
	found := []point{{}}
	for _, letter := range path {
		if letter < 'A' || letter > 'Z' {
			continue
		}
		var n []float64
		for _, text := range strings.Fields(commands[0]) {
			number, err := strconv.ParseFloat(text, 64)
			if err != nil {
				t.Fatal(err)
			}
			n = append(n, number)
		}
		commands = commands[1:]
		from := found[len(found)-1]
		var control []point
		switch letter {
		case 'M':
			found = []point{{n[0], n[1]}}
			continue
		case 'H':
			control = []point{from, {n[0], from.y}}
		case 'V':
			control = []point{from, {from.x, n[0]}}
		case 'Q':
			control = []point{from, {n[0], n[1]}, {n[2], n[3]}}
		case 'C':
			control = []point{from, {n[0], n[1]}, {n[2], n[3]}, {n[4], n[5]}}
		default:
			t.Fatalf("%q in path %q", letter, path)
		}
		for i := 1; i <= steps; i++ {
			found = append(found, bezier(control, float64(i)/steps))
		}
	}
	return found
}

// bezier is de Casteljau's way to a point of a curve.
func bezier(control []point, at float64) point {
	for len(control) > 1 {
		next := make([]point, len(control)-1)
		for i := range next {
			next[i] = point{control[i].x + (control[i+1].x-control[i].x)*at, control[i].y + (control[i+1].y-control[i].y)*at}
		}
		control = next
	}
	return control[0]
}

func TestNoEdgeRunsThroughANodeOrLeavesThePicture(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := draw(t, graphs(15).Draw(t, "graph"))
		for _, e := range p.edges {
			for _, at := range points(t, e.line) {
				if at.x < 0 || at.y < 0 || at.x > p.width || at.y > p.height {
					t.Fatalf("%s -> %s leaves the picture at %v", e.from, e.to, at)
				}
				for id, n := range p.nodes {
					if at.x > n.x && at.x < n.x+n.width && at.y > n.y && at.y < n.y+n.height {
						t.Fatalf("%s -> %s runs through %s at %v", e.from, e.to, id, at)
					}
				}
			}
		}
	})
}

func TestEdgesBeginAndEndAtTheirNodes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := draw(t, graphs(15).Draw(t, "graph"))
		for _, e := range p.edges {
			from, to, line := p.nodes[e.from], p.nodes[e.to], points(t, e.line)
			if want := (point{from.x + from.width, from.y + from.height/2}); line[0] != want {
				t.Fatalf("%s -> %s begins at %v, want %v", e.from, e.to, line[0], want)
			}
			const head = 8
			if want := (point{to.x - head, to.y + to.height/2}); line[len(line)-1] != want {
				t.Fatalf("%s -> %s ends at %v, want %v", e.from, e.to, line[len(line)-1], want)
			}
		}
	})
}

// crossings counts the pairs of edges between the same two columns that cross.
func (p *picture) crossings() (count int) {
	for i, a := range p.edges {
		for _, b := range p.edges[:i] {
			a1, a2, b1, b2 := p.nodes[a.from], p.nodes[a.to], p.nodes[b.from], p.nodes[b.to]
			if a1.x == b1.x && a2.x == b2.x && (a1.y-b1.y)*(a2.y-b2.y) < 0 {
				count++
			}
		}
	}
	return count
}

func TestWhatCanBeDrawnWithoutCrossingsIs(t *testing.T) {
	// A tree whose nodes have IDs in an order that says nothing.
	tree := &graph.Graph{}
	for i := range 40 {
		n := graph.Node{ID: fmt.Sprintf("n%d", i*17%40), Label: "n"}
		if i > 0 {
			n.DependsOn = []string{fmt.Sprintf("n%d", (i-1)/3*17%40)}
		}
		tree.Nodes = append(tree.Nodes, n)
	}
	for name, g := range map[string]*graph.Graph{"tree": tree, "services": services()} {
		if n := draw(t, g).crossings(); n > 0 {
			t.Errorf("%s: %d pairs of edges cross", name, n)
		}
	}
}

func TestKeyboardGoesColumnByColumn(t *testing.T) {
	p := draw(t, services())
	if !slices.IsSortedFunc(p.order, func(a, b string) int {
		if p.nodes[a].x != p.nodes[b].x {
			return int(p.nodes[a].x - p.nodes[b].x)
		}
		return int(p.nodes[a].y - p.nodes[b].y)
	}) {
		t.Errorf("the order is %v", p.order)
	}
}
