package plan

import (
	"crypto/sha256"
	"encoding/json"
	"reflect"
	"slices"

	"github.com/operatorkit/operatorkit/internal/normalize"
)

// digest replaces a value that must not be shown. It can be compared, so that a change is noticed.
// It never leaves this package: redact replaces it by Redacted.
type digest struct{ sum [sha256.Size]byte }

// digestOf hides one whole value.
func digestOf(value any) any {
	if v, ok := value.(digest); ok {
		return v
	}
	b, err := json.Marshal(value)
	if err != nil {
		// These are numbers that JSON does not support. Only a change between them goes unnoticed.
		b = nil
	}
	return digest{sha256.Sum256(b)}
}

// hideValues hides the values of a Secret, or of another sensitive Kubernetes object. The names of
// its fields stay. It changes the object.
func hideValues(value any, path string) any {
	if path != "" && ShownOfSecret(path) || value == nil {
		return value
	}
	fields, ok := value.(map[string]any)
	if !ok || len(fields) == 0 && path != "" {
		return digestOf(value)
	}
	for name, field := range fields {
		inner := name
		if path != "" {
			inner = path + Segment(name)
		}
		fields[name] = hideValues(field, inner)
	}
	return fields
}

// hideSecret hides the values of a Secret. It changes the object.
func hideSecret(object map[string]any) any {
	normalize.FoldText(object)
	return hideValues(object, "")
}

// hideSecrets hides the values of all Secrets in a JSON value: in objects that are Secrets, in the
// items of lists of Secrets, and in texts that hold one. It changes the value.
func hideSecrets(value any, isSecret func(map[string]any) bool) any {
	switch v := value.(type) {
	case string:
		if quotesSecret(v) {
			return digestOf(v)
		}
	case []any:
		for i := range v {
			v[i] = hideSecrets(v[i], isSecret)
		}
	case map[string]any:
		if isSecret(v) {
			return hideSecret(v)
		}
		if items, ok := v["items"].([]any); ok && isSecretList(v) {
			for _, item := range items {
				if object, ok := item.(map[string]any); ok {
					hideSecret(object)
				}
			}
		}
		for name := range v {
			v[name] = hideSecrets(v[name], isSecret)
		}
	}
	return value
}

// redact makes the result of Diff safe to show. It changes the fields.
func redact(fields []FieldChange) []FieldChange {
	for i, f := range fields {
		if hasDigest(f.Old) || hasDigest(f.New) {
			fields[i] = f.Hidden()
		}
	}
	return fields
}

func hasDigest(value any) bool {
	switch v := value.(type) {
	case digest:
		return true
	case []any:
		return slices.ContainsFunc(v, hasDigest)
	case map[string]any:
		for _, field := range v {
			if hasDigest(field) {
				return true
			}
		}
	}
	return false
}

// confidential reports whether a value says that it must not be shown.
func confidential(v reflect.Value) bool {
	c, ok := as[Confidential](v)
	return ok && c.Sensitive()
}

// Scrub returns changes with every text replaced by the result of scrub. It is for a caller that
// knows values that must not be shown. A field is sensitive if no difference remains. The names of
// Kubernetes objects stay. The given changes are not changed.
func Scrub(changes []Change, scrub func(string) string) []Change {
	shown := slices.Clone(changes)
	for i := range shown {
		c := &shown[i]
		c.Description = scrub(c.Description)
		if c.Object.Kind == "" {
			c.Object.Name = scrub(c.Object.Name)
		}
		c.Labels, c.Annotations = scrubTexts(c.Labels, scrub), scrubTexts(c.Annotations, scrub)
		c.Fields = slices.Clone(c.Fields)
		for j, f := range c.Fields {
			f.Path = scrub(f.Path)
			before, after := scrubValue(f.Old, scrub), scrubValue(f.New, scrub)
			if !f.Sensitive && SameValue(before, after) {
				f = f.Hidden()
			} else {
				f.Old, f.New = before, after
			}
			c.Fields[j] = f
		}
	}
	return shown
}

// scrubValue returns a JSON value with every text scrubbed, and Redacted for what must not be shown.
func scrubValue(value any, scrub func(string) string) any {
	switch v := value.(type) {
	case digest:
		return Redacted
	case string:
		return scrub(v)
	case []any:
		scrubbed := make([]any, 0, len(v))
		for _, element := range v {
			scrubbed = append(scrubbed, scrubValue(element, scrub))
		}
		return scrubbed
	case map[string]any:
		scrubbed := make(map[string]any, len(v))
		for name, field := range v {
			scrubbed[scrub(name)] = scrubValue(field, scrub)
		}
		return scrubbed
	}
	return value
}
