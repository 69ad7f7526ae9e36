package graph

import (
	"math"
	"slices"
)

// heightSweeps is how often vertices move towards their neighbours.
const heightSweeps = 16

// placeVertices gives each vertex the height at which its edges are as straight as the order of its column and the room that all
// take allow. gap is the room between two.
func (l *layers) placeVertices(gap float64) {
	for _, column := range l.columns {
		y := 0.0
		for _, v := range column {
			l.vertices[v].y = y + l.vertices[v].height/2
			y += l.vertices[v].height + gap
		}
	}
	for sweep := range heightSweeps {
		for i := range l.columns {
			at := i
			if sweep%2 == 1 {
				at = len(l.columns) - 1 - i
			}
			// In the end both sides count the same.
			left := sweep%2 == 0 || sweep >= heightSweeps-4
			right := sweep%2 == 1 || sweep >= heightSweeps-4
			l.placeColumn(l.columns[at], gap, left, right)
		}
	}
	for range 2 {
		for _, column := range l.columns {
			l.straighten(column, gap)
		}
	}
}

// maxSnap is how far a node is moved to make an edge straight.
const maxSnap = 12.0

// straighten takes out what is crooked in a column, as far as there is room: bends go to the height of what is left of them,
// and nodes to that of the nearest neighbour if it is near.
func (l *layers) straighten(column []int, gap float64) {
	for i, at := range column {
		v := &l.vertices[at]
		least, most := math.Inf(-1), math.Inf(1)
		if i > 0 {
			least = l.vertices[column[i-1]].y + l.distance(column[i-1], at, gap)
		}
		if i+1 < len(column) {
			most = l.vertices[column[i+1]].y - l.distance(at, column[i+1], gap)
		}
		to, near := v.y, maxSnap
		if v.node < 0 {
			to, near = l.vertices[v.left[0]].y, 0
		}
		for _, n := range append(slices.Clone(v.left), v.right...) {
			y := l.vertices[n].y
			if off := math.Abs(y - v.y); off < near && least <= y && y <= most {
				to, near = y, off
			}
		}
		// Rounding can leave no room at all.
		if least <= most {
			v.y = min(max(to, least), most)
		}
	}
}

// The pull between two neighbours is the greater the longer the edge is that they belong to: long edges are to be straight.
const (
	pullOfNodes    = 1.0
	pullOfBend     = 2.0
	pullOfBends    = 8.0
	pullOfSolitary = 0.01
)

func pull(a, b *vertex) float64 {
	switch {
	case a.node >= 0 && b.node >= 0:
		return pullOfNodes
	case a.node < 0 && b.node < 0:
		return pullOfBends
	}
	return pullOfBend
}

// placeColumn moves the vertices of a column to where their neighbours want them, least far from that in the square, with
// their order and distances kept. That is isotonic regression, which pooling adjacent violators solves.
func (l *layers) placeColumn(column []int, gap float64, left, right bool) {
	type block struct {
		sum, weight float64
		count       int
	}
	var blocks []block
	offset := 0.0
	for i, v := range column {
		if i > 0 {
			offset += l.distance(column[i-1], v, gap)
		}
		y, weight := l.wanted(v, left, right)
		b := block{(y - offset) * weight, weight, 1}
		for len(blocks) > 0 {
			last := blocks[len(blocks)-1]
			if last.sum/last.weight <= b.sum/b.weight {
				break
			}
			b = block{last.sum + b.sum, last.weight + b.weight, last.count + b.count}
			blocks = blocks[:len(blocks)-1]
		}
		blocks = append(blocks, b)
	}
	offset = 0
	i := 0
	for _, b := range blocks {
		for range b.count {
			if i > 0 {
				offset += l.distance(column[i-1], column[i], gap)
			}
			l.vertices[column[i]].y = b.sum/b.weight + offset
			i++
		}
	}
}

// distance is how far the middles of two vertices are apart at least, one right below the other.
func (l *layers) distance(above, below int, gap float64) float64 {
	return (l.vertices[above].height+l.vertices[below].height)/2 + gap
}

// wanted returns where the neighbours want a vertex, and how much.
func (l *layers) wanted(at int, left, right bool) (y, weight float64) {
	v := &l.vertices[at]
	add := func(neighbours []int) {
		for _, n := range neighbours {
			p := pull(v, &l.vertices[n])
			y += l.vertices[n].y * p
			weight += p
		}
	}
	if left {
		add(v.left)
	}
	if right {
		add(v.right)
	}
	if weight == 0 {
		return v.y, pullOfSolitary
	}
	return y / weight, weight
}
