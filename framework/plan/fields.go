package plan

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/operatorkit/operatorkit/context/secretscontext"
)

// Redacted replaces values that must not be shown.
const Redacted = secretscontext.Redacted

// FieldChange is the change of one field.
type FieldChange struct {
	// Path is the place of the field, such as spec.template.spec.containers[name=web].image.
	Path string `json:"path"`
	// Old is the previous value, and nil for a new field. It is a JSON value.
	Old any `json:"old,omitempty"`
	// New is the value afterwards, and nil for a removed field. It is a JSON value.
	New any `json:"new,omitempty"`
	// Sensitive is true if the values must not be shown. Existing values in Old and New are then
	// Redacted.
	Sensitive bool `json:"sensitive,omitempty"`
}

// String returns the whole change on one line, without escaping. For a terminal use WriteText.
func (f FieldChange) String() string {
	switch {
	case f.Sensitive:
		return f.Path + ": " + f.changed()
	case f.Old == nil:
		return fmt.Sprintf("%s: %s", f.Path, jsonText(f.New))
	case f.New == nil:
		return fmt.Sprintf("%s: %s removed", f.Path, jsonText(f.Old))
	}
	return fmt.Sprintf("%s: %s -> %s", f.Path, jsonText(f.Old), jsonText(f.New))
}

// changed describes the change of a sensitive field without its values.
func (f FieldChange) changed() string {
	switch {
	case f.Old == nil:
		return Redacted
	case f.New == nil:
		return "(sensitive, removed)"
	}
	return "(sensitive, changed)"
}

// Hidden returns the change without its values.
func (f FieldChange) Hidden() FieldChange {
	hidden := FieldChange{Path: f.Path, Sensitive: true}
	if f.Old != nil {
		hidden.Old = Redacted
	}
	if f.New != nil {
		hidden.New = Redacted
	}
	return hidden
}

// Hide removes the values of all fields unless their path is shown. It changes fields.
func Hide(fields []FieldChange, shown func(path string) bool) {
	for i, f := range fields {
		if !shown(f.Path) {
			fields[i] = f.Hidden()
		}
	}
}

// Below reports whether a path is one of the places, or the path of a field in one of them.
func Below(path string, places ...string) bool {
	for _, place := range places {
		rest, ok := strings.CutPrefix(path, place)
		if ok && (rest == "" || rest[0] == '.' || rest[0] == '[') {
			return true
		}
	}
	return false
}

// jsonText returns a value as JSON, with < and > unchanged.
func jsonText(value any) string {
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return fmt.Sprint(value)
	}
	return strings.TrimSuffix(b.String(), "\n")
}
