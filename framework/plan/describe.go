package plan

import (
	"reflect"

	"github.com/operatorkit/operatorkit/informer"
)

// Changer is implemented by states, and parts of patches, that describe themselves.
type Changer interface {
	// Changes returns what the part of a patch changes, in the order in which it is applied. The state of affairs, current
	// or desired, has none.
	Changes() []Change
}

// Describer is implemented by values that say in words what happens to them. The words are shown to people: they must not
// hold what is secret.
type Describer interface {
	// DescribeChange returns a phrase such as "rotate the token".
	DescribeChange() string
}

// Noter is implemented by desired states that say what stays as it is although it should not, and why: "ingress waits for
// cert-manager". Plans show it.
type Noter interface {
	// Notes returns a sentence for each thing, without a full stop. They must not hold what is secret.
	Notes() []string
}

// Notes returns what a desired state says about what stays as it is. A panic of the state is a note.
func Notes(desired any) (notes []string) {
	defer func() {
		if v := recover(); v != nil {
			notes = []string{"what stays as it is can't be told: " + informer.DescribePanic(v)}
		}
	}()
	v := reflect.ValueOf(desired)
	if !v.IsValid() || nillable(v) && v.IsNil() {
		return nil
	}
	if n, ok := as[Noter](v); ok {
		return n.Notes()
	}
	return nil
}

// Confidential is implemented by values that may be secret.
type Confidential interface {
	// Sensitive tells whether the value must not be shown. What it is called, and its fields, may.
	Sensitive() bool
}

// Describe says what applying a part of a patch would change. Action is which part it is; current is the current state that
// the patch was computed from, in which an update finds what there was before. Both are left as they are. It returns
// nothing for a part that is nil, zero or empty.
//
// What a part says about itself comes first:
//
//   - A Changer tells its changes. Their values are made JSON values.
//   - A Kubernetes object is a change of this object. A creation has all fields that are set, an update those in which
//     it differs from the object of the same kind and name in current. Status, managed fields and what else the
//     server maintains are left out.
//   - A Describer is described in its own words.
//   - Slices, arrays, maps (sorted by key) and lists of Kubernetes objects are the changes of their elements, one by one.
//   - A fmt.Stringer is described by its string, unless a Secret is in it.
//   - Any other value is shown by its fields, exported or not, as JSON would show them; an update by those in which it
//     differs from the value of the same type and name in current. Its name is what its method GetName or its field
//     Name says, or its place in the part.
//
// Values of Secrets are never in the result, typed or not, in raw JSON or as entries of maps, with their kind or in a list without, and
// however deep in a part they are; nor are those of a Confidential that is sensitive. A text that holds the manifest of a Secret is
// hidden as a whole.
//
// A panic in one of the author's methods makes a change whose description says that it can't be told.
func Describe(action Action, part, current any) []Change {
	if v := reflect.ValueOf(part); !v.IsValid() || v.IsZero() {
		return nil
	}
	d := describer{action: action}
	if action == Update {
		d.before = itemsIn(current)
	}
	var changes []Change
	for _, t := range itemsIn(part) {
		changes = append(changes, d.changesOf(t)...)
	}
	return changes
}

// describer describes the items in a part of a patch.
type describer struct {
	action Action
	// before are the items in the current state.
	before []item
}

// changesOf describes one item. A panic in it is a change that can't be described.
func (d describer) changesOf(t item) (changes []Change) {
	defer func() {
		if v := recover(); v != nil {
			object := Object{Kind: kindOf(t.value.Type()), Name: t.place}
			changes = []Change{{Action: d.action, Object: object, Description: "can't be described: " + informer.DescribePanic(v)}}
		}
	}()
	if c, ok := as[Changer](t.value); ok {
		return d.adopt(c.Changes(), confidential(t.value))
	}
	if o, ok := kubernetesObject(t.value); ok {
		return []Change{d.object(o, confidential(t.value))}
	}
	return []Change{d.other(t)}
}

// adopt makes the changes that an author gave fit for a plan.
func (d describer) adopt(given []Change, hidden bool) []Change {
	changes := make([]Change, 0, len(given))
	for _, c := range given {
		if c.Action == "" {
			c.Action = d.action
		}
		var fields []FieldChange
		for _, f := range c.Fields {
			if f.Sensitive || hidden {
				fields = append(fields, f.Hidden())
				continue
			}
			fields = append(fields, FieldChange{Path: f.Path, Old: encoder{}.encode(f.Old), New: encoder{}.encode(f.New)})
		}
		if isSecret(c.Object.APIVersion, c.Object.Kind) {
			Hide(fields, ShownOfSecret)
		}
		c.Fields = redact(fields)
		changes = append(changes, c)
	}
	return changes
}
