package command

import (
	"errors"
	"io"

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
}

func (o *outputOptions) flags(flags *pflag.FlagSet) {
	flags.StringVarP(&o.format, "output", "o", outputText, "text or json")
	flags.StringVar(&o.color, "color", colorAuto, "colour of text: auto (on a terminal, unless NO_COLOR is set), always or never")
	withoutVariables(flags, "output")
}

func (o *outputOptions) check() error {
	switch {
	case o.format != outputText && o.format != outputJSON:
		return &usageError{errors.New("--output must be text or json")}
	case o.color != colorAuto && o.color != colorAlways && o.color != colorNever:
		return &usageError{errors.New("--color must be auto, always or never")}
	}
	return nil
}

// text says how text looks on w.
func (o *outputOptions) text(w io.Writer) plan.TextOptions {
	return plan.TextOptions{Color: o.color == colorAlways || o.color == colorAuto && plan.ColorWanted(w)}
}
