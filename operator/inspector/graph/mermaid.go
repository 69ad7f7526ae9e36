package graph

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode"
)

// Mermaid writes the graph as a flowchart of Mermaid, from left to right. The nodes have the classes of their states.
//
// The errors are those of w only.
func (g *Graph) Mermaid(w io.Writer) error {
	n := newNetwork(g)
	var b bytes.Buffer
	if g.Title != "" {
		// A JSON string is one of YAML too. A string can always be encoded.
		title, _ := json.Marshal(clean(g.Title))
		fmt.Fprintf(&b, "---\ntitle: %s\n---\n", title)
	}
	b.WriteString("flowchart LR\n")
	for i := range n.nodes {
		node := &n.nodes[i]
		look := looks[node.State.Known()]
		fmt.Fprintf(&b, "  n%d%s%s%s:::%s\n", i, look.open, mermaidText(node.lines()...), look.closed, node.State.Known())
	}
	for i := range n.edges {
		e := &n.edges[i]
		fmt.Fprintf(&b, "  n%d %s n%d\n", e.from, mermaidArrow(e), e.to)
	}
	for _, s := range States() {
		fmt.Fprintf(&b, "  classDef %s fill:%s,stroke:%s,color:#1b2027%s\n", s, looks[s].fill, looks[s].line, mermaidDashes[s])
	}
	_, err := w.Write(b.Bytes())
	return err
}

var mermaidDashes = map[State]string{
	Blocked: ",stroke-width:3px", Removing: ",stroke-dasharray:6 4", Disabled: ",stroke-dasharray:2 3", Unknown: ",stroke-dasharray:2 3",
}

func mermaidArrow(e *edge) string {
	switch {
	case e.cyclic():
		return `-. "cycle" .->`
	case !e.depends:
		return `-. "waits" .->`
	case e.waits():
		return "==>"
	}
	return "-->"
}

// mermaidText makes a text of several lines to be shown. All but letters, digits and what is plain is written as its number,
// which nothing in Mermaid takes for markup, whatever shows the flowchart. What would begin a list is, too.
func mermaidText(lines ...string) string {
	var b strings.Builder
	for i, line := range lines {
		if i > 0 {
			b.WriteString("<br/>")
		}
		line = clean(line)
		for at, r := range line {
			list := r == '-' && at == 0 || r == '.' && strings.HasPrefix(line[at:], ". ")
			if !list && (unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune(" -.,·→/", r)) {
				b.WriteRune(r)
				continue
			}
			fmt.Fprintf(&b, "#%d;", r)
		}
	}
	return `"` + b.String() + `"`
}
