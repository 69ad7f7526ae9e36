package helm

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/plan"
)

// shortSecret is the length, in bytes, below which a secret value is only looked for as a whole value: as a part it would be
// found everywhere.
const shortSecret = 4

// hider keeps values that come from Secrets out of plans and messages. It finds them by what they are, in clear and in
// base64: what a template makes of them otherwise, such as a hash, it does not know.
type hider struct {
	parts []string // the longest first
	whole map[string]bool
}

// newHider returns a hider of the values that are marked in secret.
func newHider(values, secret map[string]any) *hider {
	h := &hider{whole: map[string]bool{}}
	h.add(values, secret)
	return h
}

// add hides the marked values of another version of the same values too.
func (h *hider) add(values, secret map[string]any) {
	visitSecrets(values, secret, func(value any) {
		text, ok := scalar(value)
		if !ok || text == "" {
			return
		}
		h.whole[text] = true
		for _, part := range append(strings.Split(text, "\n"), text) {
			if len(part) >= shortSecret {
				h.parts = append(h.parts, part, base64.StdEncoding.EncodeToString([]byte(part)))
			}
		}
	})
	slices.SortFunc(h.parts, func(a, b string) int { return len(b) - len(a) })
	h.parts = slices.Compact(h.parts)
}

// scalar returns a value as a template writes it. Whether something is true or nothing is no secret that could be kept.
func scalar(value any) (string, bool) {
	switch v := value.(type) {
	case nil, bool:
		return "", false
	case string:
		return v, true
	case json.Number:
		return v.String(), true
	}
	return fmt.Sprint(value), true
}

// visitSecrets calls f with each scalar that is marked, or is in something that is marked.
func visitSecrets(value, mark any, f func(any)) {
	if marked, _ := mark.(bool); marked {
		switch v := value.(type) {
		case map[string]any:
			for _, inner := range v {
				visitSecrets(inner, true, f)
			}
		case []any:
			for _, inner := range v {
				visitSecrets(inner, true, f)
			}
		default:
			f(value)
		}
		return
	}
	switch m := mark.(type) {
	case map[string]any:
		v, _ := value.(map[string]any)
		for key, inner := range m {
			visitSecrets(v[key], inner, f)
		}
	case []any:
		v, _ := value.([]any)
		for i := range min(len(m), len(v)) {
			visitSecrets(v[i], m[i], f)
		}
	}
}

// text returns a text without secrets.
func (h *hider) text(text string) string {
	for _, part := range h.parts {
		text = strings.ReplaceAll(text, part, plan.Redacted)
	}
	return text
}

// holds tells whether a JSON value has a secret in it.
func (h *hider) holds(value any) bool {
	switch v := value.(type) {
	case map[string]any:
		for key, inner := range v {
			if h.holds(key) || h.holds(inner) {
				return true
			}
		}
		return false
	case []any:
		return slices.ContainsFunc(v, h.holds)
	}
	text, ok := scalar(value)
	return ok && (h.whole[text] || slices.ContainsFunc(h.parts, func(part string) bool { return strings.Contains(text, part) }))
}

// changes hides the fields that have a secret in them.
func (h *hider) changes(changes []plan.Change) []plan.Change {
	for _, change := range changes {
		for i, field := range change.Fields {
			if !field.Sensitive && (h.holds(field.Old) || h.holds(field.New)) {
				change.Fields[i] = field.Hidden()
			}
		}
	}
	return changes
}

// error returns an error without secrets. One that has to be changed for that can be told by errors.Is still, but what it wraps
// can't be got at, because it could be printed.
func (h *hider) error(err error) error {
	if err == nil {
		return nil
	}
	said := err.Error()
	clean := h.text(said)
	if clean == said {
		return err
	}
	hidden := &hiddenError{text: clean, err: err}
	if framework.IsPermanent(err) {
		return framework.Permanent(hidden)
	}
	return hidden
}

// hiddenError is an error with another text.
type hiddenError struct {
	text string
	err  error
}

// Error implements error.
func (e *hiddenError) Error() string { return e.text }

// Is tells what the error is without showing it.
func (e *hiddenError) Is(target error) bool { return errors.Is(e.err, target) }

// marker stands for a secret value in a comparison of values, so that a change is seen and nothing else.
const marker = "\x00secret "

// veiled returns values with markers in place of the secret ones.
func veiled(value, mark any) any {
	if marked, _ := mark.(bool); marked {
		data, _ := json.Marshal(value)
		sum := sha256.Sum256(data)
		return marker + hex.EncodeToString(sum[:])
	}
	switch v := value.(type) {
	case map[string]any:
		m, _ := mark.(map[string]any)
		shown := make(map[string]any, len(v))
		for key, inner := range v {
			shown[key] = veiled(inner, m[key])
		}
		return shown
	case []any:
		m, _ := mark.([]any)
		shown := make([]any, len(v))
		for i, inner := range v {
			var markOf any
			if i < len(m) {
				markOf = m[i]
			}
			shown[i] = veiled(inner, markOf)
		}
		return shown
	}
	return value
}

// valueChanges tells in which values two releases differ.
func (h *hider) valueChanges(before, after, secret map[string]any) []plan.FieldChange {
	old, _ := veiled(before, secret).(map[string]any)
	now, _ := veiled(after, secret).(map[string]any)
	fields := plan.Diff(map[string]any{"values": old}, map[string]any{"values": now})
	for i, field := range fields {
		if hasMarker(field.Old) || hasMarker(field.New) || h.holds(field.Old) || h.holds(field.New) {
			fields[i] = field.Hidden()
		}
	}
	return fields
}

func hasMarker(value any) bool {
	switch v := value.(type) {
	case map[string]any:
		for _, inner := range v {
			if hasMarker(inner) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, hasMarker)
	case string:
		return strings.HasPrefix(v, marker)
	}
	return false
}
