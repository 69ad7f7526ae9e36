package graph_test

import (
	"encoding/xml"
	"errors"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/operatorkit/operatorkit/operator/inspector/graph"
)

// formats are all that a graph can be written as.
var formats = map[string]func(*graph.Graph, io.Writer) error{
	"svg": func(g *graph.Graph, w io.Writer) error { return g.SVG(w, graph.SVGOptions{}) },
	"standalone": func(g *graph.Graph, w io.Writer) error {
		return g.SVG(w, graph.SVGOptions{Standalone: true, ID: "own"})
	},
	"dot":     (*graph.Graph).DOT,
	"mermaid": (*graph.Graph).Mermaid,
}

func TestOrderOfNodesAndReferencesDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := graphs(15).Draw(t, "graph")
		if len(g.Nodes) > 1 && rapid.Bool().Draw(t, "IDs twice") {
			g.Nodes[0].ID = g.Nodes[1].ID
		}
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		before := map[string]string{}
		for name, write := range formats {
			before[name] = written(t, func(w io.Writer) error { return write(g, w) })
		}
		shuffle(random, g.Nodes)
		for _, n := range g.Nodes {
			shuffle(random, n.DependsOn)
			shuffle(random, n.WaitsFor)
		}
		for name, write := range formats {
			if diff := cmp.Diff(before[name], written(t, func(w io.Writer) error { return write(g, w) })); diff != "" {
				t.Fatalf("%s (-before +after):\n%s", name, diff)
			}
		}
	})
}

func shuffle[T any](random *rand.Rand, s []T) {
	random.Shuffle(len(s), func(i, j int) { s[i], s[j] = s[j], s[i] })
}

func TestDrawingChangesNothing(t *testing.T) {
	g := services()
	for name, write := range formats {
		failOn(t, write(g, io.Discard))
		if diff := cmp.Diff(services(), g); diff != "" {
			t.Errorf("%s (-before +after):\n%s", name, diff)
		}
	}
}

// anyGraph generates graphs of which every text may be anything.
func anyGraph() *rapid.Generator[*graph.Graph] {
	return rapid.Custom(func(t *rapid.T) *graph.Graph {
		text := anything()
		texts := rapid.SliceOfN(text, 0, 3)
		ids := rapid.SliceOfN(text, 1, 4).Draw(t, "ids")
		g := &graph.Graph{Name: text.Draw(t, "name"), Title: text.Draw(t, "title")}
		for _, id := range ids {
			g.Nodes = append(g.Nodes, graph.Node{
				ID: id, Label: text.Draw(t, "label"), Versions: texts.Draw(t, "versions"), State: graph.State(text.Draw(t, "state")),
				Message: text.Draw(t, "message"), Group: text.Draw(t, "group"),
				DependsOn: rapid.SliceOfN(rapid.SampledFrom(ids), 0, 3).Draw(t, "dependsOn"), WaitsFor: rapid.SliceOfN(rapid.SampledFrom(ids), 0, 2).Draw(t, "waitsFor"),
			})
		}
		return g
	})
}

// The elements and attributes of pictures. A text that is not escaped would add to them, or break the XML.
var (
	drawnElements   = []string{"desc", "g", "path", "rect", "svg", "text", "title"}
	drawnAttributes = []string{"aria-hidden", "aria-label", "aria-labelledby", "class", "d", "data-from", "data-to", "data-waits", "height", "id", "role",
		"rx", "tabindex", "transform", "viewBox", "width", "x", "xmlns", "y"}
)

// checkSVG fails the test when a picture is not well-formed XML, or has in it what no picture has.
func checkSVG(t rapid.TB, g *graph.Graph) {
	t.Helper()
	for _, options := range []graph.SVGOptions{{}, {Standalone: true}} {
		text := written(t, func(w io.Writer) error { return g.SVG(w, options) })
		if !utf8.ValidString(text) {
			t.Fatalf("not UTF-8: %q", text)
		}
		ids := map[string]bool{}
		decoder := xml.NewDecoder(strings.NewReader(text))
		for {
			token, err := decoder.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%v:\n%s", err, text)
			}
			start, ok := token.(xml.StartElement)
			if !ok {
				continue
			}
			if !slices.Contains(drawnElements, start.Name.Local) && (start.Name.Local != "style" || !options.Standalone) {
				t.Fatalf("there is an element %q:\n%s", start.Name.Local, text)
			}
			for _, a := range start.Attr {
				if !slices.Contains(drawnAttributes, a.Name.Local) {
					t.Fatalf("there is an attribute %q:\n%s", a.Name.Local, text)
				}
				if a.Name.Local == "id" && (ids[a.Value] || strings.ContainsFunc(a.Value, func(r rune) bool { return r <= ' ' })) {
					t.Fatalf("the ID %q is there twice, or has spaces:\n%s", a.Value, text)
				}
				ids[a.Value] = ids[a.Value] || a.Name.Local == "id"
			}
		}
	}
}

func TestAnyTextGivesAWellFormedPictureWithNothingInIt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { checkSVG(t, anyGraph().Draw(t, "graph")) })
}

func FuzzTextsAreNeverMarkup(f *testing.F) {
	for _, text := range hostile {
		f.Add(text, text, text)
	}
	f.Fuzz(func(t *testing.T, id, label, other string) {
		g := &graph.Graph{Name: id, Title: label, Nodes: []graph.Node{
			{ID: id, Label: label, Versions: []string{other, label, id}, State: graph.State(other), Message: other, Group: label},
			{ID: other, Label: other, DependsOn: []string{id}, WaitsFor: []string{id}, Message: id},
		}}
		checkSVG(t, g)
		checkDOT(t, g)
		checkMermaid(t, g)
	})
}

