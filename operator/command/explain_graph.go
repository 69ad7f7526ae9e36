package command

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"

	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/operator/inspector"
	"github.com/operatorkit/operatorkit/operator/inspector/graph"
)

// The formats of graphs.
const (
	outputDOT     = "dot"
	outputMermaid = "mermaid"
	outputWords   = "words"
)

// outputGraphs are all of them.
var outputGraphs = []string{outputDOT, outputMermaid, outputWords}

// draws returns what writes a graph in the format that is asked for, and nil when no graph is.
func (o *explainOptions) draws() func(*graph.Graph, io.Writer) error {
	switch o.output.format {
	case outputDOT:
		return (*graph.Graph).DOT
	case outputMermaid:
		return (*graph.Graph).Mermaid
	case outputWords:
		return writeWords
	}
	return nil
}

// writeWords writes a graph as a list of its nodes, each on a line of its own. Control characters, which could drive a terminal, are escaped.
func writeWords(g *graph.Graph, w io.Writer) error {
	nodes, labels := slices.Clone(g.Nodes), map[string]string{}
	for _, n := range nodes {
		labels[n.ID] = n.Label
	}
	slices.SortStableFunc(nodes, func(a, b graph.Node) int {
		return cmp.Or(strings.Compare(a.Group, b.Group), strings.Compare(a.Label, b.Label))
	})
	lines := []string{g.Title}
	for _, n := range nodes {
		line := "  " + n.Label
		if n.Group != "" {
			line = "  " + n.Group + ": " + n.Label
		}
		if len(n.Versions) > 0 {
			line += " " + strings.Join(n.Versions, " → ")
		}
		line += ": " + string(n.State.Known())
		var awaited []string
		for _, id := range n.WaitsFor {
			if label, there := labels[id]; there {
				awaited = append(awaited, label)
			}
		}
		switch {
		case n.Message != "":
			line += ": " + n.Message
		case len(awaited) > 0:
			line += ": waits for " + strings.Join(awaited, ", ")
		}
		lines = append(lines, line)
	}
	if len(nodes) == 0 {
		lines = append(lines, "  nothing")
	}
	for i := range lines {
		lines[i] = plan.Escape(lines[i]) + "\n"
	}
	_, err := io.WriteString(w, strings.Join(lines, ""))
	return err
}

// graph returns the graph of an object with a name, and the first one without a name.
func (a *asker) graph(ctx context.Context, id inspector.ObjectSummary, query url.Values, name string) (*graph.Graph, error) {
	var list inspector.GraphList
	if err := a.get(ctx, "graphs", query, &list); err != nil {
		return nil, err
	}
	object := plan.Object{Kind: cmp.Or(id.Kind, "object"), Namespace: id.Namespace, Name: id.Name}
	var names []string
	for _, g := range list.Graphs {
		if g.Name == name || name == "" {
			return g, nil
		}
		names = append(names, g.Name)
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("the operator at %s draws no graphs of %s (framework %s): text and json tell of it", a.base.Host, object, id.Framework)
	}
	return nil, &usageError{fmt.Errorf("--graph: the operator draws no %q of %s, but %q", name, object, names)}
}
