package inspector_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/operatorkit/operatorkit/operator/inspector/graph"
)

// hover moves the pointer onto the middle of an element.
func (b *browser) hover(id string) {
	b.t.Helper()
	middle := eval[[]float64](b, fmt.Sprintf(`(() => {
		const element = document.getElementById(%q);
		element.scrollIntoView({ block: "center", inline: "center" });
		const r = element.getBoundingClientRect();
		return [r.x + r.width / 2, r.y + r.height / 2];
	})()`, id))
	b.moveTo(middle[0], middle[1])
}

func (b *browser) moveTo(x, y float64) {
	b.t.Helper()
	within(b, "move the pointer", chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, x, y))
}

// traced waits until these nodes are traced, and nothing else, and returns the edges that are.
func (b *browser) traced(nodes ...string) []string {
	b.t.Helper()
	b.until(fmt.Sprintf("%v are traced", nodes), fmt.Sprintf(
		`[...document.querySelectorAll(".graph .node.traced")].map(n => n.id).sort().join(" ") === %q`, strings.Join(ids(nodes...), " ")))
	edges := eval[[]string](b, `[...document.querySelectorAll(".graph .edge.traced")].map(e => e.dataset.from + " " + e.dataset.to)`)
	slices.Sort(edges)
	return edges
}

// ids are the sorted IDs of the elements of nodes.
func ids(nodes ...string) []string {
	var all []string
	for _, n := range nodes {
		all = append(all, graph.ElementID("", n))
	}
	slices.Sort(all)
	return all
}

// opacity is how opaque a node is drawn.
func (b *browser) opacity(node string) float64 {
	b.t.Helper()
	return eval[float64](b, fmt.Sprintf(`+getComputedStyle(document.getElementById(%q)).opacity`, graph.ElementID("", node)))
}

func TestPointerAndFocusTraceWhatANodeWaitsFor(t *testing.T) {
	w := startDrawing(t, parts, site("home", "database", "progressing"))
	b := w.open(objectPath("home"))
	b.shows("Parts of home")
	b.shows("holds up what it leads to")

	want := []string{"graph-node-database graph-node-shop", "graph-node-shop graph-node-front"}
	b.hover(graph.ElementID("", "front"))
	if diff := cmp.Diff(want, b.traced("front", "shop", "database")); diff != "" {
		t.Errorf("edges that are traced (-want +got):\n%s", diff)
	}
	if dimmed, clear := b.opacity("cache"), b.opacity("shop"); dimmed > 0.5 || clear < 1 {
		t.Errorf("the opacity is %v of what has nothing to do with it, and %v of what has", dimmed, clear)
	}
	b.shows("shop is not there")
	b.shows("Waits for shop (waiting), database (progressing)")
	b.moveTo(5, 5)
	b.traced()
	if got := b.opacity("cache"); got < 1 {
		t.Errorf("the opacity is %v after the pointer has gone", got)
	}

	// With the keyboard: Tab goes to the picture, the arrow keys go on in it, and Tab leaves it.
	eval[bool](b, `document.querySelector("nav[aria-label=Graphs] a:last-child").focus() || true`)
	b.press("\t")
	if got := eval[string](b, "document.activeElement.id"); got != "graph-node-database" && got != "graph-node-cache" {
		t.Errorf("Tab goes to %q, want a node of the first column", got)
	}
	b.press(kb.ArrowRight)
	b.traced("shop", "database")
	b.press(kb.ArrowRight)
	if diff := cmp.Diff(want, b.traced("front", "shop", "database")); diff != "" {
		t.Errorf("edges that are traced for the focus (-want +got):\n%s", diff)
	}
	b.press("\t")
	b.traced()
	if eval[bool](b, `document.activeElement.closest(".graph") !== null`) {
		t.Error("Tab does not leave the picture")
	}

	// What waits for nothing shows its neighbours, and dims nothing.
	b.hover(graph.ElementID("", "cache"))
	b.until("its edge is near", `[...document.querySelectorAll(".graph .edge.near")].map(e => e.id).join() === "graph-edge-cache:shop"`)
	if got := b.opacity("front"); got < 1 {
		t.Errorf("the opacity is %v although nothing is waited for", got)
	}
}

func TestGraphChangesWithoutAReloadAndKeepsFocusAndScroll(t *testing.T) {
	// A chain that is wider than the page, at the end of which is what the site says.
	chain := func(_ context.Context, site *corev1.ConfigMap) ([]*graph.Graph, error) {
		g := &graph.Graph{Name: "chain", Title: "Chain"}
		for i := range 12 {
			n := graph.Node{ID: fmt.Sprintf("n%02d", i), Label: fmt.Sprintf("service-%d", i), State: graph.Ready}
			if i > 0 {
				n.DependsOn = []string{fmt.Sprintf("n%02d", i-1)}
			}
			g.Nodes = append(g.Nodes, n)
		}
		g.Nodes[11].State, g.Nodes[11].WaitsFor = graph.State(site.Data["last"]), []string{"n10"}
		if site.Data["more"] != "" {
			g.Nodes = append(g.Nodes[1:], graph.Node{ID: "a", Label: "first", State: graph.Ready}, graph.Node{ID: "n01b", Label: "another", DependsOn: []string{"a"}})
		}
		return []*graph.Graph{g}, nil
	}
	w := startDrawing(t, chain, site("home", "last", "waiting"))
	b := w.open(objectPath("home"))
	b.stay()
	b.shows("Live")
	eval[bool](b, `document.getElementById("graph-node-n11").focus() || true`)
	b.traced("n11", "n10")
	eval[bool](b, `document.querySelector(".words").open = true`)
	scrolled := eval[float64](b, `document.getElementById("graph-picture").scrollLeft`)
	if scrolled < 500 {
		t.Fatalf("the picture is scrolled to %v: the node with the focus can't be seen", scrolled)
	}

	w.put(site("home", "last", "blocked"))
	b.until("the new state is shown", `document.getElementById("graph-node-n11").classList.contains("blocked")`)
	b.traced("n11", "n10")
	w.put(site("home", "last", "blocked", "more", "yes"))
	b.until("other nodes are shown", `document.getElementById("graph-node-a") !== null && document.getElementById("graph-node-n00") === null`)
	b.traced("n11", "n10")
	b.stayed()
	if got := eval[string](b, "document.activeElement.id"); got != "graph-node-n11" {
		t.Errorf("the focus went to %q", got)
	}
	if got := eval[float64](b, `document.getElementById("graph-picture").scrollLeft`); got < scrolled-250 {
		t.Errorf("the picture was scrolled from %v to %v", scrolled, got)
	}
	if !eval[bool](b, `document.querySelector(".words").open`) {
		t.Error("the words were closed")
	}
}

