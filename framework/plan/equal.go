package plan

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// Equal reports whether two plans are the same: the same changes, with the same values, of the same
// objects, in the same order. The versions of objects do not matter: they change with every write,
// even with one that does not affect the plan. UIDs do: an object that was deleted and created
// again is another one. Sensitive values can't be compared; only their presence counts. Notes, the
// verdicts of guards, and labels and annotations that do not change do not matter.
func Equal(a, b *Plan) bool { return bytes.Equal(exact(a), exact(b)) }

// Difference returns the difference between the plans for people: lines with "-" are only in a, and
// lines with "+" only in b. It is empty if the plans are Equal. Nothing is cut.
func Difference(a, b *Plan) string {
	before, after := exact(a), exact(b)
	if bytes.Equal(before, after) {
		return ""
	}
	lines := changedLines(statements(a), statements(b))
	if len(lines) == 0 { // they read the same, as a line break and a backslash with an n do
		lines = changedLines(indented(before), indented(after))
	}
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " ")
	}
	return strings.Join(lines, "\n") + "\n"
}

// exact returns the JSON form of everything that Equal compares. Different plans have different
// forms. The form of a nil plan is empty.
func exact(p *Plan) []byte {
	if p == nil {
		return nil
	}
	said := p.Bare()
	for i := range said.Resources {
		said.Resources[i].Notes, said.Resources[i].Verdicts = nil, nil
	}
	text, err := json.Marshal(said)
	if err != nil { // an author's Planner returned a value that is not a JSON value
		return fmt.Appendf(nil, "%+v", *said)
	}
	return text
}

// indented returns the exact form with a line for each field, safe to show.
func indented(exact []byte) string {
	var text bytes.Buffer
	if err := json.Indent(&text, exact, "", "  "); err != nil {
		return Escape(string(exact))
	}
	lines := strings.Split(text.String(), "\n")
	for i, line := range lines {
		lines[i] = Escape(line)
	}
	return strings.Join(lines, "\n")
}

// statements returns the whole plan in readable form, one statement a line. It is empty for a nil
// plan.
func statements(p *Plan) string {
	if p == nil {
		return ""
	}
	var b strings.Builder
	say := func(indent int, format string, args ...any) {
		b.WriteString(strings.Repeat("  ", indent) + Escape(fmt.Sprintf(format, args...)) + "\n")
	}
	say(0, "%s of %s", p.Event, identity(p.Object))
	say(0, "framework %q, resource set %q", p.Framework, p.ResourceSet)
	say(0, "%s %s", p.Outcome, p.Reason)
	for _, r := range p.Resources {
		say(0, "resource %q", r.Name)
		for _, c := range r.Changes {
			say(1, "%s %s", c.Action, identity(c.Object))
			if c.Description != "" {
				say(2, "%s", c.Description)
			}
			for _, f := range c.Fields {
				say(2, "%s", f)
			}
		}
		if r.Opaque {
			say(1, "can't tell what it would change")
		}
		if r.Skipped != "" {
			say(1, "skipped: %s", r.Skipped)
		}
		if r.Error != "" {
			say(1, "error: %s", r.Error)
		}
	}
	return b.String()
}

func identity(o Object) string {
	text := strings.TrimSpace(o.APIVersion + " " + o.String())
	if o.UID != "" {
		text += fmt.Sprintf(" (UID %s)", o.UID)
	}
	return text
}
