package native

import (
	"strings"

	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
)

// confidential is what must not be shown of a service. Carriers hide it where they know that it is secret; here it is found
// wherever it comes up, such as in an error of an API server that quotes the field of an object.
type confidential struct {
	// texts are the values of Secrets.
	texts []string
	// everything tells that the manifests themselves are in a Secret: no field of what they make is shown.
	everything bool
}

// text hides values of Secrets in what people read.
func (c *confidential) text(s string) string {
	if c == nil {
		return s
	}
	for _, secret := range c.texts {
		s = strings.ReplaceAll(s, secret, plan.Redacted)
	}
	return s
}

// err hides values of Secrets in an error, which stays what it is for errors.Is and errors.As.
func (c *confidential) err(err error) error {
	if err == nil || c == nil {
		return err
	}
	text := c.text(err.Error())
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

func (e *hiddenError) Error() string { return e.text }
func (e *hiddenError) Unwrap() error { return e.err }

// changes returns changes without the values that must not be shown. The changes given stay as they are.
func (c *confidential) changes(changes []plan.Change) []plan.Change {
	if c == nil || !c.everything && len(c.texts) == 0 {
		return changes
	}
	hidden := make([]plan.Change, len(changes))
	for i, change := range changes {
		fields := make([]plan.FieldChange, len(change.Fields))
		for j, field := range change.Fields {
			if c.everything && !plan.Below(field.Path, "apiVersion", "kind", "metadata.name", "metadata.namespace") ||
				c.shows(field.Old) || c.shows(field.New) {
				field = field.Hidden()
			}
			fields[j] = field
		}
		change.Fields, change.Description = fields, c.text(change.Description)
		hidden[i] = change
	}
	return hidden
}

// shows tells whether a JSON value has a secret in it.
func (c *confidential) shows(value any) bool {
	switch value := value.(type) {
	case string:
		return c.text(value) != value
	case []any:
		for _, element := range value {
			if c.shows(element) {
				return true
			}
		}
	case map[string]any:
		for _, field := range value {
			if c.shows(field) {
				return true
			}
		}
	}
	return false
}

func (c *confidential) notes(notes []string) (shown []string) {
	for _, note := range notes {
		shown = append(shown, c.text(note))
	}
	return shown
}

// result hides the same in all that a carrier says. What the carrier hands to itself stays as it is.
func (c *confidential) result(r *carrier.Result) carrier.Result {
	shown := *r
	shown.Changes, shown.Drift, shown.Notes = c.changes(r.Changes), c.changes(r.Drift), c.notes(r.Notes)
	shown.Health.Message = c.text(r.Health.Message)
	return shown
}
