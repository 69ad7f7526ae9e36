package graph

import "math"

// The measures of a picture, in pixels.
const (
	margin     = 24.0
	columnGap  = 64.0
	rowGap     = 14.0
	bendHeight = 8.0
	partGap    = 26.0
	// laneGap is between edges that lead back below the nodes, and maxLanes how many have a way of their own.
	laneGap  = 10.0
	maxLanes = 16
	// soleColumns is how many columns nodes without edges take at least, if there are so many.
	soleColumns = 4
)

// layout is where everything is in a picture.
type layout struct {
	*network
	size
	// x and y are the left upper corners of the nodes.
	x, y []float64
	// routes are the ways of the edges.
	routes []route
	// width and height are those of the picture.
	width, height float64
}

func newLayout(g *Graph) *layout {
	n := newNetwork(g)
	l := &layout{network: n, size: sizeOf(n.nodes), x: make([]float64, len(n.nodes)), y: make([]float64, len(n.nodes))}
	parts, passed := newLayers(n, l.nodeHeight, bendHeight)
	top, columns := margin, 0
	for _, part := range parts {
		part.order()
		part.placeVertices(rowGap)
		top = l.put(part, top) + partGap
		columns = max(columns, len(part.columns))
	}
	columns = l.putSole(parts, top, columns)
	l.routes = l.route(parts, passed)
	l.width = 2*margin + float64(columns)*l.pitch() - columnGap
	for i := range l.nodes {
		l.height = max(l.height, l.y[i]+l.nodeHeight)
	}
	for _, part := range parts {
		l.height = max(l.height, part.bottom)
	}
	l.width, l.height = max(l.width, 2*margin), l.height+margin
	return l
}

// pitch is how far two columns are apart.
func (l *layout) pitch() float64 { return l.nodeWidth + columnGap }

func (l *layout) columnX(rank int) float64 { return margin + float64(rank)*l.pitch() }

// put places a part below top, and returns where it ends.
func (l *layout) put(part *layers, top float64) (bottom float64) {
	least := math.Inf(1)
	for i := range part.vertices {
		least = min(least, part.vertices[i].y-part.vertices[i].height/2)
	}
	part.top, part.bottom = top, top
	for i := range part.vertices {
		v := &part.vertices[i]
		v.y = math.Round(v.y - least + top)
		part.bottom = max(part.bottom, v.y+v.height/2)
		if v.node >= 0 {
			l.x[v.node], l.y[v.node] = l.columnX(v.rank), v.y-l.nodeHeight/2
		}
	}
	if part.lanes > 0 {
		part.bottom += rowGap + laneGap*float64(min(part.lanes, maxLanes))
	}
	return part.bottom
}

// putSole places the nodes that have no edges, row by row below the parts, and returns how many columns the picture has.
func (l *layout) putSole(parts []*layers, top float64, columns int) int {
	joined := make([]bool, len(l.nodes))
	for _, part := range parts {
		for _, v := range part.vertices {
			if v.node >= 0 {
				joined[v.node] = true
			}
		}
	}
	var sole []int
	for i := range l.nodes {
		if !joined[i] {
			sole = append(sole, i)
		}
	}
	if len(sole) == 0 {
		return columns
	}
	columns = max(columns, min(len(sole), max(soleColumns, int(math.Sqrt(float64(len(sole)))/2))))
	for at, i := range sole {
		l.x[i], l.y[i] = l.columnX(at%columns), top+float64(at/columns)*(l.nodeHeight+rowGap)
	}
	return columns
}
