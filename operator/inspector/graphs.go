package inspector

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/operatorkit/operatorkit/operator/inspector/graph"
)

// maxGraphs is how many objects have their graphs drawn at once, and the limits of what a page draws: more than that nobody
// reads, and every live page draws again with every change.
const (
	maxGraphs     = 4
	maxDrawnNodes = 500
	maxDrawnEdges = 2000
	// graphPatience is how long the page of an object waits for its graphs, unless it is asked to wait longer.
	graphPatience = time.Second
)

// GraphList is what GET api/v1/graphs answers.
type GraphList struct {
	// Graphs are what the operator draws of the object, in its order. There are none of objects that are gone.
	Graphs []*graph.Graph `json:"graphs"`
}

// graphsOf returns the graphs of an object. When too many are being drawn, it waits.
func (i *Inspector) graphsOf(ctx context.Context, id objectID) ([]*graph.Graph, error) {
	s := i.framework(id.framework)
	if s == nil {
		return nil, errNoObject(id)
	}
	ctx, cancel := context.WithTimeout(ctx, i.config.PlanTimeout)
	defer cancel()
	select {
	case i.graphs <- struct{}{}:
		defer func() { <-i.graphs }()
	case <-ctx.Done():
		return nil, fmt.Errorf("wait until other graphs are drawn: %w", ctx.Err())
	}
	return i.Graphs(ctx, s.framework, id.key)
}

// graphNamed picks a graph, the first one without a name.
func graphNamed(graphs []*graph.Graph, name string) (*graph.Graph, error) {
	var names []string
	for _, g := range graphs {
		if g.Name == name || name == "" {
			return g, nil
		}
		names = append(names, g.Name)
	}
	err := fmt.Errorf("there is no graph %q of this object, but %q", name, names)
	if len(names) == 0 {
		err = errors.New("there are no graphs of this object")
	}
	return nil, refusal{err, http.StatusNotFound}
}

// graphFormats are what a graph is written as, besides JSON.
var graphFormats = map[string]struct {
	contentType string
	write       func(*graph.Graph, *bytes.Buffer) error
}{
	"dot":     {"text/plain; charset=utf-8", func(g *graph.Graph, b *bytes.Buffer) error { return g.DOT(b) }},
	"mermaid": {"text/plain; charset=utf-8", func(g *graph.Graph, b *bytes.Buffer) error { return g.Mermaid(b) }},
	"svg": {"image/svg+xml", func(g *graph.Graph, b *bytes.Buffer) error {
		return g.SVG(b, graph.SVGOptions{Standalone: true})
	}},
}

func (i *Inspector) answerGraphs(w http.ResponseWriter, r *http.Request) {
	values := r.Form
	format, known := graphFormats[values.Get("format")]
	if !known && values.Get("format") != "" {
		i.answer(w, nil, badRequest("format must be dot, mermaid or svg, is %q", values.Get("format")))
		return
	}
	takeLonger(w, r, i.config.PlanTimeout)
	graphs, err := i.graphsOf(r.Context(), idOf(r))
	if err != nil || !known {
		i.answer(w, GraphList{append([]*graph.Graph{}, graphs...)}, err)
		return
	}
	var b bytes.Buffer
	g, err := graphNamed(graphs, values.Get("graph"))
	if err == nil {
		err = format.write(g, &b)
	}
	if err != nil {
		i.answer(w, nil, err)
		return
	}
	w.Header().Set("Content-Type", format.contentType)
	if values.Get("format") == "svg" {
		// On this site the policy would take its style sheet away.
		w.Header().Set("Content-Disposition", `attachment; filename="graph.svg"`)
	}
	// A client that has gone needs no answer.
	_, _ = b.WriteTo(w)
}

// graphsContent is what a page shows of the graphs of an object.
type graphsContent struct {
	// Tabs are all graphs, if there are several.
	Tabs []graphTab
	// Fail says why there is no picture, and Wait is the address of the page that waits for it.
	Fail, Wait string
	// Graph is what is shown.
	Graph *graph.Graph
	// Picture is its drawing. It is empty when there is too much to draw.
	Picture template.HTML
	// Edges is how many dependencies and reasons to wait there are.
	Edges int
	// States are those that its nodes have.
	States []graph.State
	// Waits tells that nodes wait for others.
	Waits bool
	Rows  []graphRow
	// Address is that of the graph in the JSON interface, without the format.
	Address string
}

type graphTab struct {
	Name, Address string
	Current       bool
}

// graphRow is a node in words.
type graphRow struct {
	graph.Node
	// Element is the ID of the element of the node in the picture.
	Element string
	// Waits are the labels of the nodes that it waits for.
	Waits []string
}

// graphsContentOf draws the graph of an object that a request asks for by name, if that does not take longer than patience. It returns
// nil when there is nothing to show.
func (i *Inspector) graphsContentOf(ctx context.Context, id objectID, name string, patience time.Duration) *graphsContent {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	graphs, err := i.graphsOf(ctx, id)
	switch {
	case errors.Is(err, context.DeadlineExceeded) && ctx.Err() != nil && patience < i.config.PlanTimeout:
		return &graphsContent{
			Fail: fmt.Sprintf("It is not drawn after %s.", patience), Wait: Path + "object?" + graphQuery(id, name) + "&wait=true#graphs",
		}
	case apierrors.IsNotFound(err) || err == nil && len(graphs) == 0:
		return nil
	case err != nil:
		return &graphsContent{Fail: err.Error()}
	}
	c := &graphsContent{}
	g, err := graphNamed(graphs, name)
	if len(graphs) > 1 {
		for _, other := range graphs {
			c.Tabs = append(c.Tabs, graphTab{other.Name, Path + "object?" + graphQuery(id, other.Name) + "#graphs", other == g})
		}
	}
	if err != nil {
		c.Fail = err.Error()
		return c
	}
	c.Address = Path + "api/v1/graphs?" + graphQuery(id, g.Name)
	c.draw(g)
	return c
}

func graphQuery(id objectID, name string) string {
	values := url.Values{"framework": {id.framework}, "name": {id.key.Name}, "graph": {name}}
	if id.key.Namespace != "" {
		values.Set("namespace", id.key.Namespace)
	}
	return values.Encode()
}

// draw fills in what is shown of a graph.
func (c *graphsContent) draw(g *graph.Graph) {
	c.Graph = g
	labels := make(map[string]string, len(g.Nodes))
	for _, n := range g.Nodes {
		c.Edges += len(n.DependsOn) + len(n.WaitsFor)
		labels[n.ID] = n.Label
	}
	if len(g.Nodes) > maxDrawnNodes || c.Edges > maxDrawnEdges {
		return
	}
	for _, n := range g.Nodes {
		row := graphRow{Node: n, Element: graph.ElementID("", n.ID)}
		row.State = n.State.Known()
		for _, awaited := range n.WaitsFor {
			if label, there := labels[awaited]; there {
				row.Waits, c.Waits = append(row.Waits, label), true
			}
		}
		c.Rows = append(c.Rows, row)
	}
	slices.SortStableFunc(c.Rows, func(a, b graphRow) int { return cmp.Or(strings.Compare(a.Label, b.Label), strings.Compare(a.ID, b.ID)) })
	c.States = slices.DeleteFunc(graph.States(), func(s graph.State) bool {
		return !slices.ContainsFunc(c.Rows, func(row graphRow) bool { return row.State == s })
	})
	var b bytes.Buffer
	// A buffer takes everything.
	_ = g.SVG(&b, graph.SVGOptions{})
	c.Picture = template.HTML(b.String())
}
