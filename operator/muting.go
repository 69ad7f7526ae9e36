package operator

import (
	"log/slog"
	"sync"

	"github.com/giantswarm/micrologger"
	"github.com/go-logr/logr"

	"github.com/operatorkit/operatorkit/internal/liblog"
)

// gate lets messages through until it is closed. Some goroutines of client-go end some time after
// they were told to, and must not write to a log whose owner has taken it back.
type gate struct {
	// mu is held for reading by each message.
	mu     sync.RWMutex
	closed bool
}

// newMuting returns a log that writes to logger until the gate is closed.
func newMuting(logger micrologger.Logger) (logr.Logger, *gate) {
	g := &gate{}
	return logr.FromSlogHandler(liblog.Handler(logger, g.pass)), g
}

func (g *gate) pass(_ *slog.Record, write func()) {
	g.mu.RLock()
	defer g.mu.RUnlock()
	if !g.closed {
		write()
	}
}

// close waits for messages under way.
func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
}
