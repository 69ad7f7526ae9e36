package plan

import (
	"fmt"
	"reflect"
)

// other describes the change of an item that is neither a Kubernetes object nor a Changer.
func (d describer) other(t item) Change {
	change := Change{Action: d.action, Object: t.name()}
	before, found := d.otherBefore(change.Object, t)
	if w, ok := as[Describer](t.value); ok {
		change.Description = w.DescribeChange()
		return change
	}
	if confidential(t.value) {
		change.Description = Redacted
		if d.action == Update {
			change.Description = "(sensitive, changed)"
		}
		return change
	}
	if s, ok := as[fmt.Stringer](t.value); ok && !holdsSecret(t) && (!found || !holdsSecret(before)) {
		change.Description = s.String()
		if old, ok := stringBefore(before, found); ok && old != change.Description {
			change.Description = old + " -> " + change.Description
		}
		return change
	}
	return d.value(change, t, before, found)
}

// value describes the change of an item by its content.
func (d describer) value(change Change, t, before item, found bool) Change {
	var old any
	if found {
		old = encoder{}.encode(before.value.Interface())
	}
	now := encoder{onlySet: !found}.encode(t.value.Interface())
	fields, isObject := now.(map[string]any)
	if !isObject {
		change.Description = d.sentence(change.Object, old, now)
		return change
	}
	if d.action == Delete {
		return change
	}
	was, _ := old.(map[string]any)
	change.Fields = redact(Diff(was, fields))
	return change
}

// sentence describes a value without fields. A value that is its own name needs no description.
func (d describer) sentence(object Object, old, now any) string {
	switch {
	case hasDigest(now) || hasDigest(old):
		return Redacted
	case object.Name == fmt.Sprint(now):
		return ""
	case old == nil || SameValue(old, now):
		return jsonText(now)
	}
	return jsonText(old) + " -> " + jsonText(now)
}

// holdsSecret reports whether an item contains a value that must not be shown, even if its JSON
// does not contain it.
func holdsSecret(t item) bool {
	value := t.value.Interface()
	return hasDigest(encoder{}.encode(value)) || hasDigest(encoder{apart: true}.encode(value))
}

func stringBefore(before item, found bool) (string, bool) {
	if !found {
		return "", false
	}
	s, ok := as[fmt.Stringer](before.value)
	if !ok {
		return "", false
	}
	return s.String(), true
}

// otherBefore finds the item of that name in the current state.
func (d describer) otherBefore(name Object, t item) (item, bool) {
	for _, before := range d.before {
		if reflect.Indirect(before.value).Type() == reflect.Indirect(t.value).Type() && before.name() == name {
			return before, true
		}
	}
	return item{}, false
}

// name returns the name of the item: by its own methods or fields, or else its place.
func (t item) name() Object {
	o := Object{Kind: kindOf(t.value.Type()), Name: t.place}
	if m, ok := as[interface{ GetNamespace() string }](t.value); ok {
		o.Namespace = m.GetNamespace()
	}
	if m, ok := as[interface{ GetName() string }](t.value); ok {
		o.Name = m.GetName()
		return o
	}
	v := t.value
	for v.Kind() == reflect.Pointer && !v.IsNil() {
		v = v.Elem()
	}
	switch {
	case v.Kind() == reflect.Struct:
		f, ok := v.Type().FieldByName("Name")
		if ok && len(f.Index) == 1 && f.Type.Kind() == reflect.String && v.Field(f.Index[0]).String() != "" {
			o.Name = v.Field(f.Index[0]).String()
		}
	case t.listed && basic(v.Kind()) && !confidential(t.value) && !holdsSecret(t):
		o.Name = fmt.Sprint(scalar(v))
	}
	return o
}

// basic reports whether a value of this kind is short enough to be a name.
func basic(k reflect.Kind) bool {
	return k == reflect.String || k >= reflect.Bool && k <= reflect.Float64
}

// kindOf returns the name of a Go type. It is empty for unnamed types.
func kindOf(t reflect.Type) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.PkgPath() == "" {
		return ""
	}
	return t.Name()
}