func TestScriptInAGraphDoesNotRun(t *testing.T) {
	const script = `"><img src=x onerror="window.pwned=1"><script>window.pwned=1</script></svg><svg onload=window.pwned=1>`
	w := startDrawing(t, hostileGraph(script), site("home"))
	b := w.open(objectPath("home"))
	for _, node := range []string{"other", script} {
		id := graph.ElementID("", node)
		b.hover(id)
		b.until("it is traced", fmt.Sprintf(`document.getElementById(%q).classList.contains("traced")`, id))
		b.until("it is told of", `document.querySelector("#graph-detail strong") !== null`)
		b.hasNoForeignElements()
	}
	w.put(site("home", "changed", "yes"))
	b.until("the page is up to date", `document.querySelectorAll(".record").length == 2`)
	b.hasNoForeignElements()
	b.wait(500 * time.Millisecond)
	if eval[bool](b, "window.pwned === 1") {
		t.Error("a script of a graph ran")
	}
}

// sixty draws 60 services, with long names.
func sixty(context.Context, *corev1.ConfigMap) ([]*graph.Graph, error) {
	g := &graph.Graph{Name: "services", Title: "Sixty services"}
	for i := range 60 {
		n := graph.Node{
			ID: fmt.Sprint("n", i), Label: fmt.Sprintf("platform-service-number-%d-with-a-long-name", i), State: graph.States()[i%7],
			Versions: []string{"1.14.2", "1.15.0", "1.17.1"}, Group: "team-platform", Message: strings.Repeat("because ", 20),
		}
		for j := 1; j <= i%4 && i > 8; j++ {
			n.DependsOn = append(n.DependsOn, fmt.Sprint("n", (i*31+j*17)%i))
		}
		g.Nodes = append(g.Nodes, n)
	}
	return []*graph.Graph{g}, nil
}

func TestSixtyNodesAreReadableOnADeskAndOnAPhone(t *testing.T) {
	w := startDrawing(t, sixty, site("home"))
	b := w.open(objectPath("home"))
	for _, size := range [][2]int64{{1280, 900}, {360, 740}} {
		within(b, "resize", chromedp.EmulateViewport(size[0], size[1]))
		b.visit(objectPath("home"))
		if nodes := eval[int](b, `document.querySelectorAll(".graph .node").length`); nodes != 60 {
			t.Errorf("%v: %d nodes are drawn", size, nodes)
		}
		if wide := eval[int64](b, "document.documentElement.scrollWidth"); wide > size[0] {
			t.Errorf("%v: the page is %d pixels wide", size, wide)
		}
		if !eval[bool](b, `(p => p.scrollWidth > p.clientWidth && p.clientHeight < innerHeight)(document.getElementById("graph-picture"))`) {
			t.Errorf("%v: the picture does not scroll in its box", size)
		}
		// The size of text on the screen is that of its font times how much the picture is shrunk.
		smallest := eval[float64](b, `Math.min(...[...document.querySelectorAll(".graph text")].map(t => parseFloat(getComputedStyle(t).fontSize) * t.getScreenCTM().a))`)
		if smallest < 10 {
			t.Errorf("%v: text is %v pixels high", size, smallest)
		}
		outside := eval[[]string](b, `[...document.querySelectorAll(".graph .node")].flatMap(n => {
			const card = n.querySelector(".card").getBoundingClientRect();
			return [...n.querySelectorAll("text")].filter(t => t.getBoundingClientRect().right > card.right).map(t => t.textContent);
		})`)
		if len(outside) > 0 {
			t.Errorf("%v: texts run out of their nodes: %q", size, outside)
		}
	}
}

func TestGraphsAreChosenByTheirTabs(t *testing.T) {
	w := startDrawing(t, parts, site("home", "database", "ready"))
	b := w.open(objectPath("home"))
	b.shows("Parts of home")
	within(b, "choose the other one", chromedp.Click(chromedp.CSS(`nav[aria-label=Graphs] a:not([aria-current])`)))
	b.until("the other one is shown", `document.getElementById("graph-node-eu") !== null`)
	b.stay()
	b.shows("Live")
	w.put(site("home", "database", "blocked"))
	b.until("the page is up to date", `document.querySelectorAll(".record").length == 2`)
	b.stayed()
	if !eval[bool](b, `document.getElementById("graph-node-eu") !== null`) {
		t.Error("with the change another graph is shown")
	}
}
