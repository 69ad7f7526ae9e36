package graph

import (
	"bytes"
	"cmp"
	"encoding/xml"
	"fmt"
	"io"
	"slices"
	"strings"
)

// defaultID is the ID of pictures that are given none.
const defaultID = "graph"

// SVGOptions change what SVG writes.
type SVGOptions struct {
	// Standalone makes the picture a file of its own, with a style sheet for light and dark grounds. Otherwise the page that
	// it is part of has that of Style. Default: false.
	Standalone bool
	// ID begins the IDs of all elements, and is that of the whole. Pictures on the same page need different ones. It is made
	// of letters, digits and hyphens. Default: "graph".
	ID string
}

// SVG writes the graph as a picture: nodes in columns, each right of all it depends on, and arrows from dependencies to
// dependents. Texts are 11 pixels high at least when it is shown in its own size, and what does not fit is cut, with the
// whole in the title that a pointer or a screen reader finds. Each node can have the focus.
//
// Scripts find the nodes, which have the class "node" and that of their state, by IDs that depend on nothing but the node's
// own. The attribute data-waits of a node has the IDs of the elements that it waits for, with spaces between, and that of an
// edge (class "edge") those of the elements that wait at its ends.
//
// The only error is that of w.
func (g *Graph) SVG(w io.Writer, options SVGOptions) error {
	p := &svg{layout: newLayout(g), id: cmp.Or(options.ID, defaultID)}
	title := clean(g.Title)
	p.printf(`<svg xmlns="http://www.w3.org/2000/svg" class="graph" id="%s" role="group" aria-label="%s" width="%v" height="%v" viewBox="0 0 %v %v">`+"\n",
		p.id, title, p.width, p.height, p.width, p.height)
	if options.Standalone {
		p.printf("<title>%s</title>\n<style>\n%s</style>\n", title, ownStyle())
	}
	p.printf(`<g aria-hidden="true">` + "\n")
	for _, layer := range edgeLayers {
		for i := range p.edges {
			if layer(&p.edges[i]) {
				p.edge(i)
			}
		}
	}
	p.printf("</g>\n<g>\n")
	for _, i := range p.inReadingOrder() {
		p.node(i)
	}
	p.printf("</g>\n</svg>\n")
	_, err := w.Write(p.Bytes())
	return err
}

// svg writes a picture.
type svg struct {
	*layout
	bytes.Buffer
	id string
}

// printf writes markup with the arguments in it: texts are escaped.
func (p *svg) printf(format string, args ...any) {
	for i, arg := range args {
		switch arg := arg.(type) {
		case string:
			args[i] = escape(arg)
		case float64:
			args[i] = number(arg)
		}
	}
	fmt.Fprintf(&p.Buffer, format, args...)
}

// escape makes a text harmless for XML and HTML, in elements and in attributes.
func escape(text string) string {
	var b strings.Builder
	// A strings.Builder takes everything.
	_ = xml.EscapeText(&b, []byte(text))
	return b.String()
}

// edgeLayers are the edges that are drawn one above the other: those that matter most come last.
var edgeLayers = []func(*edge) bool{
	func(e *edge) bool { return !e.waits() && !e.cyclic() },
	func(e *edge) bool { return e.waits() && !e.cyclic() },
	func(e *edge) bool { return e.cyclic() },
}

// cyclic tells whether the edge closes a cycle of dependencies.
func (e *edge) cyclic() bool { return e.back && e.depends }

func (p *svg) edge(i int) {
	e := &p.edges[i]
	class := "edge"
	var waiting []string
	for _, is := range []struct {
		so    bool
		class string
	}{{e.waits(), " waits"}, {e.back, " back"}, {e.cyclic(), " cycle"}, {!e.depends, " only"}} {
		if is.so {
			class += is.class
		}
	}
	if e.fromWaits {
		waiting = append(waiting, p.elementID(e.from))
	}
	if e.toWaits {
		waiting = append(waiting, p.elementID(e.to))
	}
	p.printf(`<g class="%s" id="%s" data-from="%s" data-to="%s" data-waits="%s"><path class="line" d="%s"/><path class="head" d="%s"/></g>`+"\n",
		class, p.id+"-edge-"+elementID(p.nodes[e.from].ID)+":"+elementID(p.nodes[e.to].ID), p.elementID(e.from), p.elementID(e.to),
		strings.Join(waiting, " "), p.routes[i].line, p.routes[i].head)
}

