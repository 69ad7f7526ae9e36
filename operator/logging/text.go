package logging

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/giantswarm/micrologger"
)

// textTime is the time of a line: RFC 3339 with milliseconds.
const textTime = "2006-01-02T15:04:05.000Z07:00"

// output is where the lines of a logger and those derived from it go.
type output struct {
	mu     sync.Mutex
	writer io.Writer
	colour bool
}

// text writes messages for people.
type text struct {
	out *output
	// with are the pairs that With gave to all messages.
	with []any
}

// Debug implements micrologger.Logger.
func (t *text) Debug(ctx context.Context, message string) {
	t.LogCtx(ctx, keyLevel, string(LevelDebug), keyMessage, message)
}

// Debugf implements micrologger.Logger.
func (t *text) Debugf(ctx context.Context, format string, params ...any) {
	t.Debug(ctx, fmt.Sprintf(format, params...))
}

// Error implements micrologger.Logger.
func (t *text) Error(ctx context.Context, err error, message string) {
	if err == nil {
		err = errors.New("nil")
	}
	t.LogCtx(ctx, keyLevel, string(LevelError), keyMessage, message, "error", err)
}

// Errorf implements micrologger.Logger.
func (t *text) Errorf(ctx context.Context, err error, format string, params ...any) {
	t.Error(ctx, err, fmt.Sprintf(format, params...))
}

// Log implements micrologger.Logger.
func (t *text) Log(keyVals ...any) {
	t.write(slices.Concat(keyVals, t.with))
}

// LogCtx implements micrologger.Logger.
func (t *text) LogCtx(ctx context.Context, keyVals ...any) {
	pairs := slices.Concat(keyVals, t.with)
	t.write(append(pairs, carried(ctx, pairs)...))
}

// With implements micrologger.Logger.
func (t *text) With(keyVals ...any) micrologger.Logger {
	if len(keyVals)%2 != 0 {
		keyVals = append(slices.Clone(keyVals), "(MISSING)")
	}
	return &text{out: t.out, with: slices.Concat(t.with, keyVals)}
}

// WithIncreasedCallerDepth implements micrologger.Logger. A line for people does not tell its caller.
func (t *text) WithIncreasedCallerDepth() micrologger.Logger { return t }

// write writes one message. Of a level or a message that is given twice, the first counts.
func (t *text) write(pairs []any) {
	if len(pairs)%2 != 0 {
		pairs = append(pairs, "(MISSING)")
	}
	var level, message, stack string
	rest := make([]any, 0, len(pairs))
	for i := 0; i < len(pairs); i += 2 {
		value := &message
		switch pairs[i] {
		case keyLevel:
			value = &level
		case keyMessage:
		case keyStack:
			value = &stack
		default:
			rest = append(rest, pairs[i], pairs[i+1])
			continue
		}
		if *value == "" {
			*value = format(pairs[i+1])
		}
	}

	var b strings.Builder
	b.WriteString(t.out.dim(time.Now().Format(textTime)))
	b.WriteByte(' ')
	b.WriteString(t.out.level(level))
	b.WriteByte(' ')
	b.WriteString(escape(message))
	for i := 0; i < len(rest); i += 2 {
		b.WriteByte(' ')
		b.WriteString(t.out.dim(quote(format(rest[i])) + "="))
		b.WriteString(quote(format(rest[i+1])))
	}
	b.WriteByte('\n')
	for line := range strings.Lines(stack) {
		b.WriteByte('\t')
		b.WriteString(escape(strings.TrimRight(line, "\n")))
		b.WriteByte('\n')
	}

	t.out.mu.Lock()
	defer t.out.mu.Unlock()
	// A log that can't be written has nowhere to say so.
	_, _ = io.WriteString(t.out.writer, b.String())
}

// The colours of the levels (ECMA-48, SGR).
const (
	reset  = "\x1b[0m"
	faint  = "\x1b[2m"
	red    = "\x1b[31m"
	green  = "\x1b[32m"
	yellow = "\x1b[33m"
	blue   = "\x1b[34m"
)

func (o *output) dim(s string) string {
	if !o.colour {
		return s
	}
	return faint + s + reset
}

// level returns the word for a level, as wide as the widest of them.
func (o *output) level(level string) string {
	padded := fmt.Sprintf("%-7s", strings.ToUpper(escape(level)))
	if !o.colour {
		return padded
	}
	switch severityOf(level) {
	case debug:
		return blue + padded + reset
	case info:
		return green + padded + reset
	case warning:
		return yellow + padded + reset
	case failure:
		return red + padded + reset
	}
	return padded
}

// format returns a value as text. A String or Error method that panics is not the end of the program: fmt says so in
// the text.
func format(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case time.Time:
		return v.Format(time.RFC3339Nano)
	case []byte:
		return string(v)
	}
	return fmt.Sprintf("%+v", v)
}

// quote puts a text that is not one plain word into quotes.
func quote(s string) string {
	if s == "" || strings.ContainsFunc(s, func(r rune) bool {
		return r == ' ' || r == '=' || r == '"' || !printable(r)
	}) {
		return strconv.Quote(s)
	}
	return s
}

// escape makes control characters visible and harmless.
func escape(s string) string {
	if !strings.ContainsFunc(s, func(r rune) bool { return !printable(r) }) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if printable(r) || r == '\t' {
			b.WriteRune(r)
			continue
		}
		b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
	}
	return b.String()
}

func printable(r rune) bool { return unicode.IsPrint(r) }
