package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// unit is how a figure is written.
type unit string

const (
	inMicroseconds unit = "µs" // seconds from one on
	inBytes        unit = "B"
	inPercent      unit = "%"
	counted        unit = ""
)

func (u unit) format(value float64) string {
	switch u {
	case inMicroseconds:
		if value >= float64(time.Second) {
			return strconv.FormatFloat(value/float64(time.Second), 'f', 2, 64) + " s"
		}
		return strconv.FormatFloat(value/1000, 'f', 2, 64) + " µs"
	case inBytes:
		return strconv.FormatFloat(value, 'f', 0, 64) + " B"
	case inPercent:
		return strconv.FormatFloat(value, 'f', 1, 64) + " %"
	}
	return strings.TrimSuffix(strconv.FormatFloat(value, 'f', 1, 64), ".0")
}

// line is one line of the table: a measure, the contenders' figures, and the aim.
type line struct {
	Measure string `json:"measure"`
	Unit    unit   `json:"unit"`
	// Figures are the medians by the name of the contender.
	Figures map[string]float64 `json:"figures"`
	// Ratio is operatorkit's figure to controller-runtime's; 0 where there is none.
	Ratio float64 `json:"ratio,omitempty"`
	// Aim is what is aimed at; nil where figures are only reported.
	Aim *aim `json:"aim,omitempty"`
}

// aim is a bound of operatorkit's figure or of the ratio.
type aim struct {
	// AtLeast tells a lower bound from an upper one.
	AtLeast bool `json:"atLeast,omitempty"`
	// OfRatio is true for a bound of the ratio.
	OfRatio bool    `json:"ofRatio,omitempty"`
	Bound   float64 `json:"bound"`
	Met     bool    `json:"met"`
}

// compareLine is a line with the figures of both frameworks and their ratio.
func compareLine(measure string, u unit, s series, figure func(sample) float64) line {
	return line{
		Measure: measure,
		Unit:    u,
		Figures: map[string]float64{
			controllerRuntime: s.median(controllerRuntime, figure),
			operatorKit:       s.median(operatorKit, figure),
		},
		Ratio: s.ratio(operatorKit, controllerRuntime, figure),
	}
}

// reportLine is a line with a figure of operatorkit alone.
func reportLine(measure string, u unit, s series, figure func(sample) float64) line {
	return line{Measure: measure, Unit: u, Figures: map[string]float64{operatorKit: s.median(operatorKit, figure)}}
}

// ratioAtMost aims at a ratio.
func (l line) ratioAtMost(bound float64) line {
	l.Aim = &aim{OfRatio: true, Bound: bound, Met: l.Ratio <= bound}
	return l
}

// atMost aims at a figure of operatorkit.
func (l line) atMost(bound float64) line {
	l.Aim = &aim{Bound: bound, Met: l.Figures[operatorKit] <= bound}
	return l
}

// atLeast aims at a figure of operatorkit.
func (l line) atLeast(bound float64) line {
	l.Aim = &aim{AtLeast: true, Bound: bound, Met: l.Figures[operatorKit] >= bound}
	return l
}

func (l line) figure(name string) string {
	value, ok := l.Figures[name]
	if !ok {
		return "–"
	}
	return l.Unit.format(value)
}

func (l line) ratio() string {
	if l.Ratio == 0 {
		return "–"
	}
	return strconv.FormatFloat(l.Ratio, 'f', 2, 64)
}

func (l line) aim() (bound, verdict string) {
	if l.Aim == nil {
		return "–", "–"
	}
	sign, u := "≤ ", l.Unit
	if l.Aim.AtLeast {
		sign = "≥ "
	}
	bound = sign + u.format(l.Aim.Bound)
	if l.Aim.OfRatio {
		bound = sign + "ratio " + strconv.FormatFloat(l.Aim.Bound, 'f', 2, 64)
	}
	if l.Aim.Met {
		return bound, "met"
	}
	return bound, "not met"
}

// printTable writes the lines with aligned columns.
func printTable(w io.Writer, lines []line) error {
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintf(t, "measure\t%s\t%s\t%s\tratio\taim\t\n", bareLoop, controllerRuntime, operatorKit)
	for _, l := range lines {
		bound, verdict := l.aim()
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n",
			l.Measure, l.figure(bareLoop), l.figure(controllerRuntime), l.figure(operatorKit), l.ratio(), bound, verdict)
	}
	return t.Flush()
}
