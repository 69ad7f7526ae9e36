package logging

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"unicode"

	"github.com/operatorkit/operatorkit/internal/liblog"
)

// textTime is the time of a line: RFC 3339 with milliseconds.
const textTime = "2006-01-02T15:04:05.000Z07:00"

// textOutput writes messages for people.
type textOutput struct {
	mu     sync.Mutex
	writer io.Writer
	colour bool
	// line is the message that is being written.
	line bytes.Buffer
	// pairs writes attributes to line.
	pairs slog.Handler
}

func newTextOutput(w io.Writer) *textOutput {
	o := &textOutput{writer: w, colour: colourful(w)}
	o.pairs = slog.NewTextHandler(&o.line, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		_, isLevel := a.Value.Any().(slog.Level)
		if a.Key == slog.LevelKey && isLevel || a.Key == slog.MessageKey && a.Value.String() == "" {
			return slog.Attr{} // The line begins with them.
		}
		return a
	}})
	return o
}

// write writes one message.
func (o *textOutput) write(ctx context.Context, r slog.Record) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.line.Reset()
	fmt.Fprintf(&o.line, "%s %s %s", o.paint(faint, r.Time.Format(textTime)), o.paint(colourOf(r.Level),
		fmt.Sprintf("%-7s", strings.ToUpper(liblog.Word(r.Level)))), escape(r.Message))
	var pairs slog.Record
	var stack string
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == keyStack {
			stack = a.Value.String()
		} else {
			pairs.AddAttrs(a)
		}
		return true
	})
	if pairs.NumAttrs() > 0 {
		o.line.WriteByte(' ')
	}
	if err := o.pairs.Handle(ctx, pairs); err != nil {
		return err
	}
	for line := range strings.Lines(stack) {
		o.line.WriteString("\t" + escape(strings.TrimRight(line, "\n")) + "\n")
	}
	_, err := o.writer.Write(o.line.Bytes())
	return err
}

// The colours (ECMA-48, SGR).
const (
	reset  = "\x1b[0m"
	faint  = "\x1b[2m"
	red    = "\x1b[31m"
	green  = "\x1b[32m"
	yellow = "\x1b[33m"
	blue   = "\x1b[34m"
)

func (o *textOutput) paint(colour, s string) string {
	if !o.colour || colour == "" {
		return s
	}
	return colour + s + reset
}

func colourOf(level slog.Level) string {
	return map[string]string{"debug": blue, "info": green, "warning": yellow, "error": red}[liblog.Word(level)]
}

// escape makes control characters visible and harmless.
func escape(s string) string {
	if !strings.ContainsFunc(s, func(r rune) bool { return r != '\t' && !unicode.IsPrint(r) }) {
		return s
	}
	quoted := strconv.Quote(s)
	return quoted[1 : len(quoted)-1]
}
