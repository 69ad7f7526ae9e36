package serviceset

import (
	"cmp"
	"strings"
)

// routes are the ways through a chain to one goal, from each template.
//
// The next template is an upgrade of the present one from which the goal can be reached; among those the one with the
// smallest version that is not below the present one, then the one with the fewest steps that remain, then the first by
// name. On the way down it is the greatest version that is not above. Only where no way goes up (or down) all along, one
// that goes both ways is taken. Where a template that may be on the way has no semantic version, versions decide nothing.
//
// No way goes in circles: see lane.
type routes struct {
	next []int32 // of each template, -1 where there is no way, and at the goal
	left []int32 // steps to the goal, 0 until they are known
}

const unreachable = -1

func newRoutes(c *chain, goal int32) *routes {
	r := &routes{next: make([]int32, len(c.nodes)), left: make([]int32, len(c.nodes))}
	all := newLane(c, goal, func(_, _ int32) bool { return true })
	unversioned := all.reachUnversioned()
	var up, down *lane
	if c.nodes[goal].semver != nil {
		up = newLane(c, goal, func(from, to int32) bool { return c.compare(from, to) <= 0 })
		down = newLane(c, goal, func(from, to int32) bool { return c.compare(from, to) >= 0 })
	}
	for i := range r.next {
		from := int32(i)
		switch {
		case from == goal || all.distance[from] == unreachable:
			r.next[i] = -1
		case unversioned[from]:
			r.next[i] = all.nearest(from)
		case c.compare(from, goal) <= 0:
			r.next[i] = firstLane(from, up, all).best(from, c.prefer(1))
		default:
			r.next[i] = firstLane(from, down, all).best(from, c.prefer(-1))
		}
	}
	return r
}

// compare orders templates with semantic versions. Others are below all and equal to each other: ways that they are on
// don't look at versions.
func (c *chain) compare(a, b int32) int {
	x, y := c.nodes[a].semver, c.nodes[b].semver
	switch {
	case x == nil && y == nil:
		return 0
	case x == nil:
		return -1
	case y == nil:
		return 1
	}
	return x.Compare(y)
}

// prefer orders two upgrades of a template: with sign 1 on a way up, with sign -1 on a way down.
func (c *chain) prefer(sign int) func(from, a, b int32) int {
	return func(from, a, b int32) int {
		aBack, bBack := sign*c.compare(a, from) < 0, sign*c.compare(b, from) < 0
		switch {
		case aBack && !bBack:
			return 1
		case bBack && !aBack:
			return -1
		case aBack:
			return sign * c.compare(b, a)
		}
		return sign * c.compare(a, b)
	}
}

// steps returns how many steps it is from a template to the goal. It remembers them.
func (r *routes) steps(from, goal int32) int {
	var path []int32
	at := from
	for at != goal && r.left[at] == 0 {
		path = append(path, at)
		at = r.next[at]
	}
	left := r.left[at]
	for i := len(path) - 1; i >= 0; i-- {
		left++
		r.left[path[i]] = left
	}
	return int(left)
}

// lane is the part of a chain whose edges are allowed, as far as it leads to the goal.
//
// A step is taken only to a template that is nearer to the goal, or from which there is no way back. So every way ends at the goal,
// whatever it prefers.
type lane struct {
	chain     *chain
	allowed   func(from, to int32) bool
	distance  []int32 // in steps
	component []int32 // the same for templates between which there are ways both ways
}

func newLane(c *chain, goal int32, allowed func(from, to int32) bool) *lane {
	l := &lane{chain: c, allowed: allowed, distance: make([]int32, len(c.nodes))}
	for i := range l.distance {
		l.distance[i] = unreachable
	}
	l.distance[goal] = 0
	queue := make([]int32, 1, len(c.nodes))
	queue[0] = goal
	for done := 0; done < len(queue); done++ {
		to := queue[done]
		for _, from := range c.in[to] {
			if l.distance[from] == unreachable && allowed(from, to) {
				l.distance[from] = l.distance[to] + 1
				queue = append(queue, from)
			}
		}
	}
	next := make([][]int32, len(c.nodes))
	for _, from := range queue {
		for _, to := range c.out[from] {
			if l.distance[to] != unreachable && allowed(from, to) {
				next[from] = append(next[from], to)
			}
		}
	}
	l.component, _ = components(len(c.nodes), func(i int32) []int32 { return next[i] })
	return l
}

// firstLane returns the first of two lanes that leads from a template to the goal.
func firstLane(from int32, first, second *lane) *lane {
	if first != nil && first.distance[from] != unreachable {
		return first
	}
	return second
}

// best returns the upgrade that is preferred.
func (l *lane) best(from int32, prefer func(from, a, b int32) int) int32 {
	best := int32(-1)
	for _, to := range l.chain.out[from] {
		if l.distance[to] == unreachable || !l.allowed(from, to) {
			continue
		}
		if l.component[to] == l.component[from] && l.distance[to] >= l.distance[from] {
			continue
		}
		if best < 0 || cmp.Or(prefer(from, to, best), l.compareDistance(to, best)) < 0 {
			best = to
		}
	}
	return best
}

// nearest returns the upgrade with the fewest steps that remain, then the first by name.
func (l *lane) nearest(from int32) int32 {
	return l.best(from, func(_, a, b int32) int { return l.compareDistance(a, b) })
}

func (l *lane) compareDistance(a, b int32) int {
	return cmp.Or(cmp.Compare(l.distance[a], l.distance[b]), strings.Compare(l.chain.nodes[a].name, l.chain.nodes[b].name))
}

// reachUnversioned tells from which templates a way to the goal may lead over one without a semantic version, ends included.
func (l *lane) reachUnversioned() []bool {
	reach := make([]bool, len(l.chain.nodes))
	var queue []int32
	for i := range l.chain.nodes {
		if l.distance[i] != unreachable && l.chain.nodes[i].semver == nil {
			reach[i] = true
			queue = append(queue, int32(i))
		}
	}
	for done := 0; done < len(queue); done++ {
		for _, from := range l.chain.in[queue[done]] {
			if !reach[from] && l.distance[from] != unreachable {
				reach[from] = true
				queue = append(queue, from)
			}
		}
	}
	return reach
}