func TestIDsOfElementsAreDifferentWhateverThoseOfTheNodesAre(t *testing.T) {
	g := &graph.Graph{}
	for _, id := range []string{"a", "a-title", "a-desc", "a:title", "a.3atitle", "a b", "a.20b", "", "-", "edge-a", "node-a"} {
		g.Nodes = append(g.Nodes, graph.Node{ID: id, DependsOn: []string{"a", "a:a", "-"}})
	}
	checkSVG(t, g)
	if got := len(draw(t, g).nodes); got != len(g.Nodes) {
		t.Errorf("%d nodes are drawn, want %d", got, len(g.Nodes))
	}
}

func TestPictureSaysOfEachNodeAllThereIs(t *testing.T) {
	p := draw(t, &graph.Graph{Nodes: []graph.Node{
		{ID: "a", Label: "cert-manager", State: graph.Progressing, Versions: []string{"1.14.2", "1.15.0", "1.15.0"}, Group: "base"},
		{ID: "b", Label: "ingress <1>", State: graph.Waiting, Message: "cert-manager is at 1.14.2", DependsOn: []string{"a", "absent"}, WaitsFor: []string{"a", "absent"}},
		{ID: "c", Label: "odd", State: "odd"},
	}})
	type said struct {
		class, title, description string
		texts, waits              []string
	}
	got := map[string]said{}
	for id, n := range p.nodes {
		got[id] = said{n.class, n.title, n.description, n.texts, n.waits}
	}
	want := map[string]said{
		"graph-node-a": {"progressing", "cert-manager", "progressing; versions 1.14.2 → 1.15.0; of base", []string{"cert-manager", "1.14.2 → 1.15.0", "base"}, []string{}},
		"graph-node-b": {"waiting", "ingress <1>", "waiting; depends on cert-manager; waits for cert-manager; cert-manager is at 1.14.2", []string{"ingress <1>"}, []string{"graph-node-a"}},
		"graph-node-c": {"unknown", "odd", "unknown", []string{"odd"}, []string{}},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(said{})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestLongTextsAreCutAndWholeInTheTitle(t *testing.T) {
	long := strings.Repeat("a-long-name-", 20)
	p := draw(t, &graph.Graph{Nodes: []graph.Node{{
		ID: "a", Label: long, Group: long, Versions: []string{"1.0.0-" + long[:12], "1.1.0-" + long[:12], "1.2.0-" + long[:12]},
	}}})
	n := p.nodes["graph-node-a"]
	if n.title != long || !strings.Contains(n.description, "of "+long) {
		t.Errorf("the whole is not there: %q, %q", n.title, n.description)
	}
	if n.width > 250 {
		t.Errorf("the node is %v wide", n.width)
	}
	for _, text := range n.texts {
		if short := utf8.RuneCountInString(text); short > 40 || !strings.HasPrefix(text, "1.0.0") && !strings.HasPrefix(text, "a-long-name-") || !strings.Contains(text, "…") {
			t.Errorf("%q is not cut well", text)
		}
	}
}

func TestVersionsBetweenGoBeforeTheFirstAndTheLastDo(t *testing.T) {
	p := draw(t, &graph.Graph{Nodes: []graph.Node{{ID: "a", Versions: []string{"1.14.2-beta.1", "1.15.0-beta.2", "1.17.1-rc.1"}}}})
	if diff := cmp.Diff([]string{"", "1.14.2-beta.1 → … → 1.17.1-rc.1"}, p.nodes["graph-node-a"].texts); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestStatesDifferInMoreThanColour(t *testing.T) {
	icons := map[string]graph.State{}
	for _, s := range graph.States() {
		icon := s.Icon()
		if same, known := icons[icon]; known || icon == "" {
			t.Errorf("%s looks like %s: %q", s, same, icon)
		}
		icons[icon] = s
	}
	if graph.State("odd").Icon() != graph.Unknown.Icon() {
		t.Error("a state that is not known does not look so")
	}
}

func TestPictureThatStandsAloneHasItsColoursForLightAndDark(t *testing.T) {
	text := written(t, func(w io.Writer) error { return services().SVG(w, graph.SVGOptions{Standalone: true}) })
	if strings.Contains(text, "var(--") {
		t.Error("colours come from elsewhere")
	}
	for _, want := range []string{"<title>Services of cluster platform/prod</title>", "prefers-color-scheme: dark", "<style>"} {
		if !strings.Contains(text, want) {
			t.Errorf("it lacks %q", want)
		}
	}
	if embedded := svgOf(t, services()); strings.Contains(embedded, "style") {
		t.Error("what is part of a page has a style of its own")
	}
	if !strings.Contains(graph.Style(), "var(--panel)") {
		t.Error("the style of a page does not take its colours")
	}
}

func TestStatesDoNotMoveAnything(t *testing.T) {
	g := services()
	before := draw(t, g)
	for i := range g.Nodes {
		g.Nodes[i].State = graph.Ready
	}
	after := draw(t, g)
	for id := range maps.Keys(before.nodes) {
		if a, b := before.nodes[id], after.nodes[id]; a.x != b.x || a.y != b.y || a.width != b.width {
			t.Errorf("%s moved", id)
		}
	}
}
