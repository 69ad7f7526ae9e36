package graph

import (
	"bytes"
	"fmt"
	"io"
	"strings"
)

// DOT writes the graph in the language of Graphviz, from left to right. The IDs of the nodes are those of the graph; their
// classes and those of the edges are the ones of SVG. Text that is not UTF-8 is shown by its bytes.
//
// The only error is that of w.
func (g *Graph) DOT(w io.Writer) error {
	n := newNetwork(g)
	var b bytes.Buffer
	fmt.Fprintf(&b, "digraph %s {\n", dotID(g.Name))
	fmt.Fprintf(&b, "\tgraph [rankdir=LR, label=%s, labelloc=t, fontname=\"sans-serif\"];\n", dotText(g.Title))
	b.WriteString("\tnode [fontname=\"sans-serif\", fontsize=12, fontcolor=\"#1b2027\"];\n\tedge [color=\"#8b95a1\"];\n")
	for i := range n.nodes {
		node := &n.nodes[i]
		look := looks[node.State.Known()]
		fmt.Fprintf(&b, "\t%s [label=%s, class=%q, shape=%s, style=%q, color=%q, fillcolor=%q, tooltip=%s];\n", dotID(node.ID),
			dotText(node.lines()...), node.State.Known(), look.shape, look.style, look.line, look.fill, dotText(n.about(node)...))
	}
	for i := range n.edges {
		e := &n.edges[i]
		fmt.Fprintf(&b, "\t%s -> %s%s;\n", dotID(n.nodes[e.from].ID), dotID(n.nodes[e.to].ID), dotAttributes(e))
	}
	b.WriteString("}\n")
	_, err := w.Write(b.Bytes())
	return err
}

func dotAttributes(e *edge) string {
	switch {
	case e.cyclic():
		return ` [class="cycle", style=dashed, color="#b3261e", constraint=false]`
	case !e.depends:
		return ` [class="waits only", style=dotted, color="#865500", penwidth=2, constraint=false]`
	case e.waits():
		return ` [class="waits", color="#865500", penwidth=2]`
	}
	return ""
}

// dotID makes an ID of any text, of different ones different ones. Within quotation marks only these are special, and a
// backslash before one.
func dotID(text string) string {
	return `"` + clean(dotEscapes.Replace(text)) + `"`
}

// dotText makes a text of several lines to be shown. In those backslashes and the entities of HTML have a meaning too.
func dotText(lines ...string) string {
	cleaned := make([]string, len(lines))
	for i, line := range lines {
		cleaned[i] = dotEscapes.Replace(strings.ReplaceAll(clean(line), "&", "&amp;"))
	}
	return `"` + strings.Join(cleaned, `\n`) + `"`
}

var dotEscapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`)

// lines are what a node shows, the state in words among it.
func (n *Node) lines() []string {
	lines := []string{n.Label}
	if versions := arrows(n.Versions); versions != "" {
		lines = append(lines, versions)
	}
	if n.Group != "" {
		return append(lines, string(n.State.Known())+" · "+n.Group)
	}
	return append(lines, string(n.State.Known()))
}

// about says what is not shown of a node.
func (n *network) about(node *Node) []string {
	about := []string{node.Label}
	if waits := n.labels(node.WaitsFor); waits != "" {
		about = append(about, "waits for "+waits)
	}
	if node.Message != "" {
		about = append(about, node.Message)
	}
	return about
}
