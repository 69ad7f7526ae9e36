package framework

import (
	"time"

	"github.com/cenkalti/backoff/v4"
)

// guard calls code of the author's that is no part of a reconciliation, but told of it or asked about it. A panic is logged and counted,
// and changes nothing else.
func (f *Framework) guard(what string, call func(), fields ...any) {
	err := Recovered(func() error { call(); return nil })
	if err == nil {
		return
	}
	f.metrics.panicked()
	f.log("error", what, append(fields, "error", err.Error(), "stack", stackOf(err))...)
}

// newBackOff makes a BackOff by Config.BackOffFactory. Where that panics, or what it made, the default takes its place.
func (f *Framework) newBackOff() backoff.BackOff {
	b := &guardedBackOff{framework: f, otherwise: DefaultBackOffFactory()()}
	f.guard("make a backoff", func() { b.next = f.config.BackOffFactory() })
	return b
}

type guardedBackOff struct {
	framework *Framework
	next      backoff.BackOff
	otherwise backoff.BackOff
}

// NextBackOff implements backoff.BackOff.
func (b *guardedBackOff) NextBackOff() time.Duration {
	if b.next != nil {
		pause, done := time.Duration(0), false
		b.framework.guard("ask a backoff", func() { pause, done = b.next.NextBackOff(), true })
		if done {
			return pause
		}
	}
	return b.otherwise.NextBackOff()
}

// Reset implements backoff.BackOff.
func (b *guardedBackOff) Reset() {
	if b.next != nil {
		b.framework.guard("reset a backoff", b.next.Reset)
	}
	b.otherwise.Reset()
}
