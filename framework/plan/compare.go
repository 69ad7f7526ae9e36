package plan

import "slices"

// Compare tells how the plan of a shadow resource set differs from that of the active one for the same object. Resources
// are matched by their names, changes by the object that changes. What counts is what would be there afterwards: the
// values before, the versions of objects and the reasons why a resource is skipped do not matter. Of values that must not
// be shown it matters only whether there is one.
//
// The plans are not changed; the comparison shares values with them.
func Compare(active, shadow *Plan) *Comparison {
	c := &Comparison{
		Framework: shadow.Framework, Object: shadow.Object, Event: shadow.Event,
		Active: active.ResourceSet, Shadow: shadow.ResourceSet,
	}
	if reason := active.failure(); reason != "" {
		c.Error = "the active resource set can't be planned: " + reason
		return c
	}
	if reason := shadow.failure(); reason != "" {
		c.Error = reason
		return c
	}
	c.Opaque = shadow.Opaque()
	for _, r := range shadow.Resources {
		c.Differences = append(c.Differences, compareResources(r.Name, active.changesOf(r.Name), r.Changes)...)
	}
	for _, r := range active.Resources {
		if !shadow.has(r.Name) {
			c.Differences = append(c.Differences, compareResources(r.Name, r.Changes, nil)...)
		}
	}
	return c
}

// failure says why a plan is not one.
func (p *Plan) failure() string {
	if p.Outcome != Failed {
		return ""
	}
	for _, r := range p.Resources {
		if r.Error != "" {
			return r.Error
		}
	}
	return p.Reason
}

func (p *Plan) has(resource string) bool {
	return slices.ContainsFunc(p.Resources, func(r Resource) bool { return r.Name == resource })
}

func (p *Plan) changesOf(resource string) []Change {
	for _, r := range p.Resources {
		if r.Name == resource {
			return r.Changes
		}
	}
	return nil
}

// compareResources compares the changes of one resource. Several changes of one object are compared in their order.
func compareResources(resource string, active, shadow []Change) []Divergence {
	left := slices.Clone(active)
	var differences []Divergence
	for i := range shadow {
		theirs := &shadow[i]
		var ours *Change
		if j := counterpart(left, theirs); j >= 0 {
			one := left[j]
			ours, left = &one, slices.Delete(left, j, j+1)
		}
		if a, s, differ := compareChanges(ours, theirs); differ {
			differences = append(differences, Divergence{Resource: resource, Object: theirs.Object, Active: a, Shadow: s})
		}
	}
	for i := range left {
		differences = append(differences, Divergence{Resource: resource, Object: left[i].Object, Active: &left[i]})
	}
	return differences
}

// counterpart finds the change of the same object, preferably one that does the same to it.
func counterpart(changes []Change, of *Change) int {
	first := -1
	for i, c := range changes {
		switch {
		case !sameObject(c.Object, of.Object):
		case c.Action == of.Action:
			return i
		case first < 0:
			first = i
		}
	}
	return first
}

// compareChanges tells whether two changes of one object differ, and returns of each what the other has not.
func compareChanges(active, shadow *Change) (a, s *Change, differ bool) {
	if active == nil || active.Action != shadow.Action {
		return active, shadow, true
	}
	onlyActive, onlyShadow := *active, *shadow
	onlyActive.Fields = beyond(active.Fields, shadow.Fields)
	onlyShadow.Fields = beyond(shadow.Fields, active.Fields)
	if len(onlyActive.Fields)+len(onlyShadow.Fields) == 0 && active.Description == shadow.Description {
		return nil, nil, false
	}
	return &onlyActive, &onlyShadow, true
}

// beyond returns the fields that the others have not, or give another value.
func beyond(fields, others []FieldChange) []FieldChange {
	after := make(map[string]any, len(others))
	for _, f := range others {
		after[f.Path] = f.New
	}
	var rest []FieldChange
	for _, f := range fields {
		if value, ok := after[f.Path]; !ok || !SameValue(f.New, value) {
			rest = append(rest, f)
		}
	}
	return rest
}
