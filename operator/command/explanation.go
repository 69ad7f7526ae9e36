package command

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/operator/inspector"
)

// explanation writes what happened to an object, for people.
type explanation struct {
	out     bytes.Buffer
	options plan.TextOptions
	now     time.Time
}

// writeExplanation writes the reconciliations of an object, the newest last, where a terminal ends.
func writeExplanation(w io.Writer, o *inspector.Object, options plan.TextOptions, now time.Time) error {
	e := &explanation{options: options, now: now}
	o.Object.Namespace, o.Object.Name = cmp.Or(o.Object.Namespace, o.Namespace), cmp.Or(o.Object.Name, o.Name)
	o.Object.Kind = cmp.Or(o.Object.Kind, o.Kind)
	e.line(0, "%s (framework %s): %s", o.Object, o.Framework, o.State)
	if o.Unreached != "" {
		e.line(1, "%s: what it has done is not shown", o.Unreached)
	} else if o.Owner != "" {
		e.line(1, "it is reconciled by the replica %s", o.Owner)
	}
	if o.Failures > 0 {
		e.line(1, "it fails since %s, %d times in a row", e.time(o.FailingSince), o.Failures)
	}
	if !o.NextTry.IsZero() {
		e.line(1, "it is looked at again %s", e.next(o.NextTry))
	}
	for _, f := range o.Fights {
		e.line(1, "the change is undone again and again: %s; %d times since %s, next try %s", f, f.Times, e.time(f.Since), e.next(f.Next))
	}
	if len(o.Reconciliations) == 0 {
		e.line(1, "no reconciliation of it is known")
	}
	for _, r := range slices.Backward(o.Reconciliations) {
		e.out.WriteByte('\n')
		if err := e.reconciliation(r); err != nil {
			return err
		}
	}
	_, err := w.Write(e.out.Bytes())
	return err
}

// line writes a line. Control characters, which could drive a terminal, are escaped.
func (e *explanation) line(indent int, format string, args ...any) {
	e.out.WriteString(strings.Repeat("  ", indent))
	e.out.WriteString(plan.Escape(fmt.Sprintf(format, args...)))
	e.out.WriteByte('\n')
}

func (e *explanation) reconciliation(r inspector.Reconciliation) error {
	about := []string{string(cmp.Or(r.Event, "look"))}
	if r.ResourceSet != "" {
		about = append(about, "resource set "+r.ResourceSet)
	}
	e.line(0, "%s  %s: %s in %s", e.time(r.Started), strings.Join(about, ", "), r.Outcome, short(r.Duration))
	if r.Repeats > 0 {
		e.line(1, "like %d before it since %s", r.Repeats, e.time(r.RepeatedSince))
	}
	if r.Reason != "" {
		e.line(1, "%s", r.Reason)
	}
	e.triggers(r.Record)
	if r.TraceID != "" {
		e.line(1, "trace: %s", r.TraceID)
	}
	for _, signal := range r.Signals {
		e.line(1, "signal: %s", signal)
	}
	for _, resource := range r.Resources {
		if err := e.resource(resource); err != nil {
			return err
		}
	}
	if r.Error != "" {
		e.line(1, "error: %s", r.Error)
	}
	return nil
}

// triggers says why the object was looked at.
func (e *explanation) triggers(r *framework.Record) {
	for _, t := range r.Triggers {
		e.line(1, "because of: %s", t)
	}
	if more := r.TriggerCount - len(r.Triggers); more > 0 {
		e.line(1, "and %d more", more)
	}
}

func (e *explanation) resource(r framework.ResourceRecord) error {
	text := r.Name
	if r.Duration > 0 {
		text += " (" + short(r.Duration) + ")"
	}
	switch {
	case r.Skipped != "":
		text += ": " + r.Skipped
	case len(r.Changes) == 0 && r.Error == "":
		text += ": nothing to do"
	}
	e.line(1, "%s", text)
	return plan.WriteChangesText(&e.out, r.Changes, e.options)
}

// time is a time as people say it, in their zone.
func (e *explanation) time(t time.Time) string {
	layout := time.DateTime
	if t.Local().Format(time.DateOnly) == e.now.Local().Format(time.DateOnly) {
		layout = time.TimeOnly
	}
	return t.Local().Format(layout)
}

// next says when something is.
func (e *explanation) next(t time.Time) string {
	if wait := t.Sub(e.now).Round(time.Second); wait > 0 {
		return fmt.Sprintf("in %s, at %s", wait, e.time(t))
	}
	return "now"
}

// short is a duration in three digits or so.
func short(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return d.Round(time.Microsecond).String()
	case d < time.Second:
		return d.Round(100 * time.Microsecond).String()
	}
	return d.Round(10 * time.Millisecond).String()
}
