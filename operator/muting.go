package operator

import (
	"log/slog"
	"sync"

	"github.com/giantswarm/micrologger"
	"github.com/go-logr/logr"

	"github.com/operatorkit/operatorkit/internal/liblog"
)

// gate passes messages on until it is closed. Some goroutines of client-go end with a delay, and
// must not write to a log that is no longer theirs.
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

// close waits for messages in progress.
func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
}