// inReadingOrder returns the nodes column by column, from top to bottom.
func (p *svg) inReadingOrder() []int {
	order := make([]int, len(p.nodes))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(p.x[a], p.x[b]), cmp.Compare(p.y[a], p.y[b]))
	})
	return order
}

func (p *svg) node(i int) {
	n := &p.nodes[i]
	id, state := p.elementID(i), n.State.Known()
	var waits []string
	for _, awaited := range p.indexes(n.WaitsFor) {
		waits = append(waits, p.elementID(awaited))
	}
	p.printf(`<g class="node %s" id="%s" tabindex="0" role="img" aria-labelledby="%s:title %s:desc" data-waits="%s" transform="translate(%v %v)">`,
		string(state), id, id, id, strings.Join(waits, " "), p.x[i], p.y[i])
	p.printf(`<title id="%s:title">%s</title><desc id="%s:desc">%s</desc>`, id, clean(n.Label), id, p.description(n))
	p.printf(`<rect class="card" width="%v" height="%v" rx="7"/><path class="stripe" d="M5 0A5 7 0 0 0 0 7V%vA5 7 0 0 0 5 %vZ"/>`,
		p.nodeWidth, p.nodeHeight, p.nodeHeight-7, p.nodeHeight)
	room := p.nodeWidth - textX - textEnd
	y := padding + labelLine - 5
	p.printf(`<path class="icon" transform="translate(15 %v)" d="%s"/><text class="label" x="%v" y="%v">%s</text>`,
		y-10, state.Icon(), textX, y, fit(clean(n.Label), labelFont, room))
	if p.hasVersions {
		y += versionsLine
		p.line("versions", y, fitVersions(n.Versions, room))
	}
	if p.hasGroup {
		y += groupLine
		p.line("group", y, fit(clean(n.Group), groupFont, room))
	}
	p.printf("</g>\n")
}

// line writes a line of text in a node.
func (p *svg) line(class string, y float64, text string) {
	if text != "" {
		p.printf(`<text class="%s" x="%v" y="%v">%s</text>`, class, textX, y, text)
	}
}

// description says in words what is drawn.
func (p *svg) description(n *Node) string {
	parts := []string{string(n.State.Known())}
	add := func(what, text string) {
		if text != "" {
			parts = append(parts, what+text)
		}
	}
	add("versions ", arrows(n.Versions))
	add("of ", clean(n.Group))
	add("depends on ", p.labels(n.DependsOn))
	add("waits for ", p.labels(n.WaitsFor))
	add("", clean(n.Message))
	return strings.Join(parts, "; ")
}

// labels names the nodes that are there among those with these IDs.
func (n *network) labels(ids []string) string {
	var labels []string
	for _, i := range n.indexes(ids) {
		labels = append(labels, clean(n.nodes[i].Label))
	}
	return strings.Join(labels, ", ")
}

// elementID is the ID of the element of a node.
func (p *svg) elementID(node int) string { return ElementID(p.id, p.nodes[node].ID) }

// ElementID returns the ID of the element that SVG writes for a node, in a picture with this SVGOptions.ID.
func ElementID(picture, node string) string {
	return cmp.Or(picture, defaultID) + "-node-" + elementID(node)
}

// elementID makes the ID of a node part of one of an element: different ones stay different, and no spaces are left.
func elementID(id string) string {
	var b strings.Builder
	for _, c := range []byte(id) {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_' {
			b.WriteByte(c)
			continue
		}
		fmt.Fprintf(&b, ".%02x", c)
	}
	return b.String()
}
