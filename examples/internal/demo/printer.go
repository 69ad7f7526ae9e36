package demo

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/term"
)

// printer writes lines that people read, from several goroutines.
type printer struct {
	mu    sync.Mutex
	out   io.Writer
	color bool
}

func newPrinter(out io.Writer) *printer {
	file, ok := out.(*os.File)
	return &printer{out: out, color: ok && term.IsTerminal(int(file.Fd())) && os.Getenv("NO_COLOR") == ""}
}

// The colours of changes, as SGR codes.
var colors = map[string]string{"+": "32", "~": "33", "-": "31", "✓": "32", "▸": "1"}

func (p *printer) line(indent, sign, text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if code := colors[sign]; p.color && code != "" {
		sign = "\x1b[" + code + "m" + sign
		text += "\x1b[0m"
	}
	_, _ = fmt.Fprintf(p.out, "%s%s %s\n", indent, sign, text)
}

func (p *printer) title(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, _ = fmt.Fprintf(p.out, "%s\n\n", text)
}

func (p *printer) step(text string) { p.line("", "▸", text) }

func (p *printer) note(text string) { p.line("  ", " ", text) }

func (p *printer) done(text string) { p.line("  ", "✓", text) }

func (p *printer) change(sign, object, what string) {
	p.line("    ", sign, fmt.Sprintf("%-28s %s", object, what))
}

// pause waits a little, or for the end of ctx.
func (d *Demo) pause(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(100 * time.Millisecond):
	}
}
