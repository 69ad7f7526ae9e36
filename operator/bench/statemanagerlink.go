package main

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
)

// link is the way to a cluster. It counts the requests that are there for services: not watches, which begin anew when time
// passes, and not probes. It can be broken: then nothing arrives, and nothing is answered.
type link struct {
	requests, writes atomic.Int64

	mu sync.Mutex
	// broken is closed when the link is mended; nil while it is whole.
	broken chan struct{}
}

// transport sends through the link.
func (l *link) transport(next http.RoundTripper) http.RoundTripper { return &linked{l, next} }

// linked is a transport through a link.
type linked struct {
	link *link
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t *linked) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Query().Get("watch") == "" && !strings.HasSuffix(r.URL.Path, "/version") {
		t.link.requests.Add(1)
		if r.Method != http.MethodGet {
			t.link.writes.Add(1)
		}
	}
	if err := t.link.pass(r.Context()); err != nil {
		return nil, err
	}
	return t.next.RoundTrip(r)
}

// WrappedRoundTripper lets others reach the transport below.
func (t *linked) WrappedRoundTripper() http.RoundTripper { return t.next }

// pass waits until the link is whole.
func (l *link) pass(ctx context.Context) error {
	l.mu.Lock()
	broken := l.broken
	l.mu.Unlock()
	if broken == nil {
		return nil
	}
	select {
	case <-broken:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// breakDown breaks a link that is whole.
func (l *link) breakDown() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.broken = make(chan struct{})
}

// mend mends the link, if it is broken.
func (l *link) mend() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.broken != nil {
		close(l.broken)
		l.broken = nil
	}
}

// count is how many requests there were.
func (l *link) count() int64 { return l.requests.Load() }
