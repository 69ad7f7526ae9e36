package plan

import "slices"

// Compare compares the plan of a shadow resource set with that of the active one for the same
// object. It matches resources by their names, and changes by the object that changes. Only the
// resulting state counts: previous values, the versions of objects and the reasons for skipping a
// resource do not matter. For values that must not be shown only their presence matters.
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

// failure returns why a plan failed. It is empty for other plans.
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

// compareResources compares the changes of one resource. Several changes of one object are compared
// in their order.
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
			differences = append(differences, Divergence{
				Resource: resource,
				Object:   theirs.Object,
				Active:   a,
				Shadow:   s,
			})
		}
	}
	for i := range left {
		differences = append(differences, Divergence{Resource: resource, Object: left[i].Object, Active: &left[i]})
	}
	return differences
}

// counterpart finds the change of the same object, preferably with the same action.
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

// compareChanges reports whether two changes of one object differ. It returns of each only the
// fields that differ from the other.
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

// beyond returns the fields that others lack, or set to another value.
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
