package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/operatorkit/operatorkit/internal/cut"
)

// longestCell is how much of a difference a cell of the table shows, in bytes. All of it is told below.
const longestCell = 60

// row is a line of the table.
type row struct {
	subject  *subject
	outcomes []*outcome
}

// isEqual tells whether a row has nothing that is not as it should be.
func (r *row) isEqual() bool {
	return r.subject.fault == nil && !slices.ContainsFunc(r.outcomes, func(o *outcome) bool { return !o.isEqual() })
}

// columns are the steps of the table, as outcomes have them.
var columns = []string{"install", "again", "upgrade", "drift", "removal"}

// writeTable writes what became of all subjects: a row for each, and below it what cells have no room for.
func writeTable(w io.Writer, rows []*row) error {
	var notes []*deviation
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "NAME\tVERSIONS\t"+strings.ToUpper(strings.Join(columns, "\t")))
	for _, r := range rows {
		cells := []string{r.subject.name, versionsOf(r.subject)}
		if r.subject.fault != nil {
			cells = append(cells, "not tried: see below")
		}
		for _, o := range r.outcomes {
			cells = append(cells, cellOf(o, &notes))
		}
		fmt.Fprintln(table, strings.Join(cells, "\t"))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	var below strings.Builder
	for i, d := range notes {
		fmt.Fprintf(&below, "(%d) as documented in %s: %q\n", i+1, d.file, d.line)
	}
	for _, r := range rows {
		if r.subject.fault != nil {
			fmt.Fprintf(&below, "%s: %s\n", r.subject.name, strings.ReplaceAll(r.subject.fault.Error(), "\n", "; "))
		}
		for _, o := range r.outcomes {
			o.tell(&below, r.subject.name)
		}
	}
	if below.Len() > 0 {
		_, err := fmt.Fprintf(w, "\n%s", below.String())
		return err
	}
	return nil
}

func versionsOf(s *subject) string {
	switch {
	case s.old == nil:
		return ""
	case s.updated == nil:
		return s.old.String()
	}
	return s.old.String() + " → " + s.updated.String()
}

// cellOf is one place of the table.
func cellOf(o *outcome, notes *[]*deviation) string {
	switch {
	case o.skipped != "":
		return "–"
	case len(o.faults) > 0:
		return "differs: " + cut.Text(o.faults[0], longestCell) + more(len(o.faults)+len(o.differences)-1)
	case len(o.differences) > 0:
		return "differs: " + cut.Text(o.differences[0].String(), longestCell) + more(len(o.differences)-1)
	}
	text := "equal"
	for _, d := range o.explained {
		n := slices.Index(*notes, d)
		if n < 0 {
			n = len(*notes)
			*notes = append(*notes, d)
		}
		text += fmt.Sprintf(" (%d)", n+1)
	}
	return text
}

func more(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(" (and %d more)", n)
}

// cutLine is an error on one line of the table's notes.
func cutLine(err error) string {
	const longest = 300
	return cut.Text(strings.Join(strings.Fields(err.Error()), " "), longest)
}
