package graph_test

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/operatorkit/operatorkit/operator/inspector/graph"
)

// services is a picture as people see it: twelve services of a cluster in the middle of an upgrade.
func services() *graph.Graph {
	node := func(id string, state graph.State, group string, versions []string, dependsOn []string, waitsFor ...string) graph.Node {
		return graph.Node{ID: id, Label: id, State: state, Group: group, Versions: versions, DependsOn: dependsOn, WaitsFor: waitsFor}
	}
	return &graph.Graph{Name: "services", Title: "Services of cluster platform/prod", Nodes: []graph.Node{
		node("cert-manager", graph.Progressing, "base", []string{"1.14.2", "1.15.0", "1.17.1"}, nil),
		node("cilium", graph.Ready, "base", []string{"1.17.4", "1.17.4"}, nil),
		node("ingress-nginx", graph.Waiting, "base", []string{"4.11.0", "4.12.1"}, []string{"cert-manager", "cilium"}, "cert-manager"),
		node("kof-operators", graph.Waiting, "kof", []string{"1.1.0", "1.2.0"}, []string{"cert-manager"}, "cert-manager"),
		node("kof-storage", graph.Waiting, "kof", []string{"1.1.0", "1.2.0"}, []string{"kof-operators", "ingress-nginx"}, "kof-operators", "ingress-nginx"),
		node("kof-collectors", graph.Waiting, "kof", []string{"1.1.0", "1.2.0"}, []string{"kof-storage"}, "kof-storage"),
		node("postgres-operator", graph.Blocked, "data", []string{"1.14.0"}, nil),
		node("shop-database", graph.Waiting, "shop", []string{"16.4", "17.2"}, []string{"postgres-operator"}, "postgres-operator"),
		node("shop", graph.Ready, "shop", []string{"2.9.1"}, []string{"shop-database", "ingress-nginx"}),
		node("old-dashboard", graph.Removing, "kof", []string{"0.9"}, nil, "old-plugin"),
		node("old-plugin", graph.Removing, "kof", []string{"0.9"}, []string{"old-dashboard"}),
		node("velero", graph.Disabled, "base", nil, nil),
	}}
}

// picture is what is drawn in an SVG.
type picture struct {
	width, height float64
	nodes         map[string]drawnNode
	edges         []drawnEdge
	// order are the IDs of the nodes, as a keyboard reaches them.
	order []string
}

type drawnNode struct {
	x, y, width, height float64
	class               string
	waits               []string
	title, description  string
	texts               []string
}

type drawnEdge struct {
	from, to, class string
	waits           []string
	line            string
}

func (e *drawnEdge) is(class string) bool { return slices.Contains(strings.Fields(e.class), class) }

type element struct {
	XMLName  xml.Name
	Attrs    []xml.Attr `xml:",any,attr"`
	Text     string     `xml:",chardata"`
	Children []element  `xml:",any"`
}

func (e *element) attr(name string) string {
	for _, a := range e.Attrs {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

func (e *element) number(name string) float64 {
	n, _ := strconv.ParseFloat(e.attr(name), 64)
	return n
}

func (e *element) walk(visit func(*element)) {
	visit(e)
	for i := range e.Children {
		e.Children[i].walk(visit)
	}
}

// written returns what a graph writes.
func written(t rapid.TB, write func(io.Writer) error) string {
	t.Helper()
	var b bytes.Buffer
	if err := write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func svgOf(t rapid.TB, g *graph.Graph) string {
	t.Helper()
	return written(t, func(w io.Writer) error { return g.SVG(w, graph.SVGOptions{}) })
}

// draw draws a graph and reads the picture.
func draw(t rapid.TB, g *graph.Graph) *picture {
	t.Helper()
	text := svgOf(t, g)
	var root element
	if err := xml.Unmarshal([]byte(text), &root); err != nil {
		t.Fatalf("%v:\n%s", err, text)
	}
	p := &picture{width: root.number("width"), height: root.number("height"), nodes: map[string]drawnNode{}}
	root.walk(func(e *element) {
		switch class := e.attr("class"); {
		case strings.HasPrefix(class, "node "):
			p.add(e)
		case strings.HasPrefix(class, "edge"):
			p.edges = append(p.edges, drawnEdge{e.attr("data-from"), e.attr("data-to"), class, strings.Fields(e.attr("data-waits")), e.Children[0].attr("d")})
		}
	})
	return p
}

func (p *picture) add(e *element) {
	n := drawnNode{class: strings.TrimPrefix(e.attr("class"), "node "), waits: strings.Fields(e.attr("data-waits"))}
	_, _ = fmt.Sscanf(e.attr("transform"), "translate(%f %f)", &n.x, &n.y)
	for _, c := range e.Children {
		switch c.XMLName.Local {
		case "title":
			n.title = c.Text
		case "desc":
			n.description = c.Text
		case "rect":
			n.width, n.height = c.number("width"), c.number("height")
		case "text":
			n.texts = append(n.texts, c.Text)
		}
	}
	p.nodes[e.attr("id")] = n
	p.order = append(p.order, e.attr("id"))
}

// nodeID is the ID of the element of a node whose ID is plain.
func nodeID(id string) string { return "graph-node-" + id }

// graphs generates graphs with plain IDs, cycles among them, and references to nodes that are not there.
func graphs(most int) *rapid.Generator[*graph.Graph] {
	return rapid.Custom(func(t *rapid.T) *graph.Graph {
		count := rapid.IntRange(0, most).Draw(t, "nodes")
		id := rapid.Custom(func(t *rapid.T) string { return fmt.Sprintf("n%d", rapid.IntRange(0, count).Draw(t, "id")) })
		g := &graph.Graph{Name: "g", Title: "G"}
		for i := range count {
			node := graph.Node{
				ID: fmt.Sprintf("n%d", i), Label: rapid.StringN(0, 40, -1).Draw(t, "label"), State: rapid.SampledFrom(graph.States()).Draw(t, "state"),
				DependsOn: rapid.SliceOfN(id, 0, 3).Draw(t, "dependsOn"), WaitsFor: rapid.SliceOfN(id, 0, 1).Draw(t, "waitsFor"),
			}
			if rapid.Bool().Draw(t, "versions") {
				node.Versions = rapid.SliceOfN(rapid.StringMatching(`[0-9]{1,3}\.[0-9]{1,12}`), 1, 3).Draw(t, "versions")
			}
			g.Nodes = append(g.Nodes, node)
		}
		return g
	})
}

// anything generates texts of any bytes, and of what means something to what reads them.
func anything() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 20), func(b []byte) string { return string(b) }),
		rapid.String(),
		rapid.SampledFrom(hostile),
	)
}

// hostile are texts that break out of places where texts are not escaped.
var hostile = []string{
	`"`, `\`, `\"`, `x\`, `"];evil[label="`, "\" --> n9\nclick n0 call alert()", "end", "%%{init: {}}%%", "`**bold**`", "1. first", "- item",
	"</title></svg><script>alert(1)</script>", `"><img src=x onerror=alert(1)>`, "]]>", "<!--", "-->", "&lt;", "&#34;", "#quot;", "\x00", "\xff\xfe", "\u202e", "\ufffe", "a\nb", "\u2028",
}

func failOn(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
