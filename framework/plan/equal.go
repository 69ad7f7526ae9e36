package plan

import (
	"fmt"
	"strings"
)

// Equal tells whether two plans say the same: the same changes, with the same values, of the same objects, in the same order.
// The versions of objects do not matter: they change with every write, also with one that changes nothing of what is
// planned. UIDs do: an object that was deleted and made anew is another one. Of sensitive values it is not known whether they
// are the same, only that they change.
func Equal(a, b *Plan) bool { return statements(a) == statements(b) }

// Difference says what the plan b says in other words than a, for people: lines with "-" are those of a only, and lines with "+"
// those of b. It is empty when the plans are Equal. Nothing is cut.
func Difference(a, b *Plan) string {
	if Equal(a, b) {
		return ""
	}
	lines := changedLines(statements(a), statements(b))
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " ")
	}
	return strings.Join(lines, "\n") + "\n"
}

// statements are all that a plan says, one a line. A plan that is nil says nothing.
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
