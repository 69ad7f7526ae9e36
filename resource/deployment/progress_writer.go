package deployment

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"

	"golang.org/x/term"
)

// barWidth is how many characters a bar has.
const barWidth = 24

// ProgressWriter shows how far a plan is: on a terminal a bar for each machine, elsewhere a line for each operation that begins or ends.
// Its method Event is for Deployment.Progress. It is safe for concurrent use.
type ProgressWriter struct {
	mu       sync.Mutex
	w        io.Writer
	terminal bool
	names    NameResolver
	machines []*machineProgress
	// drawn is how many lines there are to draw over.
	drawn int
}

type machineProgress struct {
	id          string
	done, total int
	line        string
}

// NewProgressWriter returns a writer for the progress of a plan. Without a resolver it shows the names that were there when the plan
// was made.
func NewProgressWriter(w io.Writer, plan Plan, names NameResolver) *ProgressWriter {
	if names == nil {
		names = plan.names
	}
	p := &ProgressWriter{w: w, names: orIDs(names)}
	if f, ok := w.(*os.File); ok {
		p.terminal = term.IsTerminal(int(f.Fd()))
	}
	for _, op := range leaves(plan.Operations) {
		p.machine(op.machine()).total++
	}
	slices.SortFunc(p.machines, func(a, b *machineProgress) int {
		return strings.Compare(p.names.MachineName(a.id), p.names.MachineName(b.id))
	})
	return p
}

// Bars makes the writer draw bars, whatever it writes to.
func (p *ProgressWriter) Bars() *ProgressWriter {
	p.terminal = true
	return p
}

// placed is an operation on one machine.
type placed interface {
	Operation
	machine() string
}

func leaves(operations []Operation) []placed {
	var out []placed
	for _, op := range operations {
		switch o := op.(type) {
		case *SequenceOperation:
			out = append(out, leaves(o.Operations)...)
		case *ParallelOperation:
			out = append(out, leaves(o.Operations)...)
		case *RolloutOperation:
			for _, w := range o.Waves {
				out = append(out, leaves(w.Operations)...)
			}
		case placed:
			out = append(out, o)
		}
	}
	return out
}

func (p *ProgressWriter) machine(id string) *machineProgress {
	for _, m := range p.machines {
		if m.id == id {
			return m
		}
	}
	m := &machineProgress{id: id}
	p.machines = append(p.machines, m)
	return m
}

// Event shows an event. What can't be written is lost.
func (p *ProgressWriter) Event(e ProgressEvent) {
	p.mu.Lock()
	defer p.mu.Unlock()
	m := p.machine(e.MachineID)
	what, _, _ := strings.Cut(e.Operation.Format(p.names), "\n")
	switch e.Status {
	case ProgressDone:
		m.done++
	case ProgressReverted:
		m.done--
		what = "undone: " + what
	case ProgressFailed:
		what = fmt.Sprintf("failed: %s: %v", what, e.Err)
	case ProgressGoing:
		if e.Total > 0 {
			what = fmt.Sprintf("%s, %d %%", what, e.Current*100/e.Total)
		}
	}
	m.line = what
	if p.terminal {
		p.draw()
		return
	}
	if e.Status != ProgressGoing {
		_, _ = fmt.Fprintf(p.w, "%s %d/%d %s\t%s\n", p.names.MachineName(m.id), m.done, m.total, e.Status, strings.ReplaceAll(what, "\n", " "))
	}
}

// draw draws all bars over the last ones.
func (p *ProgressWriter) draw() {
	var b strings.Builder
	if p.drawn > 0 {
		_, _ = fmt.Fprintf(&b, "\x1b[%dA", p.drawn)
	}
	width := 0
	for _, m := range p.machines {
		width = max(width, len(p.names.MachineName(m.id)))
	}
	for _, m := range p.machines {
		full := 0
		if m.total > 0 {
			full = min(max(0, m.done), m.total) * barWidth / m.total
		}
		line, _, _ := strings.Cut(m.line, "\n")
		_, _ = fmt.Fprintf(&b, "\x1b[2K%-*s [%s%s] %d/%d %s\n", width, p.names.MachineName(m.id),
			strings.Repeat("#", full), strings.Repeat(".", barWidth-full), m.done, m.total, p.cut(line, width))
	}
	p.drawn = len(p.machines)
	_, _ = io.WriteString(p.w, b.String())
}

// cut keeps a line from going over the edge of the terminal, where it would be two lines.
func (p *ProgressWriter) cut(line string, used int) string {
	columns := 120
	if f, ok := p.w.(*os.File); ok {
		if w, _, err := term.GetSize(int(f.Fd())); err == nil {
			columns = w
		}
	}
	room := columns - used - barWidth - len(" [] 1000/1000 ")
	if runes := []rune(line); len(runes) > room {
		return string(runes[:max(0, room)])
	}
	return line
}
