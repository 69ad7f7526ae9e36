package inspector

import (
	"encoding/json"
	"fmt"
	"html/template"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/internal/cut"
)

// maxShown is how many characters of a value a page shows, and maxBrief how many bytes of an error a list does.
const (
	maxShown = 2000
	maxBrief = 200
)

// functions are what templates can call.
var functions = template.FuncMap{
	"count":       count,
	"duration":    duration,
	"instant":     func(t time.Time) string { return t.Format(time.RFC3339Nano) },
	"clock":       func(t time.Time) string { return t.Format("2 Jan 15:04:05") },
	"objectQuery": func(s ObjectSummary) template.URL { return template.URL(objectQuery(s)) },
	"list":        func(c *plan.Change) []plan.Change { return []plan.Change{*c} },
	"there":       func(v any) bool { return v != nil },
	"few":         func(all []plan.Change) []plan.Change { return trimChanges(slices.Clone(all)) },
	"brief":       brief,
	"value":       value,
	"visible":     visible,
	"lines":       func(v any) bool { s, ok := v.(string); return ok && strings.ContainsRune(s, '\n') },
	"why":         why,
	"counts":      countsOf,
	"timeline":    timelineOf,
	"charts":      chartsOf,
	"mark":        func(state any) string { return marks[State(fmt.Sprint(state))] },
	"stateOf":     stateOf,
	"name":        func(s ObjectSummary) string { return fullName(s.Namespace, s.Name) },
	"title":       func(s State) string { return strings.ToUpper(string(s[:1])) + string(s[1:]) },
	"anchor":      func(r Reconciliation) string { return fmt.Sprintf("at-%d", r.Started.UnixNano()) },
	"verb":        verbOf,
	"sign": func(a plan.Action) string {
		return map[plan.Action]string{plan.Create: "+", plan.Update: "~", plan.Delete: "−"}[a]
	},
}

// count writes a whole number that is not negative with spaces between its thousands.
func count(n any) string {
	digits := fmt.Sprint(n)
	var b strings.Builder
	for i, d := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteRune('\u202f') // a narrow space that does not break
		}
		b.WriteRune(d)
	}
	return b.String()
}

// duration writes a duration as people read it: two or three digits that matter, and a unit.
func duration(d time.Duration) string {
	scaled := func(unit time.Duration, name string) string {
		v := float64(d) / float64(unit)
		digits := 0
		if v < 10 {
			digits = 1
		}
		return strconv.FormatFloat(v, 'f', digits, 64) + "\u00a0" + name
	}
	switch {
	case d <= 0:
		return "0\u00a0s"
	case d < 999500*time.Nanosecond:
		return scaled(time.Microsecond, "µs")
	case d < 999500*time.Microsecond:
		return scaled(time.Millisecond, "ms")
	case d < time.Minute:
		return scaled(time.Second, "s")
	case d < time.Hour:
		return fmt.Sprintf("%d\u00a0min %d\u00a0s", d/time.Minute, d%time.Minute/time.Second)
	}
	return fmt.Sprintf("%d\u00a0h %d\u00a0min", d/time.Hour, d%time.Hour/time.Minute)
}

// value writes a value of a field: JSON, but texts of several lines as they are.
func value(v any) string {
	if s, ok := v.(string); ok && strings.ContainsRune(s, '\n') {
		return shown(s)
	}
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return shown(fmt.Sprint(v))
	}
	return shown(strings.TrimSuffix(b.String(), "\n"))
}

// visible shows characters that have no shape of their own, or change that of others, by their numbers.
func visible(s string) string {
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		lines[i] = plan.Escape(line)
	}
	return strings.Join(lines, "\n")
}

// shown is as much of a value as a page shows.
func shown(text string) string { return cut.Runes(visible(text), maxShown) }

// brief is the beginning of an error, for lists.
func brief(text string) string { return cut.Text(text, maxBrief) }

func fullName(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}

// why says in words why an object was reconciled.
func why(r *framework.Record) string {
	var reasons []string
	for _, t := range r.Triggers {
		reasons = append(reasons, reason(t))
	}
	text := strings.Join(reasons, ", ")
	if more := r.TriggerCount - len(r.Triggers); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

func reason(t framework.Trigger) string {
	subject := "it"
	if t.Name != "" {
		subject = fullName(t.Namespace, t.Name) + " of " + t.Source
	}
	switch t.Cause {
	case framework.CauseChange:
		return subject + " was " + t.Event
	case framework.CauseBacklog:
		return subject + " was there at the start"
	case framework.CauseResync:
		return "resync of " + t.Source
	case framework.CauseRetry:
		return "a retry"
	case framework.CauseRequeue:
		if t.Resource != "" {
			return "a requeue by " + t.Resource
		}
		return "a requeue"
	case framework.CauseEnqueue:
		return "enqueued by the operator"
	}
	return string(t.Cause)
}

// countsOf counts what a reconciliation changed.
func countsOf(r *framework.Record) plan.Counts {
	var n plan.Counts
	for _, of := range r.Resources {
		n = n.Add((&plan.Plan{Resources: []plan.Resource{{Changes: of.Changes}}}).Counts())
	}
	return n
}

// stateOf is the state in which a reconciliation left its object.
func stateOf(o framework.Outcome) State {
	switch o {
	case framework.Failed:
		return failing
	case framework.Waiting, framework.Canceled:
		return waiting
	case framework.Planned:
		return planned
	case framework.Ignored:
		return leftAlone
	}
	return fine
}

// verbOf says what a reconciliation did.
func verbOf(r *framework.Record) string {
	switch {
	case r.Outcome == framework.Failed:
		return "failed"
	case r.Outcome == framework.Canceled:
		return "cancelled"
	case r.Outcome == framework.Waiting:
		return "waits"
	case r.Outcome == framework.Planned:
		return "planned"
	case r.Outcome == framework.Ignored:
		return "left alone"
	case r.Event == plan.DeleteEvent:
		return "deleted"
	case countsOf(r).Any():
		return "changed"
	}
	return "as it should be"
}

// marks are shapes for states, so that these are told apart without colours: the drawing of a path in a square of 12.
var marks = map[State]string{
	fine:      "M2 6.5 4.8 9.3 10 3",
	failing:   "M6 1.5 11 10.5H1z M6 5v2.4 M6 9v.1",
	waiting:   "M6 1.5a4.5 4.5 0 1 0 .01 0z M6 3.5V6l1.8 1.2",
	planned:   "M2 3h8 M2 6h5.5 M2 9h7",
	leftAlone: "M4 2.5v7 M8 2.5v7",
	gone:      "M2.5 6h7",
	unseen:    "M6 2.5a3.5 3.5 0 1 0 .01 0z",
}
