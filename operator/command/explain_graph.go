package command

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/url"

	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/operator/inspector"
	"github.com/operatorkit/operatorkit/operator/inspector/graph"
)

// The formats of graphs.
const (
	outputDOT     = "dot"
	outputMermaid = "mermaid"
)

// draws returns what writes a graph in the format that is asked for, and nil when no graph is.
func (o *explainOptions) draws() func(*graph.Graph, io.Writer) error {
	switch o.output.format {
	case outputDOT:
		return (*graph.Graph).DOT
	case outputMermaid:
		return (*graph.Graph).Mermaid
	}
	return nil
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
