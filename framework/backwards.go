package framework

import "slices"

// turn makes the set for deletions. Its resources run from the last to the first; concluding
// resources stay last.
func (r *ResourceSet) turn() {
	work := len(r.resources)
	for work > 0 && concludes(r.resources[work-1]) {
		work--
	}
	r.backwards = &ResourceSet{setPlanner: r.setPlanner, shadow: r.shadow, resources: slices.Clone(r.resources)}
	planner := &r.backwards.setPlanner
	planner.planners, planner.left = slices.Clone(r.planners), slices.Clone(r.left)
	slices.Reverse(r.backwards.resources[:work])
	slices.Reverse(planner.planners[:work])
	slices.Reverse(planner.left[:work])
	r.deletes = planner
}

// of returns the set for an event.
func (r *ResourceSet) of(e event) *ResourceSet {
	if e == deleteEvent && r.backwards != nil {
		return r.backwards
	}
	return r
}

// of returns the set for an event.
func (p *setPlanner) of(e event) *setPlanner {
	if e == deleteEvent && p.deletes != nil {
		return p.deletes
	}
	return p
}
