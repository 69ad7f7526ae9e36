package inspector

import (
	"fmt"
	"strings"
	"time"

	"github.com/operatorkit/operatorkit/framework"
)

// barWidth is the width of the drawing of a reconciliation's resources.
const barWidth = 1000.0

// minBar is the width that the shortest bar has, so that it can be seen.
const minBar = 4.0

// bar is something that took time, as a piece of a drawing.
type bar struct {
	X, Width float64
	// Class is what it was: whole for a resource with steps, compute or apply for these, run for a plain resource, and
	// failed.
	Class string
	// Label says the same in words.
	Label string
}

// timelineRow is one resource in the timeline of a reconciliation.
type timelineRow struct {
	framework.ResourceRecord
	Bars []bar
	// Reached tells whether the resource ran.
	Reached bool
	// Retried is how often steps were tried again.
	Retried int
}

// timelineOf draws the resources of a reconciliation as bars in its time.
func timelineOf(r *framework.Record) []timelineRow {
	rows := make([]timelineRow, 0, len(r.Resources))
	total := r.Duration
	for _, of := range r.Resources {
		total = max(total, of.Start+of.Duration)
	}
	for _, of := range r.Resources {
		row := timelineRow{ResourceRecord: of, Reached: of.Duration > 0 || of.Skipped == "" || len(of.Steps) > 0}
		if row.Reached {
			what := "whole"
			if len(of.Steps) == 0 {
				what = "run"
			}
			row.Bars = append(row.Bars, newBar(of.Start, of.Duration, total, class(what, of.Error != ""), of.Name))
		}
		for _, s := range of.Steps {
			what := "compute"
			if strings.HasPrefix(string(s.Step), "apply") {
				what = "apply"
			}
			row.Bars = append(row.Bars, newBar(s.Start, s.Duration, total, class(what, s.Failed), strings.ReplaceAll(string(s.Step), "_", " ")))
			row.Retried += max(s.Attempts-1, 0)
		}
		if strings.Contains(r.Error, row.Error) {
			row.Error = "" // it is told with the reconciliation
		}
		rows = append(rows, row)
	}
	return rows
}

func class(what string, failed bool) string {
	if failed {
		return what + " failed"
	}
	return what
}

func newBar(start, took, total time.Duration, class, what string) bar {
	scale := barWidth / float64(max(total, 1))
	b := bar{X: float64(start) * scale, Width: max(float64(took)*scale, minBar), Class: class, Label: what + ": " + duration(took)}
	b.X = min(b.X, barWidth-b.Width)
	return b
}

// The size of a chart.
const (
	chartWidth  = sampleCount
	chartHeight = 60.0
)

// chart is figures over the last minutes, the newest at the right.
type chart struct {
	Title string
	// Now and Most are the newest figure and the largest one, with their units.
	Now, Most string
	// Area is the path of what is below the line, Line that of the line, and Bad that of the failures among the figures.
	Area, Line, Bad string
}

// chartsOf draws what a framework has had to do.
func chartsOf(o frameworkOverview) []chart {
	waiting, oldest, reconciled, failed := series{}, series{}, series{}, series{}
	for _, s := range o.Samples {
		waiting = append(waiting, float64(s.Waiting))
		oldest = append(oldest, float64(s.OldestWait))
		reconciled = append(reconciled, float64(s.Reconciled))
		failed = append(failed, float64(s.Failed))
	}
	number := func(v float64) string { return count(int(v)) }
	rate := func(v float64) string { return count(int(v)) + "/s" }
	since := func(v float64) string { return duration(time.Duration(v)) }
	reconciliations := reconciled.chart("Reconciliations", rate)
	if _, most := failed.nowAndMost(); most > 0 {
		_, scale := reconciled.nowAndMost()
		reconciliations.Bad = failed.line(scale)
	}
	return []chart{waiting.chart("Waiting objects", number), oldest.chart("Longest wait", since), reconciliations}
}

// series are figures, one for each second.
type series []float64

func (s series) chart(title string, text func(float64) string) chart {
	now, most := s.nowAndMost()
	line := s.line(most)
	c := chart{Title: title, Now: text(now), Most: text(most), Line: line}
	if len(s) > 0 {
		c.Area = fmt.Sprintf("%sV%g H%d z", line, chartHeight, chartWidth-len(s))
	}
	return c
}

func (s series) nowAndMost() (now, most float64) {
	for _, v := range s {
		now, most = v, max(most, v)
	}
	return now, most
}

// line is a path through the figures, the largest of which is most.
func (s series) line(most float64) string {
	var b strings.Builder
	for i, v := range s {
		command := 'L'
		if i == 0 {
			command = 'M'
		}
		fmt.Fprintf(&b, "%c%d %.1f ", command, chartWidth-len(s)+i, chartHeight-1-(chartHeight-3)*v/max(most, 1))
	}
	return b.String()
}
