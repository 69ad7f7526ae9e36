package operator

import (
	"sync"

	"github.com/go-logr/logr"
)

// muting is the sink of a log that writes nothing any more once it is closed. Some goroutines of client-go end by
// themselves some time after they were told to, and must not write to what its owner takes for his own again.
type muting struct {
	logr.LogSink
	gate *gate
}

// gate is what all sinks of a log share.
type gate struct {
	// mu is held for reading by each message.
	mu     sync.RWMutex
	closed bool
}

// newMuting returns a log that writes to another one until the gate is closed.
func newMuting(to logr.Logger) (logr.Logger, *gate) {
	g := &gate{}
	return logr.New(&muting{to.GetSink(), g}), g
}

// close waits for messages under way.
func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
}

func (g *gate) write(message func()) {
	g.mu.RLock()
	defer g.mu.RUnlock()
	if !g.closed {
		message()
	}
}

// Info implements logr.LogSink.
func (m *muting) Info(level int, message string, keyVals ...any) {
	m.gate.write(func() { m.LogSink.Info(level, message, keyVals...) })
}

// Error implements logr.LogSink.
func (m *muting) Error(err error, message string, keyVals ...any) {
	m.gate.write(func() { m.LogSink.Error(err, message, keyVals...) })
}

// WithValues implements logr.LogSink.
func (m *muting) WithValues(keyVals ...any) logr.LogSink {
	return &muting{m.LogSink.WithValues(keyVals...), m.gate}
}

// WithName implements logr.LogSink.
func (m *muting) WithName(name string) logr.LogSink {
	return &muting{m.LogSink.WithName(name), m.gate}
}
