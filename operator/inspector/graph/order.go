package graph

import (
	"cmp"
	"slices"
)

// maxSweeps is how often the columns are ordered anew, and patience how often in a row without fewer crossings.
const (
	maxSweeps = 24
	patience  = 6
)

// order orders the columns so that few edges cross: again and again each vertex goes where its neighbours are in the mean
// (Sugiyama, Tagawa and Toda, 1981), and after that neighbours in a column change places where that helps.
func (l *layers) order() {
	l.orderByWalk()
	position := make([]float64, len(l.vertices))
	best, fewest := l.copyColumns(), l.crossings(position)
	for sweep, idle := 0, 0; sweep < maxSweeps && idle < patience && fewest > 0; sweep++ {
		l.sweep(position, sweep%2 == 0)
		l.swap(position)
		idle++
		if crossings := l.crossings(position); crossings < fewest {
			best, fewest, idle = l.copyColumns(), crossings, 0
		}
	}
	l.columns = best
}

// orderByWalk gives the columns an order in which what hangs together is together: that of a walk along the edges.
func (l *layers) orderByWalk() {
	seen := make([]bool, len(l.vertices))
	columns := make([][]int, len(l.columns))
	var visit func(v int)
	visit = func(v int) {
		if seen[v] {
			return
		}
		seen[v] = true
		columns[l.vertices[v].rank] = append(columns[l.vertices[v].rank], v)
		for _, to := range l.vertices[v].right {
			visit(to)
		}
	}
	for _, column := range l.columns {
		for _, v := range column {
			visit(v)
		}
	}
	l.columns = columns
}

func (l *layers) copyColumns() [][]int {
	columns := make([][]int, len(l.columns))
	for i, column := range l.columns {
		columns[i] = slices.Clone(column)
	}
	return columns
}

// sweep orders each column by the places of the neighbours in the column before it, from left to right or the other way.
func (l *layers) sweep(position []float64, rightwards bool) {
	l.number(position)
	for i := range l.columns {
		column := l.columns[i]
		if !rightwards {
			column = l.columns[len(l.columns)-1-i]
		}
		wanted := make(map[int]float64, len(column))
		for _, v := range column {
			neighbours := l.vertices[v].left
			if !rightwards {
				neighbours = l.vertices[v].right
			}
			wanted[v] = mean(neighbours, position, position[v])
		}
		slices.SortStableFunc(column, func(a, b int) int { return cmp.Compare(wanted[a], wanted[b]) })
		for at, v := range column {
			position[v] = float64(at)
		}
	}
}

// mean returns the mean of the values of vertices, and otherwise if there are none.
func mean(vertices []int, values []float64, otherwise float64) float64 {
	if len(vertices) == 0 {
		return otherwise
	}
	sum := 0.0
	for _, v := range vertices {
		sum += values[v]
	}
	return sum / float64(len(vertices))
}

// number writes down the place of each vertex in its column.
func (l *layers) number(position []float64) {
	for _, column := range l.columns {
		for at, v := range column {
			position[v] = float64(at)
		}
	}
}

// swap lets vertices that are next to each other in a column change places where that makes fewer edges cross. position is
// that of each vertex, and is kept right.
func (l *layers) swap(position []float64) {
	for _, column := range l.columns {
		for i := 1; i < len(column); i++ {
			a, b := column[i-1], column[i]
			if l.between(b, a, position) < l.between(a, b, position) {
				column[i-1], column[i] = b, a
				position[a], position[b] = position[b], position[a]
			}
		}
	}
}

// between counts the crossings of the edges of two vertices of which above stands right above below.
func (l *layers) between(above, below int, position []float64) int {
	a, b := &l.vertices[above], &l.vertices[below]
	return inversions(a.left, b.left, position) + inversions(a.right, b.right, position)
}

// maxCompared is how many pairs of edges are compared for one change of places; beyond, the places stay.
const maxCompared = 10_000

func inversions(above, below []int, position []float64) int {
	if len(above)*len(below) > maxCompared {
		return 0
	}
	count := 0
	for _, a := range above {
		for _, b := range below {
			if position[a] > position[b] {
				count++
			}
		}
	}
	return count
}

// crossings counts the pairs of edges that cross, column by column, with a tree of sums (Barth, Jünger and Mutzel, 2002).
func (l *layers) crossings(position []float64) int {
	l.number(position)
	total := 0
	for i := 1; i < len(l.columns); i++ {
		sums := make([]int, len(l.columns[i])+1)
		seen := 0
		for _, v := range l.columns[i-1] {
			ends := make([]int, 0, len(l.vertices[v].right))
			for _, to := range l.vertices[v].right {
				ends = append(ends, int(position[to])+1)
			}
			for _, end := range ends {
				notBelow := 0
				for at := end; at > 0; at -= at & -at {
					notBelow += sums[at]
				}
				total += seen - notBelow
			}
			for _, end := range ends {
				for at := end; at < len(sums); at += at & -at {
					sums[at]++
				}
				seen++
			}
		}
	}
	return total
}
