package informer

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/otel/trace"
	"k8s.io/apimachinery/pkg/types"

	"github.com/operatorkit/operatorkit/context/ownwritescontext"
)

// Own writes. The answer to a write goes into the store at once, with an event. When the watch shows
// the same version later, nothing happens. If the watch is faster, its event is the one, and the
// answer does nothing.
//
// This event is caused by the write (result.caused) if the write made its version directly on top of
// the version that the store had before. Otherwise the event also shows a change by another client.
//
// The data comes from four places: the Author from the context of the reconciliation
// (reconciliation.Value in framework/process.go); the Write and the version on which it was made
// from the transport (Begin, called in writes.go); the Writes that are not answered yet, by key,
// from the Hub, which attaches them to each event (Event.open); the version that the store had
// before from the Feed (Event.before).

// Author identifies the reconciliation of a key in a framework that writes. The events of its
// writes are not a reason to reconcile the key there again, see [Event.Wake]. It is safe for
// concurrent use.
type Author struct {
	// Framework is only compared. Framework and Key must not be changed.
	Framework any
	Key       Key
	// Span is the span of the reconciliation, or nil if it is not recorded. It must not be changed.
	Span *trace.SpanContext

	mu      sync.Mutex
	kept    bool
	ignored func()
}

// AuthorKey is the context key of the *Author of a reconciliation.
var AuthorKey = ownwritescontext.Key

// AuthorOf returns the author in ctx, or nil.
func AuthorOf(ctx context.Context) *Author {
	a, _ := ctx.Value(AuthorKey).(*Author)
	return a
}

// KeepOwn makes the author's writes, including those before the call, a reason to reconcile its key
// again.
func (a *Author) KeepOwn() {
	a.mu.Lock()
	ignored := a.ignored
	a.kept, a.ignored = true, nil
	a.mu.Unlock()
	if ignored != nil {
		ignored()
	}
}

func (a *Author) is(framework any, key Key) bool {
	return a != nil && a.Framework == framework && a.Key == key
}

// ignoreOwn does not call wake, which is for the event of an own write, but remembers it for KeepOwn.
// If the author keeps its own writes already, it calls wake. One remembered wake is enough.
func (a *Author) ignoreOwn(wake func()) {
	a.mu.Lock()
	kept := a.kept
	if !kept && a.ignored == nil {
		a.ignored = wake
	}
	a.mu.Unlock()
	if kept {
		wake()
	}
}

// Wake calls wake unless the event was caused by a write of the key's own reconciliation in the
// framework that does not keep its own writes ([Author.KeepOwn]). If such a write has no answer yet,
// Wake decides when it has one. Wake must be called from the handler of the event, and wake must not
// block.
func (e Event) Wake(framework any, key Key, wake func()) {
	for _, w := range e.open {
		if !w.author.is(framework, key) {
			continue
		}
		result := w.result.Load()
		if result == nil {
			w.waiting = append(w.waiting, func() { e.Wake(framework, key, wake) })
			return
		}
		if result.caused(e) {
			w.author.ignoreOwn(wake)
			return
		}
	}
	wake()
}

// Cause refers to the reconciliation that caused something. It is safe for concurrent use.
type Cause struct {
	span  *trace.SpanContext
	event Event
}

// CausedBy returns a cause, which is nil without a span.
func CausedBy(span *trace.SpanContext) *Cause {
	if span == nil {
		return nil
	}
	return &Cause{span: span}
}

// Cause returns the reconciliation, of any framework, that made the write shown by the event, or
// nil. It must be called from the handler of the event.
func (e Event) Cause() *Cause {
	if len(e.open) == 0 {
		return nil
	}
	e.Object, e.Old = nil, nil
	return &Cause{event: e}
}

// Span returns the span of the reconciliation. It is nil if the reconciliation is not recorded, or
// while its write has no answer yet. Span may be called on nil.
func (c *Cause) Span() *trace.SpanContext {
	if c == nil {
		return nil
	}
	for _, w := range c.event.open {
		if result := w.result.Load(); w.author != nil && result != nil && result.caused(c.event) {
			return w.author.Span
		}
	}
	return c.span
}

// Created is the base of a write that created the object.
const Created = "created"

