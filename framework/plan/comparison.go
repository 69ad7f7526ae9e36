package plan

// Comparison is the difference between the plan of a shadow resource set and the plan of the active
// set for an object: what the next version of an operator's logic would change beyond the current
// version.
type Comparison struct {
	// Framework is the name of the framework.
	Framework string `json:"framework,omitempty"`
	// Object is the object of both plans.
	Object Object `json:"object"`
	// Event is the event of the reconciliation.
	Event Event `json:"event"`
	// Active is the name of the resource set that handles the object.
	Active string `json:"active,omitempty"`
	// Shadow is the name of the shadow resource set.
	Shadow string `json:"shadow"`
	// Differences are in the order of the shadow set's plan. Changes of only the active set come
	// last in each resource. They are empty if both sets would do the same.
	Differences []Divergence `json:"differences,omitempty"`
	// Opaque are the names of resources of the shadow set that can't predict their changes.
	Opaque []string `json:"opaque,omitempty"`
	// Error says why there is nothing to compare, for example because the shadow set fails. It is
	// empty otherwise.
	Error string `json:"error,omitempty"`
}

// Verdict is the result of a comparison.
type Verdict string

// The verdicts.
const (
	// Agrees: both sets would do the same, as far as known.
	Agrees Verdict = "agrees"
	// Differs: the sets would not do the same.
	Differs Verdict = "differs"
	// NotComparable: one of the sets can't be planned.
	NotComparable Verdict = "failed"
)

// Verdict returns the result of the comparison.
func (c *Comparison) Verdict() Verdict {
	switch {
	case c.Error != "":
		return NotComparable
	case len(c.Differences) > 0:
		return Differs
	}
	return Agrees
}

// Divergence is one change that differs between the plans. At least one of Active and Shadow is
// set. If both are set and their action is the same, they hold only the fields that differ: a field
// that is missing in one of them, or has another value.
type Divergence struct {
	// Resource is the name of the resource.
	Resource string `json:"resource"`
	// Object is the object that changes.
	Object Object `json:"object"`
	// Active is the change by the active set, and nil for none.
	Active *Change `json:"active,omitempty"`
	// Shadow is the change by the shadow set, and nil for none.
	Shadow *Change `json:"shadow,omitempty"`
}

// Place is a place where plans differ, without the name of an object, so that the places of many
// objects can be counted.
type Place struct {
	// Resource is the name of the resource.
	Resource string `json:"resource"`
	// Kind is the kind of the changed object. It is empty for an object without a kind.
	Kind string `json:"kind,omitempty"`
	// Path is the path of the field. It is empty for the whole object: the object is created,
	// deleted, or changes in a way that no field shows.
	Path string `json:"path,omitempty"`
	// Action is the action on the whole object. It is empty for a field.
	Action Action `json:"action,omitempty"`
}

// String returns the place in a form for people, such as "ConfigMap data.page" or "create
// Deployment".
func (p Place) String() string {
	what := p.Kind
	if what == "" {
		what = p.Resource
	}
	if p.Path == "" {
		return string(p.Action) + " " + what
	}
	return what + " " + p.Path
}

// Places returns where the plans differ, each place once, in the order of the differences. It
// includes fields with values that must not be shown.
func (c *Comparison) Places() []Place {
	var places []Place
	seen := map[Place]bool{}
	for _, d := range c.Differences {
		for _, p := range d.places() {
			if !seen[p] {
				seen[p] = true
				places = append(places, p)
			}
		}
	}
	return places
}

func (d Divergence) places() []Place {
	var places []Place
	for _, change := range []*Change{d.Shadow, d.Active} {
		if change == nil {
			continue
		}
		if d.whole(change) {
			places = append(places, Place{Resource: d.Resource, Kind: d.Object.Kind, Action: change.Action})
			continue
		}
		for _, f := range change.Fields {
			places = append(places, Place{Resource: d.Resource, Kind: d.Object.Kind, Path: f.Path})
		}
	}
	return places
}

// whole reports whether a change concerns the object as a whole: one set would change it and the
// other would not, or with another action.
func (d Divergence) whole(change *Change) bool {
	both := d.Active != nil && d.Shadow != nil && d.Active.Action == d.Shadow.Action
	if !both && change.Action != Update {
		return true
	}
	return len(change.Fields) == 0 && (!both || len(d.Active.Fields)+len(d.Shadow.Fields) == 0)
}
