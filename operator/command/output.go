package command

import (
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/operatorkit/operatorkit/framework/plan"
)

// The formats of results.
const (
	outputText = "text"
	outputJSON = "json"
)

// When text is coloured.
const (
	colorAuto   = "auto"
	colorAlways = "always"
	colorNever  = "never"
)

// outputOptions say how a result is shown.
type outputOptions struct {
	format string
	color  string
	// others are formats of this command besides text and JSON.
	others []string
}

func (o *outputOptions) flags(flags *pflag.FlagSet) {
	flags.StringVarP(&o.format, "output", "o", outputText, orOf(o.formats()))
	flags.StringVar(&o.color, "color", colorAuto, "colour of text: auto (on a terminal, unless NO_COLOR is set), always or never")
	withoutVariables(flags, "output")
}

func (o *outputOptions) formats() []string {
	return append([]string{outputText, outputJSON}, o.others...)
}

// orOf lists words of which one is meant: "a, b or c".
func orOf(words []string) string {
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

func (o *outputOptions) check() error {
	switch {
	case !slices.Contains(o.formats(), o.format):
		return &usageError{errors.New("--output must be " + orOf(o.formats()))}
	case o.color != colorAuto && o.color != colorAlways && o.color != colorNever:
		return &usageError{errors.New("--color must be auto, always or never")}
	}
	return nil
}

// text says how text looks on w.
func (o *outputOptions) text(w io.Writer) plan.TextOptions {
	return plan.TextOptions{Color: o.color == colorAlways || o.color == colorAuto && plan.ColorWanted(w)}
}
