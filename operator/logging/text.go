package logging

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"
)

// textTime is the time of a line: RFC 3339 with milliseconds.
const textTime = "2006-01-02T15:04:05.000Z07:00"

// output is where the lines of a logger and those derived from it go.
type output struct {
	mu     sync.Mutex
	writer io.Writer
	colour bool
}

// write writes one message, for people.
func (o *output) write(pairs []any) {
	level, message, stack, rest := split(pairs)
	var b strings.Builder
	b.WriteString(o.dim(time.Now().Format(textTime)))
	b.WriteByte(' ')
	b.WriteString(o.level(level))
	b.WriteByte(' ')
	b.WriteString(escape(message))
	for i := 0; i < len(rest); i += 2 {
		b.WriteByte(' ')
		b.WriteString(o.dim(quote(format(rest[i])) + "="))
		b.WriteString(quote(format(rest[i+1])))
	}
	b.WriteByte('\n')
	for line := range strings.Lines(stack) {
		b.WriteByte('\t')
		b.WriteString(escape(strings.TrimRight(line, "\n")))
		b.WriteByte('\n')
	}

	o.mu.Lock()
	defer o.mu.Unlock()
	// A log that can't be written has nowhere to say so.
	_, _ = io.WriteString(o.writer, b.String())
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
