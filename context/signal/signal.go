// Package signal carries control-flow signals in a context.Context. The packages next to it are
// based on it. Resources use those packages, one for each signal, and the framework uses the
// [Scope] defined here.
//
// A signal is a flag that code further down sets and code further up reads:
//
//	ctx = signal.With(ctx, signal.ResourceCanceled)
//	signal.Set(ctx, signal.ResourceCanceled)
//	set, carried := signal.Lookup(ctx, signal.ResourceCanceled) // true, true
//
// Setting or reading a signal on a context that does not carry it is harmless. All functions are
// safe for concurrent use.
package signal

import (
	"context"
	"sync/atomic"
	"time"
)

// Signal names one flag.
type Signal uint8

// The signals. Each is documented in the package of its name.
const (
	DeletionAllowed Signal = iota
	FinalizersKept
	ReconciliationCanceled
	ResourceCanceled
	UpdateAllowed
	UpdateNecessary
)

// mask is a set of signals.
type mask uint8

func (m mask) has(s Signal) bool { return m&maskOf(s) != 0 }

func maskOf(s Signal) mask { return 1 << s }

// Scope is a context that carries several signals in one allocation. It takes all other signals
// from its parent.
type Scope struct {
	context.Context
	after atomic.Int64
	// flags is the mask of the signals that are set.
	flags   atomic.Uint32
	carried mask
	requeue bool
}

type flagKey Signal

type requeueKey struct{}

// Init makes s a child of parent that carries the given signals, none of them set. A Scope must be
// initialised once, before it is used anywhere else.
func (s *Scope) Init(parent context.Context, carried ...Signal) {
	s.Context = parent
	for _, c := range carried {
		s.carried |= maskOf(c)
	}
}

// CarryRequeue makes s carry a requeue request. Like Init, it must be called before the scope is
// used anywhere else.
func (s *Scope) CarryRequeue() { s.requeue = true }

// IsAnySet reports whether a signal that s carries is set, or a requeue was requested.
func (s *Scope) IsAnySet() bool { return s.flags.Load() != 0 || s.after.Load() != 0 }

// Value implements context.Context.
func (s *Scope) Value(key any) any {
	switch k := key.(type) {
	case flagKey:
		if s.carried.has(Signal(k)) {
			return &s.flags
		}
	case requeueKey:
		if s.requeue {
			return &s.after
		}
	}
	return s.Context.Value(key)
}

// With returns a child of ctx that carries one signal, not set.
func With(ctx context.Context, sig Signal) context.Context {
	return context.WithValue(ctx, flagKey(sig), new(atomic.Uint32))
}

// Set sets the signal, if ctx carries it.
func Set(ctx context.Context, sig Signal) {
	if flags, ok := ctx.Value(flagKey(sig)).(*atomic.Uint32); ok {
		flags.Or(uint32(maskOf(sig)))
	}
}

// Lookup reports whether the signal is set, and whether ctx carries it at all.
func Lookup(ctx context.Context, sig Signal) (set, carried bool) {
	flags, ok := ctx.Value(flagKey(sig)).(*atomic.Uint32)
	if !ok {
		return false, false
	}
	return mask(flags.Load()).has(sig), true
}

// WithRequeue returns a child of ctx that carries a requeue request, which is still empty.
func WithRequeue(ctx context.Context) context.Context {
	return context.WithValue(ctx, requeueKey{}, new(atomic.Int64))
}

// SetRequeue requests a requeue after d, unless an earlier one has been requested. Durations below
// a nanosecond count as one.
func SetRequeue(ctx context.Context, d time.Duration) {
	after, ok := ctx.Value(requeueKey{}).(*atomic.Int64)
	if !ok {
		return
	}
	d = max(d, 1)
	for {
		old := after.Load()
		if old != 0 && old <= int64(d) {
			return
		}
		if after.CompareAndSwap(old, int64(d)) {
			return
		}
	}
}

// Requeue returns the shortest requested duration, and false without a request.
func Requeue(ctx context.Context) (time.Duration, bool) {
	after, ok := ctx.Value(requeueKey{}).(*atomic.Int64)
	if !ok || after.Load() == 0 {
		return 0, false
	}
	return time.Duration(after.Load()), true
}