// Write is a write of one object that is in progress. One of its methods must be called, which ends
// it. Later calls have no effect.
type Write struct {
	feed   *Feed
	key    Key
	author *Author
	// result is nil until there is an answer.
	result atomic.Pointer[result]
	// waiting are decisions that need the result.
	waiting []func()
	// Set once an event of the key was delivered.
	told bool
}

// result is the known effect of a write: it made version on top of base, or removed the object with
// the UID gone.
type result struct {
	base, version string
	removed       bool
	gone          types.UID
}

// made reports whether the write made its version. A write without a base, or answered with its
// base, may be answered with a version that another client made.
func (r result) made() bool { return r.base != "" && r.base != r.version }

func (r result) caused(e Event) bool {
	if r.removed {
		return e.Type == Deleted && e.gone == r.gone
	}
	return r.made() && r.version == e.version && (r.base == Created || r.base == e.before)
}

// Begin notes that an object is about to be written, by author, or outside of reconciliations if
// author is nil. It must be called before the request is sent, because the event may arrive earlier
// than the answer.
func (f *Feed) Begin(key Key, author *Author) *Write {
	h := f.hub
	w := &Write{feed: f, key: key, author: author}
	h.delivery.Lock()
	defer h.delivery.Unlock()
	h.open[key] = append(h.open[key], w)
	return w
}

// end runs change, which delivers the events of the write, and then makes the decisions that waited
// for the result.
func (w *Write) end(r result, change func(h *Hub)) {
	h := w.feed.hub
	h.delivery.Lock()
	defer h.delivery.Unlock()
	if !w.result.CompareAndSwap(nil, &r) {
		return
	}
	if change != nil {
		change(h)
	}
	h.open[w.key] = slices.DeleteFunc(h.open[w.key], func(open *Write) bool { return open == w })
	if len(h.open[w.key]) == 0 {
		delete(h.open, w.key)
	}
	for _, decide := range w.waiting {
		decide()
	}
	w.waiting = nil
}

// Stored ends a write that was answered with the item. When Stored returns, the store has the item
// or something newer, and its event was delivered. base is the version that the request was
// conditional on, [Created] if it created the object, and empty if it was unconditional. Without a
// base, or if base is the version of the item, the write may have changed nothing, and another
// client may have made the version: the event then counts as foreign. selected is false if the
// source does not select the object in this state.
func (w *Write) Stored(item Item, base string, selected bool) {
	w.end(result{base: base, version: item.Version}, func(h *Hub) {
		old, exists := h.store.entries[w.key]
		same := exists && sameObject(old.object, item.Object)
		switch {
		case !h.holds(w.key), exists && !h.newer(item.Version, old.version):
			return
		case h.isGone(item), !h.compacted && h.reached(w.key.Namespace, item.Version):
			// Another client has removed the object meanwhile. The source may have missed both the
			// object and its end.
			if selected && !same && !w.told {
				h.deliver(Event{Type: Deleted, Key: w.key, Object: h.last(item.Object, "")})
			}
			return
		case exists && (!same || h.compacted && base == Created):
			w.feed.replaceLife(w.key, old)
			old, exists = entry{}, false
		}
		e := Event{version: item.Version, before: old.version}
		if selected {
			w.feed.put(item, e)
			return
		}
		h.end(h.life(item), item.Version)
		if exists {
			w.feed.delete(w.key, nil, e)
		}
	})
}

// Ended ends a write that removed the object in a compacted source. version is the version of its
// end, base is as in Stored, and keep is as in [Feed.End].
func (w *Write) Ended(version, base string, keep bool) {
	w.end(result{base: base, version: version}, func(*Hub) { w.feed.end(w.key, version, keep) })
}

// Gone ends a write after which the object with that UID no longer exists.
func (w *Write) Gone(id types.UID) {
	w.end(result{removed: true, gone: id}, func(h *Hub) {
		h.end(id, forGood)
		if old, exists := h.store.entries[w.key]; exists && uid(old.object) == id {
			w.feed.delete(w.key, nil, Event{gone: id})
		}
	})
}

// Shown ends a write with a known version but no object. base is as in Stored.
func (w *Write) Shown(version, base string) { w.end(result{base: base, version: version}, nil) }

// Unknown ends a write that was refused or has an unknown outcome. If it was carried out, it counts
// as another client's write.
func (w *Write) Unknown() { w.end(result{}, nil) }
