package plan

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/operatorkit/operatorkit/internal/cut"
)

// TextOptions are the options of WriteText.
type TextOptions struct {
	// Color adds escape sequences for colours. ColorWanted reports whether it should be set.
	// Default: none.
	Color bool
	// MaxValue is the maximum number of runes of a value, or of a line of one; the rest is cut.
	// Default: 200. Negative: nothing is cut.
	MaxValue int
	// MaxLines is the maximum number of lines of a value with several lines, or of its changes; the
	// rest is cut. Default: 20. Negative: nothing is cut.
	MaxLines int
}

const (
	defaultMaxValue = 200
	defaultMaxLines = 20
)

// WriteText writes plans for people: creations with a green "+", updates with a yellow "~" and
// below it the fields that change, deletions with a red "-", and last a line such as "2 to create,
// 1 to update, 0 to delete". Before that, changes that three or more plans have are listed with the
// number of plans, whatever the names of the changed objects. If there are several plans, plans without changes are only counted. In
// a created object, the fields by which a resource of this module finds it again are one line,
// which names the owner. In a status, only the conditions are shown and the other fields counted,
// unless nothing is to be cut.
//
// Nothing in a plan can control the terminal: control characters are written as \u and their
// number. The text is for people and may look different in a later version; programs should use
// WriteJSON.
func WriteText(w io.Writer, plans []*Plan, options TextOptions) error {
	p := newPrinter(options)
	var sum Counts
	quiet := 0
	for _, plan := range plans {
		sum = sum.Add(plan.Counts())
		if len(plans) > 1 && plan.quiet() {
			quiet++
			continue
		}
		p.plan(plan)
		p.blank()
	}
	if quiet > 0 {
		p.line(0, faint, fmt.Sprintf("%d of %d objects need no change", quiet, len(plans)))
		p.blank()
	}
	p.groups(plans)
	p.line(0, bold, sum.String())
	_, err := w.Write(p.out.Bytes())
	return err
}

// quiet reports whether there is nothing to write about the plan.
func (p *Plan) quiet() bool {
	if p.Outcome != Planned {
		return false
	}
	for _, r := range p.Resources {
		if !r.quiet() {
			return false
		}
	}
	return true
}

func (r Resource) quiet() bool {
	return len(r.Changes) == 0 && len(r.Verdicts) == 0 && len(r.Notes) == 0 && !r.Opaque && r.Skipped == "" && r.Error == ""
}

// printer writes the lines of a text.
type printer struct {
	options TextOptions
	out     bytes.Buffer
}

func newPrinter(options TextOptions) *printer {
	if options.MaxValue == 0 {
		options.MaxValue = defaultMaxValue
	}
	if options.MaxLines == 0 {
		options.MaxLines = defaultMaxLines
	}
	return &printer{options: options}
}

// line writes a line. The text is escaped already.
func (p *printer) line(indent int, s style, text string) {
	p.out.WriteString(strings.Repeat("  ", indent))
	if p.options.Color && s != regular {
		fmt.Fprintf(&p.out, "\x1b[%sm%s\x1b[0m\n", s, text)
		return
	}
	p.out.WriteString(text + "\n")
}

func (p *printer) blank() { p.out.WriteByte('\n') }

func (p *printer) plan(plan *Plan) {
	about := []string{string(plan.Event)}
	if plan.Framework != "" {
		about = append(about, "framework "+plan.Framework)
	}
	if plan.ResourceSet != "" {
		about = append(about, "resource set "+plan.ResourceSet)
	}
	p.line(0, bold, Escape(fmt.Sprintf("%s (%s)", plan.Object, strings.Join(about, ", "))))
	switch plan.Outcome {
	case Failed:
		p.line(1, red, "failed: "+Escape(plan.Reason))
	case Canceled:
		p.line(1, yellow, "cancelled: "+Escape(plan.Reason))
	case Ignored:
		p.line(1, faint, "left alone: "+Escape(plan.Reason))
	}
	if len(plan.Resources) == 0 && plan.Outcome == Planned {
		p.line(1, faint, "nothing to do")
	}
	for _, r := range plan.Resources {
		p.resource(r)
	}
}

func (p *printer) resource(r Resource) {
	name := Escape(r.Name)
	if r.quiet() {
		p.line(1, faint, name+": nothing to do")
		return
	}
	p.line(1, regular, name)
	for _, c := range r.Changes {
		p.change(c)
	}
	for _, v := range r.Verdicts {
		color := yellow
		if v.Action == Denied {
			color = red
		}
		p.line(2, color, "! "+Escape(v.String()))
	}
	for _, note := range r.Notes {
		p.line(2, faint, "· "+p.short(Escape(note)))
	}
	if r.Opaque {
		p.line(2, yellow, "? runs, and can't tell what it would change")
	}
	if r.Skipped != "" {
		p.line(2, faint, "skipped: "+Escape(r.Skipped))
	}
	if r.Error != "" {
		p.line(2, red, "error: "+Escape(r.Error))
	}
}

func (p *printer) change(c Change) {
	mark := marks[c.Action]
	about := Escape(c.Object.String())
	if c.Description != "" {
		about = strings.TrimPrefix(about+": "+p.short(Escape(c.Description)), ": ")
	}
	p.line(2, mark.style, strings.TrimSpace(mark.text+" "+about))
	owner, fields := ownerAndRest(c)
	if owner != nil {
		p.field(FieldChange{Path: "owner", New: owner})
	}
	reported := 0
	for _, f := range fields {
		if p.options.MaxValue >= 0 &&
			strings.HasPrefix(f.Path, statusPrefix) && !strings.HasPrefix(f.Path, conditionsPrefix) {
			reported++
			continue
		}
		p.field(f)
	}
	switch reported {
	case 0:
	case 1:
		p.line(fieldIndent, faint, "… and a field of the status")
	default:
		p.line(fieldIndent, faint, fmt.Sprintf("… and %d fields of the status", reported))
	}
}

// Only the conditions of a status are shown: an operator's report about an object follows from the
// rest of a plan.
const (
	statusPrefix     = "status."
	conditionsPrefix = "status.conditions["
)

func (p *printer) short(text string) string {
	if p.options.MaxValue < 0 {
		return text
	}
	return cut.Runes(text, p.options.MaxValue)
}
