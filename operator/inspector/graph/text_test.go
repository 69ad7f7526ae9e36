package graph_test

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/operatorkit/operatorkit/operator/inspector/graph"
)

// The files in testdata are made anew by go test ./operator/inspector/graph -run Golden -update.
var update = flag.Bool("update", false, "write the files in testdata anew")

// troubled is a graph with a cycle and hostile texts.
func troubled() *graph.Graph {
	return &graph.Graph{Name: `quotes " and \`, Title: `Title "quoted" <b> & \N`, Nodes: []graph.Node{
		{ID: `a "b"`, Label: `back\slash "quoted" &lt;`, State: graph.Blocked, Message: "line\nbreak", DependsOn: []string{"c"}},
		{ID: "c", Label: "end", State: "odd", DependsOn: []string{`a "b"`, "c"}},
		{ID: "d", Label: "1. first", State: graph.Waiting, WaitsFor: []string{"c"}, Versions: []string{"<script>", "`md`"}},
	}}
}

func TestGoldenTexts(t *testing.T) {
	for name, g := range map[string]*graph.Graph{"services": services(), "troubled": troubled(), "empty": {}} {
		for format, ending := range map[string]string{"dot": ".dot", "mermaid": ".mmd"} {
			file := filepath.Join("testdata", name+ending)
			got := written(t, func(w io.Writer) error { return formats[format](g, w) })
			if *update {
				failOn(t, os.WriteFile(file, []byte(got), 0o644))
			}
			want, err := os.ReadFile(file)
			failOn(t, err)
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", file, diff)
			}
		}
	}
}

var (
	dotQuoted     = regexp.MustCompile(`"(?:[^"\\\n]|\\.)*"`)
	dotLine       = regexp.MustCompile(`^(digraph Q \{|\}|\t(graph|node|edge|Q|Q -> Q)( \[\w+=(Q|\w+)(, \w+=(Q|\w+))*\])?;)$`)
	mermaidQuoted = regexp.MustCompile(`"(?:[\pL\p{Nd} \-.,·→/]|#[0-9]+;|<br/>)*"`)
	mermaidLine   = regexp.MustCompile(`^(---|title: T|flowchart LR|  n\d+[\[({>/]{1,2}Q[\])}/]{1,2}:::[a-z]+|  n\d+ (-->|==>|-\. Q \.->) n\d+|  classDef [\w #:,;-]+)$`)
	mermaidTitle  = regexp.MustCompile(`(?m)^title: "(?:[^"\\<>&\n]|\\["\\bfnrt]|\\u[0-9a-f]{4})*"$`)
)

// checkLines fails the test when a line is none of those that are written.
func checkLines(t rapid.TB, text string, line *regexp.Regexp) {
	t.Helper()
	for l := range strings.Lines(text) {
		if l = strings.TrimSuffix(l, "\n"); !line.MatchString(l) {
			t.Fatalf("there is a line %q in\n%s", l, text)
		}
	}
}

// checkDOT fails the test when anything but what is in quotation marks comes from a text.
func checkDOT(t rapid.TB, g *graph.Graph) {
	t.Helper()
	text := written(t, g.DOT)
	ids := map[string]bool{}
	for _, n := range g.Nodes {
		ids[n.ID] = true
	}
	checkLines(t, dotQuoted.ReplaceAllString(text, "Q"), dotLine)
	nodes := map[string]bool{}
	for _, found := range regexp.MustCompile(`(?m)^\t("(?:[^"\\\n]|\\.)*") \[label`).FindAllStringSubmatch(text, -1) {
		nodes[found[1]] = true
	}
	if len(nodes) != len(ids) {
		t.Fatalf("there are %d nodes, want %d:\n%s", len(nodes), len(ids), text)
	}
}

// checkMermaid fails the test when anything but what is in quotation marks comes from a text.
func checkMermaid(t rapid.TB, g *graph.Graph) {
	t.Helper()
	text := mermaidTitle.ReplaceAllString(written(t, g.Mermaid), "title: T")
	checkLines(t, mermaidQuoted.ReplaceAllString(text, "Q"), mermaidLine)
}

func TestAnyTextGivesDOTAndMermaidWithNothingInIt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := anyGraph().Draw(t, "graph")
		checkDOT(t, g)
		checkMermaid(t, g)
	})
}

func TestMermaidTakesNothingForAList(t *testing.T) {
	for _, label := range []string{"1. first", "- item", "`code`", "www.x.y"} {
		text := written(t, (&graph.Graph{Nodes: []graph.Node{{Label: label}}}).Mermaid)
		if strings.Contains(text, `"1. `) || strings.Contains(text, `"- `) || strings.Contains(text, "`") {
			t.Errorf("%q is written as it is:\n%s", label, text)
		}
	}
}

func BenchmarkSVG(b *testing.B) {
	for _, count := range []int{60, 500, 2000} {
		b.Run(fmt.Sprint(count), func(b *testing.B) { benchmark(b, sparse(count)) })
	}
	b.Run("chain of 2000 with an edge to every tenth before", func(b *testing.B) { benchmark(b, dense(2000, 10)) })
	b.Run("400 that all depend on 400", func(b *testing.B) { benchmark(b, bipartite(400)) })
}

func benchmark(b *testing.B, g *graph.Graph) {
	b.ReportAllocs()
	for b.Loop() {
		if err := g.SVG(io.Discard, graph.SVGOptions{}); err != nil {
			b.Fatal(err)
		}
	}
}

// sparse is a graph in which each node depends on up to three before it.
func sparse(count int) *graph.Graph {
	g := &graph.Graph{}
	for i := range count {
		n := graph.Node{ID: fmt.Sprint(i), Label: fmt.Sprint("service-", i), Versions: []string{"1.0.0", "1.1.0"}}
		for j := 0; j < i%4 && j < i; j++ {
			n.DependsOn = append(n.DependsOn, fmt.Sprint((i*7919+j*104729)%i))
		}
		g.Nodes = append(g.Nodes, n)
	}
	return g
}

// dense is a chain in which each node depends on every so manieth one before it, too.
func dense(count, every int) *graph.Graph {
	g := &graph.Graph{}
	for i := range count {
		n := graph.Node{ID: fmt.Sprint(i)}
		for j := i - 1; j >= 0; j -= every {
			n.DependsOn = append(n.DependsOn, fmt.Sprint(j))
		}
		g.Nodes = append(g.Nodes, n)
	}
	return g
}

func bipartite(count int) *graph.Graph {
	g := &graph.Graph{}
	var all []string
	for i := range count {
		all = append(all, fmt.Sprint("a", i))
		g.Nodes = append(g.Nodes, graph.Node{ID: all[i]}, graph.Node{ID: fmt.Sprint("b", i)})
	}
	for i := range g.Nodes {
		if i%2 == 1 {
			g.Nodes[i].DependsOn = all
		}
	}
	return g
}
