package plan

import (
	"reflect"

	"github.com/operatorkit/operatorkit/internal/panics"
)

// Changer is implemented by states, and parts of patches, that describe themselves.
type Changer interface {
	// Changes returns what the part of a patch changes, in the order of application. A current or
	// desired state has none.
	Changes() []Change
}

// Describer is implemented by values that describe their change in words. The words are shown to
// people: they must not hold secrets.
type Describer interface {
	// DescribeChange returns a phrase such as "rotate the token".
	DescribeChange() string
}

// Noter is implemented by desired states that explain what does not change although it should:
// "ingress waits for cert-manager". Plans show it.
type Noter interface {
	// Notes returns a sentence for each thing, without a full stop. They must not hold secrets.
	Notes() []string
}

// Notes returns the notes of a desired state about what does not change. A panic of the state
// becomes a note.
func Notes(desired any) (notes []string) {
	defer func() {
		if v := recover(); v != nil {
			notes = []string{"what stays as it is can't be told: " + panics.Describe(v)}
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
	// Sensitive reports whether the value must not be shown. Its name and the names of its fields
	// may be shown.
	Sensitive() bool
}

// Describe returns what applying a part of a patch would change. Action is the kind of the part.
// Current is the current state that the patch was computed from; an update finds the previous
// values in it. Both are left unchanged. Describe returns nothing for a part that is nil, zero or
// empty.
//
// A part's own description has priority:
//
//   - A Changer returns its changes. Their values are converted to JSON values.
//   - A Kubernetes object is a change of this object. A creation has all fields that are set, an
//     update those in which it differs from the object of the same kind and name in current.
//     Status, managed fields and all other fields that the server maintains are left out.
//   - A Describer is described in its own words.
//   - Slices, arrays, maps (sorted by key) and lists of Kubernetes objects are the changes of their
//     elements, one by one.
//   - A fmt.Stringer is described by its string, unless it contains a Secret.
//   - Any other value is shown by its fields, exported or not, as JSON would show them; an update
//     by those in which it differs from the value of the same type and name in current. Its name
//     comes from its method GetName or its field Name, or else is its place in the part.
//
// The result never has values of Secrets: typed or not, in raw JSON or as entries of maps, with
// their kind or in a list without it, and at any depth of a part. Nor does it have values of a
// sensitive Confidential. A text that holds the manifest of a Secret is hidden as a whole.
//
// A panic in one of the author's methods results in a change with a description that says so.
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

// changesOf describes one item. A panic in it results in a change that can't be described.
func (d describer) changesOf(t item) (changes []Change) {
	defer func() {
		if v := recover(); v != nil {
			object := Object{Kind: kindOf(t.value.Type()), Name: t.place}
			description := "can't be described: " + panics.Describe(v)
			changes = []Change{{Action: d.action, Object: object, Description: description}}
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

// adopt prepares the changes that an author returned for a plan.
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
			fields = append(fields, FieldChange{
				Path: f.Path,
				Old:  encoder{}.encode(f.Old),
				New:  encoder{}.encode(f.New),
			})
		}
		if isSecret(c.Object.APIVersion, c.Object.Kind) {
			Hide(fields, ShownOfSecret)
		}
		c.Fields = redact(fields)
		changes = append(changes, c)
	}
	return changes
}
