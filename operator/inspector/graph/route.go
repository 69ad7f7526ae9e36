package graph

import (
	"strconv"
	"strings"
)

// The head of an arrow is so long, and half as wide to each side.
const headLength, headWidth = 8.0, 4.0

// The corners of edges that lead back are round with this radius, and such edges leave their nodes by backOut at least.
const corner, backOut = 6.0, 14.0

// maxSpread is by how much edges that lead back are apart at most where they go up and down.
const maxSpread = 10

// route is the way of an edge: the path of its line, and that of the head of its arrow.
type route struct{ line, head string }

// route finds the ways of all edges.
func (l *layout) route(parts []*layers, passed bends) []route {
	routes := make([]route, len(l.edges))
	partOf := make([]*layers, len(l.nodes))
	for _, part := range parts {
		for _, v := range part.vertices {
			if v.node >= 0 {
				partOf[v.node] = part
			}
		}
	}
	lanes := map[*layers]int{}
	for i := range l.edges {
		e := &l.edges[i]
		part := partOf[e.from]
		if e.back {
			routes[i] = l.routeBack(e, part, lanes[part]%maxLanes)
			lanes[part]++
			continue
		}
		routes[i] = l.routeForward(e, part, passed[i])
	}
	return routes
}

// middle is the height of the middle of a node.
func (l *layout) middle(node int) float64 { return l.y[node] + l.nodeHeight/2 }

// routeForward leads from the right of a node to the left of another one, through the bends in the columns between.
func (l *layout) routeForward(e *edge, part *layers, passed []int) route {
	var p path
	x, y := l.x[e.from]+l.nodeWidth, l.middle(e.from)
	p.add("M", x, y)
	curve := func(toX, toY float64) {
		if y == toY {
			p.add("H", toX)
		} else {
			middle := (x + toX) / 2
			p.add("C", middle, y, middle, toY, toX, toY)
		}
		x, y = toX, toY
	}
	for _, at := range passed {
		bend := &part.vertices[at]
		left := l.columnX(bend.rank)
		curve(left, bend.y)
		x = left + l.nodeWidth
		p.add("H", x)
	}
	toX, toY := l.x[e.to], l.middle(e.to)
	curve(toX-headLength, toY)
	return route{p.String(), head(toX, toY)}
}

// routeBack leads from the right of a node down to a lane below all nodes of the part, back there, and up to the left of
// the other node. Up and down it goes between the columns.
func (l *layout) routeBack(e *edge, part *layers, lane int) route {
	lanes := min(part.lanes, maxLanes)
	laneY := part.bottom - float64(lanes-1-lane)*laneGap
	out := backOut + float64(lane%maxSpread)
	fromX, fromY := l.x[e.from]+l.nodeWidth, l.middle(e.from)
	toX, toY := l.x[e.to], l.middle(e.to)
	down, up := fromX+out, toX-headLength-out/2
	var p path
	p.add("M", fromX, fromY)
	p.add("H", down-corner)
	p.add("Q", down, fromY, down, fromY+corner)
	p.add("V", laneY-corner)
	p.add("Q", down, laneY, down-corner, laneY)
	p.add("H", up+corner)
	p.add("Q", up, laneY, up, laneY-corner)
	p.add("V", toY+corner)
	p.add("Q", up, toY, up+corner, toY)
	p.add("H", toX-headLength)
	return route{p.String(), head(toX, toY)}
}

// head is the head of an arrow that ends at a point, from the left.
func head(x, y float64) string {
	var p path
	p.add("M", x, y)
	p.add("L", x-headLength, y-headWidth)
	p.add("V", y+headWidth)
	p.WriteByte('Z')
	return p.String()
}

// path is the text of a path.
type path struct{ strings.Builder }

func (p *path) add(command string, numbers ...float64) {
	p.WriteString(command)
	for i, n := range numbers {
		if i > 0 {
			p.WriteByte(' ')
		}
		p.WriteString(number(n))
	}
}

// number writes a coordinate.
func number(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }
