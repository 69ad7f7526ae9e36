package demo

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/operatorkit/operatorkit/framework/plan"
)

// printer writes lines that people read, from several goroutines.
type printer struct {
	mu    sync.Mutex
	out   io.Writer
	color bool
	// told are the changes that were printed: their signs and what changed.
	told map[[2]string]bool
}

func newPrinter(out io.Writer) *printer {
	return &printer{out: out, color: plan.ColorWanted(out), told: map[[2]string]bool{}}
}

// The colours of changes, as SGR codes.
var colors = map[string]string{"+": "32", "~": "33", "-": "31", "!": "33", "✓": "32", "▸": "1"}

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

// block writes lines that belong together and are coloured already.
func (p *printer) block(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for line := range strings.Lines(text) {
		if line != "\n" {
			line = "      " + line
		}
		_, _ = io.WriteString(p.out, line)
	}
}

func (p *printer) change(sign, object, what string) {
	p.line("    ", sign, fmt.Sprintf("%-28s %s", object, what))
	p.mu.Lock()
	defer p.mu.Unlock()
	p.told[[2]string{sign, object}] = true
}

func (p *printer) hasTold(sign, object string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.told[[2]string{sign, object}]
}

// pause waits a little, or for the end of ctx.
func (d *Demo) pause(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(100 * time.Millisecond):
	}
}
