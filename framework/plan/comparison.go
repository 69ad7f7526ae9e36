package plan

// Comparison is how what a shadow resource set would do with an object differs from what the active set would do: what
// the next version of an operator's logic would change beyond what this one would.
type Comparison struct {
	// Framework is the name of the framework.
	Framework string `json:"framework,omitempty"`
	// Object is the object that both plans are for.
	Object Object `json:"object"`
	// Event is what the reconciliation is about.
	Event Event `json:"event"`
	// Active is the name of the resource set that is in charge of the object.
	Active string `json:"active,omitempty"`
	// Shadow is the name of the resource set that is tried.
	Shadow string `json:"shadow"`
	// Differences are in the order of the shadow set's plan; what only the active set would do comes last in each resource.
	// They are empty when both would do the same.
	Differences []Divergence `json:"differences,omitempty"`
	// Opaque are the names of resources of the shadow set that can't tell what they would do.
	Opaque []string `json:"opaque,omitempty"`
	// Error says why there is nothing to compare, such as that the shadow set fails. It is empty otherwise.
	Error string `json:"error,omitempty"`
}

// Verdict is how a comparison came out.
type Verdict string

// The verdicts.
const (
	// Agrees: both sets would do the same, as far as they tell.
	Agrees Verdict = "agrees"
	// Differs: they would not.
	Differs Verdict = "differs"
	// NotComparable: one of them can't be planned.
	NotComparable Verdict = "failed"
)

// Verdict tells how the comparison came out.
func (c *Comparison) Verdict() Verdict {
	switch {
	case c.Error != "":
		return NotComparable
	case len(c.Differences) > 0:
		return Differs
	}
	return Agrees
}

// Divergence is one change that is not the same in both plans. At least one of Active and Shadow is set. When both are and
// their action is the same, they hold only the fields that differ: those that one of them lacks, or gives another value.
type Divergence struct {
	// Resource is the name of the resource.
	Resource string `json:"resource"`
	// Object is what changes.
	Object Object `json:"object"`
	// Active is what the active set would do, and nil for nothing.
	Active *Change `json:"active,omitempty"`
	// Shadow is what the shadow set would do, and nil for nothing.
	Shadow *Change `json:"shadow,omitempty"`
}

// Place is where plans differ, without the name of an object, so that the places of many objects can be counted.
type Place struct {
	// Resource is the name of the resource.
	Resource string `json:"resource"`
	// Kind is the kind of what changes, and empty for what has none.
	Kind string `json:"kind,omitempty"`
	// Path is the path of the field, and empty when the whole object is meant: it is created, deleted, or changes in a way
	// that no field tells.
	Path string `json:"path,omitempty"`
	// Action is what happens to the whole object; it is empty for a field.
	Action Action `json:"action,omitempty"`
}

// String returns the place as people write it, such as "ConfigMap data.page" or "create Deployment".
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

// Places are where the plans differ, each once, in the order of the differences. A field whose values must not be shown
// is one too.
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

// whole tells whether a change is about the object as a whole: one set would do to it what the other would not.
func (d Divergence) whole(change *Change) bool {
	both := d.Active != nil && d.Shadow != nil && d.Active.Action == d.Shadow.Action
	if !both && change.Action != Update {
		return true
	}
	return len(change.Fields) == 0 && (!both || len(d.Active.Fields)+len(d.Shadow.Fields) == 0)
}
