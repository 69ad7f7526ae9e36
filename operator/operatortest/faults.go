package operatortest

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"slices"
	"sync"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
)

// Faults stands between an operator and its API server, and the other systems that
// it talks to by HTTP: it counts and records the operator's writes, and breaks the
// requests that its rules name.
//
//	faults := operatortest.NewFaults()
//	faults.At(2, operatortest.FailAfter())        // the second write: carried out, answer lost
//	faults.On(updates, operatortest.Conflict()).Times(3)
//	run(faults.Wrap(server.RESTConfig()))         // the operator under test
//	for _, write := range faults.Writes() { … }   // what it wrote, in order
//
// A write is a request that changes a stored object: POST, PUT, PATCH and
// DELETE, each attempt counted, also one that a rule or the server refused.
// Not writes are dry runs (dryRun=All); requests that only ask, although they
// are POSTs (access, token and subject reviews, token requests, connections to
// a pod, a service or a node); and requests that match [Uncounted]: leases and
// events by default, which an operator writes when time passes, not when it
// reconciles. Of the requests of other clients, which [Faults.Transport] takes in, each
// POST, PUT, PATCH and DELETE is one.
//
// All methods are safe for concurrent use. Several configs may be wrapped by one
// Faults; their requests are counted together.
type Faults struct {
	uncounted  []Match
	keepBodies bool

	mu     sync.Mutex
	link   link
	seen   bool // anything was let in
	writes []*Write
	rules  []*Rule
	record *exchanges // notes each request that is let in; nil does not
}

// FaultsOption changes a [Faults] when it is made.
type FaultsOption func(*Faults)

// Uncounted sets which writes are neither counted nor recorded, instead of the
// default, which is [Leases] and [Events]. Without arguments every write counts.
// Rules made by [Faults.On] see uncounted requests all the same.
func Uncounted(matches ...Match) FaultsOption {
	return func(f *Faults) { f.uncounted = slices.Clone(matches) }
}

// KeepBodies records the body of each counted write, as it was sent, which may
// be JSON, YAML, Protocol Buffers or CBOR. By default none is kept. The body of a
// Secret never is.
func KeepBodies() FaultsOption {
	return func(f *Faults) { f.keepBodies = true }
}

// NewFaults returns a Faults without rules, through which everything passes.
func NewFaults(options ...FaultsOption) *Faults {
	f := &Faults{
		uncounted: []Match{Leases, Events},
		link:      newLink(),
	}
	for _, option := range options {
		option(f)
	}
	return f
}

// Wrap returns a copy of cfg whose clients send everything through f. The cfg
// given stays as it is and goes around f: it is for the user's part of a test.
func (f *Faults) Wrap(cfg *rest.Config) *rest.Config {
	wrapped := rest.CopyConfig(cfg)
	wrapped.Wrap(f.Transport)
	return wrapped
}

// Transport returns a round tripper that sends through f and then next. It is
// what [Faults.Wrap] adds to a config; a client that is not made from a
// rest.Config, such as one of a Docker engine or of a cloud, can use it directly.
func (f *Faults) Transport(next http.RoundTripper) http.RoundTripper {
	return &transport{faults: f, next: next}
}

type transport struct {
	faults *Faults
	next   http.RoundTripper
}

// WrappedRoundTripper lets apimachinery's helpers reach the transport below,
// for example to close its idle connections.
func (t *transport) WrappedRoundTripper() http.RoundTripper { return t.next }

// CloseIdleConnections is what http.Client.CloseIdleConnections looks for.
func (t *transport) CloseIdleConnections() { utilnet.CloseIdleConnectionsFor(t.next) }

func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	request, body, err := readRequest(req)
	if err != nil {
		return nil, err
	}
	p, err := t.faults.admit(req.Context(), request, body)
	if err != nil {
		return nil, err
	}

	resp, err := p.fault.do(exchange{
		ctx:     p.ctx,
		request: p.request,
		send: func(ctx context.Context) (*http.Response, error) {
			resp, err := t.next.RoundTrip(withBody(ctx, req, body))
			if err == nil {
				p.answered(resp.StatusCode)
			}
			return resp, err
		},
		shut: t.faults.Cut,
	})
	if err != nil {
		err = p.explain(err)
		p.leave()
		return nil, err
	}
	if resp.Request == nil {
		resp.Request = req
	}
	return p.hand(resp), nil
}

// admit lets a request in: it waits while the link is held, counts the request
// when it is a counted write, and chooses its fault, all in one moment, so that
// the n-th write is the n-th however many arrive at once.
func (f *Faults) admit(ctx context.Context, request Request, body []byte) (*passage, error) {
	f.mu.Lock()
	defer f.mu.Unlock()

	for f.link.state == linkHeld {
		changed := f.link.changed
		f.mu.Unlock()
		select {
		case <-changed:
			f.mu.Lock()
		case <-ctx.Done():
			f.mu.Lock()
			return nil, ctx.Err()
		}
	}
	if f.link.state == linkCut {
		return nil, refused("the link to the API server is cut")
	}

	f.seen = true
	if f.record != nil {
		f.record.begin(request)
	}
	var write *Write
	if request.isWrite() && !matchesAny(f.uncounted, request) {
		request.N = len(f.writes) + 1
		write = newWrite(request, body, f.keepBodies)
		f.writes = append(f.writes, write)
	}
	fault := f.choose(request)
	if write != nil {
		write.Fault = fault.text
	}
	p := f.link.enter(ctx)
	p.faults, p.request, p.write, p.fault = f, request, write, fault
	if fault.then != linkOpen {
		f.link.change(fault.then)
	}
	return p, nil
}

// withBody returns the request to send: req itself is the caller's and must not
// be changed.
func withBody(ctx context.Context, req *http.Request, body []byte) *http.Request {
	sent := req.WithContext(ctx)
	if body != nil {
		sent.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
		sent.Body = io.NopCloser(bytes.NewReader(body))
	}
	return sent
}
