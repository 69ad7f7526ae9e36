package plan

import (
	"io"
	"os"

	"golang.org/x/term"
)

// ColorWanted reports whether text that is written to w should have colours: w is a terminal that
// supports them, and NO_COLOR (https://no-color.org) is not set.
func ColorWanted(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && term.IsTerminal(int(f.Fd()))
}

// style is the look of a piece of text on a terminal.
type style string

// The styles are parameters of the SGR sequence of ECMA-48.
const (
	regular style = ""
	bold    style = "1"
	faint   style = "2"
	red     style = "31"
	green   style = "32"
	yellow  style = "33"
)

// marks are the prefixes of changes and their styles.
var marks = map[Action]struct {
	text  string
	style style
}{
	Create: {"+", green},
	Update: {"~", yellow},
	Delete: {"-", red},
}
