package informer

import (
	"context"
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/otel/trace"

	"github.com/operatorkit/operatorkit/context/ownwritescontext"
)

// Author is a reconciliation as the one who writes: of a key, in a framework. What it writes is no reason to reconcile that key there
// again, see [Event.Wake]. It is safe for concurrent use.
type Author struct {
	// Framework is compared and nothing else, and Key is the one that is reconciled. They must not be changed.
	Framework any
	Key       Key
	// Span is that of the reconciliation, and nil if it is not recorded. It must not be changed.
	Span *trace.SpanContext

	mu     sync.Mutex
	kept   bool
	passed func()
}

// AuthorKey is the key under which the context of a reconciliation has its *Author.
var AuthorKey = ownwritescontext.Key

// AuthorOf returns who writes in ctx, or nil.
func AuthorOf(ctx context.Context) *Author {
	a, _ := ctx.Value(AuthorKey).(*Author)
	return a
}

// KeepOwn makes what the author writes a reason to reconcile its key again, what it has written already included.
func (a *Author) KeepOwn() {
	a.mu.Lock()
	passed := a.passed
	a.kept, a.passed = true, nil
	a.mu.Unlock()
	if passed != nil {
		passed()
	}
}

// PassedOver tells whether there was a reason to reconcile the key again that was nothing but a write of the author.
func (a *Author) PassedOver() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.passed != nil
}

func (a *Author) is(framework any, key Key) bool {
	return a != nil && a.Framework == framework && a.Key == key
}

// pass passes over a reason, unless the author keeps them. One of them is enough to come back to.
func (a *Author) pass(wake func()) {
	a.mu.Lock()
	kept := a.kept
	if !kept && a.passed == nil {
		a.passed = wake
	}
	a.mu.Unlock()
	if kept {
		wake()
	}
}

// Foreign tells that nothing in the event is a write of this process, as far as writes are known: Wake would call wake at once.
func (e Event) Foreign() bool { return e.author == nil && len(e.open) == 0 }

// Cause is the span of the reconciliation that has caused something. It is safe for concurrent use.
type Cause struct {
	sight sight
	span  atomic.Pointer[trace.SpanContext]
}

// CausedBy returns a cause, which is nil without a span.
func CausedBy(span *trace.SpanContext) *Cause {
	if span == nil {
		return nil
	}
	c := &Cause{}
	c.span.Store(span)
	return c
}

// Span returns the span, and nil if it is not known, or not yet. It may be called on nil.
func (c *Cause) Span() *trace.SpanContext {
	if c == nil {
		return nil
	}
	return c.span.Load()
}

// Cause returns the reconciliation, in whatever framework, that has written what the event shows, as far as its span is recorded. While a
// write is under way of which nobody can tell yet whether it is what the event shows, the cause is known once that has ended. It must be
// called from within the handler of the event.
func (e Event) Cause() *Cause {
	if e.author != nil {
		return CausedBy(e.author.Span)
	}
	var c *Cause
	for _, w := range e.open {
		if w.author == nil || w.author.Span == nil {
			continue
		}
		if c == nil {
			c = &Cause{sight: e.sight}
		}
		w.causes = append(w.causes, c)
	}
	return c
}

// Wake calls wake if the event is a reason to reconcile the key in the framework: not if it shows nothing but what a reconciliation of
// that key has written there. While a write of it is under way of which nobody can tell yet whether it is what the event shows, that is
// decided when the write has ended. Wake must be called from within the handler of the event, and wake must not block.
func (e Event) Wake(framework any, key Key, wake func()) {
	if e.author.is(framework, key) {
		e.author.pass(wake)
		return
	}
	var u *undecided
	for _, w := range e.open {
		if !w.author.is(framework, key) {
			continue
		}
		if u == nil {
			u = &undecided{sight: e.sight, wake: wake}
		}
		u.left++
		w.waiting = append(w.waiting, u)
	}
	if u == nil {
		wake()
	}
}

// undecided is a reason that may be nothing but a write that is under way.
type undecided struct {
	sight
	// left are how many writes of the author are under way that it may be, and own is true when it was one of them.
	left int
	own  bool
	wake func()
}

// sight is what a source has shown of an object.
type sight struct {
	version string
	// gap is true if there may have been other versions between this one and before, which were not shown.
	gap    bool
	before string
	// gone is the UID of an object that was shown to be gone.
	gone string
}
