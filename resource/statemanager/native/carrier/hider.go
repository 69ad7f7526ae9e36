package carrier

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/operatorkit/operatorkit/framework/plan"
)

// shortSecret is the length, in bytes, below which a secret value is only looked for as a whole value: as a part it would be
// found everywhere.
const shortSecret = 4

// Hider keeps values that come from Secrets out of what people read. It finds them by what they are, wherever they come up, in clear and in
// base64: what a template makes of them otherwise, such as a hash, it does not know. It is not safe for concurrent use while something is
// added. Nil hides nothing.
type Hider struct {
	// Everything hides all fields of changes but what names an object: what they are made of is in a Secret itself.
	Everything bool

	parts []string // the longest first
	whole map[string]bool
}

// NewHider returns a hider of the values that are marked in secret: the same structure, with true for what must not be shown.
func NewHider(values, secret map[string]any) *Hider {
	h := &Hider{whole: map[string]bool{}}
	h.Add(values, secret)
	return h
}

// Add hides the marked values of another version of the same values too.
func (h *Hider) Add(values, secret map[string]any) {
	visitSecrets(values, secret, func(value any) {
		text, ok := scalar(value)
		if !ok || text == "" {
			return
		}
		h.whole[text] = true
		h.take(text)
	})
	h.sort()
}

// AddTexts hides texts that are as long as a secret, wherever they come from.
func (h *Hider) AddTexts(texts []string) {
	for _, text := range texts {
		h.take(text)
	}
	h.sort()
}

// take looks for a text from now on, and for each line of it: a message may show a single one.
func (h *Hider) take(text string) {
	for _, part := range append(strings.Split(text, "\n"), text) {
		if trimmed := strings.TrimSpace(part); len(trimmed) >= shortSecret {
			h.parts = append(h.parts, trimmed, base64.StdEncoding.EncodeToString([]byte(trimmed)), base64.StdEncoding.EncodeToString([]byte(part)))
		}
	}
}

func (h *Hider) sort() {
	slices.SortFunc(h.parts, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	h.parts = slices.Compact(h.parts)
}

// Text returns a text without secrets.
func (h *Hider) Text(text string) string {
	if h == nil {
		return text
	}
	for _, part := range h.parts {
		text = strings.ReplaceAll(text, part, plan.Redacted)
	}
	return text
}

// Holds tells whether a JSON value has a secret in it.
func (h *Hider) Holds(value any) bool {
	if h == nil {
		return false
	}
	switch v := value.(type) {
	case map[string]any:
		for key, inner := range v {
			if h.Holds(key) || h.Holds(inner) {
				return true
			}
		}
		return false
	case []any:
		return slices.ContainsFunc(v, h.Holds)
	}
	text, ok := scalar(value)
	return ok && (h.whole[text] || slices.ContainsFunc(h.parts, func(part string) bool { return strings.Contains(text, part) }))
}

// Changes returns changes without secrets. Those that are given stay as they are.
func (h *Hider) Changes(changes []plan.Change) []plan.Change {
	if h == nil || !h.Everything && len(h.whole)+len(h.parts) == 0 {
		return changes
	}
	hidden := make([]plan.Change, len(changes))
	for i, change := range changes {
		change.Fields = slices.Clone(change.Fields)
		for j, field := range change.Fields {
			if h.Everything && !plan.Below(field.Path, "apiVersion", "kind", "metadata.name", "metadata.namespace") ||
				h.Holds(field.Old) || h.Holds(field.New) {
				change.Fields[j] = field.Hidden()
			}
		}
		change.Description = h.Text(change.Description)
		hidden[i] = change
	}
	return hidden
}

// Result returns what a carrier says without secrets. What the carrier hands to itself stays as it is.
func (h *Hider) Result(r *Result) Result {
	shown := *r
	shown.Changes, shown.Drift, shown.Notes = h.Changes(r.Changes), h.Changes(r.Drift), slices.Clone(r.Notes)
	for i, note := range shown.Notes {
		shown.Notes[i] = h.Text(note)
	}
	shown.Health.Message = h.Text(r.Health.Message)
	return shown
}

// Error returns an error without secrets in its text. It stays what it is for errors.Is and errors.As.
func (h *Hider) Error(err error) error {
	if err == nil {
		return nil
	}
	text := h.Text(err.Error())
	if text == err.Error() {
		return err
	}
	return &hiddenError{text: text, err: err}
}

// hiddenError is an error with another text.
type hiddenError struct {
	text string
	err  error
}

// Error implements error.
func (e *hiddenError) Error() string { return e.text }

// Unwrap returns what the error is.
func (e *hiddenError) Unwrap() error { return e.err }

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
	switch v := value.(type) {
	case map[string]any:
		marks, _ := mark.(map[string]any)
		for key, inner := range v {
			if mark == true {
				visitSecrets(inner, true, f)
			} else {
				visitSecrets(inner, marks[key], f)
			}
		}
	case []any:
		marks, _ := mark.([]any)
		for i, inner := range v {
			switch {
			case mark == true:
				visitSecrets(inner, true, f)
			case i < len(marks):
				visitSecrets(inner, marks[i], f)
			}
		}
	default:
		if mark == true {
			f(value)
		}
	}
}
