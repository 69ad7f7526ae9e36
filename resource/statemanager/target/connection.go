package target

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

// connection is what is made of one kubeconfig, and ends with it.
type connection struct {
	fingerprint string
	// config is what the kubeconfig says.
	config *rest.Config
	// base is the address of the API, with a path where there is one.
	base *url.URL
	pool *pool
	// transport authenticates and sends.
	transport   http.RoundTripper
	timeout     time.Duration
	maxResponse int64
	// observe is told how each request went. It is not called for those that their sender cancelled.
	observe func(*connection, outcome)

	// ctx ends when the connection is given up. What must not outlive the kubeconfig hangs on it.
	ctx    context.Context
	giveUp context.CancelCauseFunc

	mu      sync.Mutex
	flights map[*flight]struct{}
	retired bool
}

// outcome is how a request went.
type outcome struct {
	// code is the status of the answer, and 0 without one.
	code int
	// broken is true when the answer broke off, or none came.
	broken bool
}

// suspicious tells whether the request leaves doubts about the cluster.
func (o outcome) suspicious() bool {
	switch o.code {
	case http.StatusUnauthorized, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return o.broken
}

// newConnection connects to nothing yet. The error says what is wrong with the certificates.
func newConnection(key Key, s *settings, config *Config, observe func(*connection, outcome)) (*connection, error) {
	base, _, err := rest.DefaultServerUrlFor(s.config)
	if err != nil {
		return nil, fmt.Errorf("the address of the server can't be used: %w", err)
	}
	p, err := newPool(s.config, config.ConnectTimeout)
	if err != nil {
		return nil, fmt.Errorf("the certificates of the kubeconfig can't be used: %w", err)
	}
	transport, err := rest.HTTPWrappersForConfig(s.config, p.transport)
	if err != nil {
		return nil, fmt.Errorf("the credentials of the kubeconfig can't be used: %w", err)
	}
	if config.WrapTransport != nil {
		transport = config.WrapTransport(key, transport)
	}
	c := &connection{
		fingerprint: s.fingerprint, config: s.config, base: base, pool: p, transport: transport, observe: observe,
		timeout: config.RequestTimeout, maxResponse: config.MaxResponse, flights: map[*flight]struct{}{},
	}
	c.ctx, c.giveUp = context.WithCancelCause(context.Background())
	return c, nil
}

// flight is a request that is under way until its answer has been read.
type flight struct {
	conn   *connection
	caller context.Context
	watch  bool
	ctx    context.Context
	cancel context.CancelCauseFunc
	// timer ends a request that takes too long, and a watch that does not begin.
	timer *time.Timer
}

// begin enters a request. It is false when the connection has been given up.
func (c *connection) begin(req *http.Request) (*flight, bool) {
	f := &flight{conn: c, caller: req.Context(), watch: isWatch(req)}
	f.ctx, f.cancel = context.WithCancelCause(req.Context())
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.retired {
		f.cancel(errMoved)
		return nil, false
	}
	c.flights[f] = struct{}{}
	return f, true
}

func (f *flight) end() {
	if f.timer != nil {
		f.timer.Stop()
	}
	f.cancel(nil)
	c := f.conn
	c.mu.Lock()
	_, known := c.flights[f]
	delete(c.flights, f)
	last := known && c.retired && len(c.flights) == 0
	c.mu.Unlock()
	if last {
		c.pool.close()
	}
}

// ended returns why we ended the request; nil if we did not.
func (f *flight) ended() error {
	if f.caller.Err() != nil {
		return nil
	}
	return context.Cause(f.ctx)
}

// report tells the outcome, unless the caller did not wait for it.
func (f *flight) report(o outcome) {
	if errors.Is(f.caller.Err(), context.Canceled) {
		return
	}
	f.conn.observe(f.conn, o)
}

// send sends the flight's request to the address of the kubeconfig. The answer's body must be closed.
func (c *connection) send(f *flight, req *http.Request) (*http.Response, error) {
	f.timer = time.AfterFunc(c.timeout, func() { f.cancel(timeoutError{c.timeout}) })
	resp, err := c.transport.RoundTrip(c.address(f.ctx, req))
	if err != nil {
		if cause := f.ended(); cause != nil {
			err = cause
		}
		f.report(outcome{broken: true})
		f.end()
		return nil, err
	}
	if f.watch {
		f.timer.Stop()
	}
	f.report(outcome{code: resp.StatusCode})
	resp.Request = req
	resp.Body = &answer{ReadCloser: resp.Body, flight: f, left: c.maxResponse}
	return resp, nil
}

// address returns the request as it goes to the server.
func (c *connection) address(ctx context.Context, req *http.Request) *http.Request {
	out := req.Clone(ctx)
	out.URL.Scheme, out.URL.Host, out.Host = c.base.Scheme, c.base.Host, ""
	if prefix := strings.TrimSuffix(c.base.Path, "/"); prefix != "" {
		if out.URL.RawPath != "" {
			out.URL.RawPath = strings.TrimSuffix(c.base.EscapedPath(), "/") + out.URL.RawPath
		}
		out.URL.Path = prefix + out.URL.Path
	}
	return out
}

// interrupt ends what is under way: all of it, or the watches.
func (c *connection) interrupt(cause error, which func(*flight) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for f := range c.flights {
		if which(f) {
			f.cancel(cause)
		}
	}
}

func everything(*flight) bool { return true }

func watches(f *flight) bool { return f.watch }

// retire ends the watches and lets the other requests finish, which takes no longer than their time-out. Then the
// connections are closed.
func (c *connection) retire() {
	c.mu.Lock()
	c.retired = true
	idle := len(c.flights) == 0
	c.mu.Unlock()
	c.giveUp(errMoved)
	c.interrupt(errMoved, watches)
	if idle {
		c.pool.close()
	}
}

// close ends everything at once.
func (c *connection) close(cause error) {
	c.mu.Lock()
	c.retired = true
	c.mu.Unlock()
	c.giveUp(cause)
	c.interrupt(cause, everything)
	c.pool.close()
}

// answer is the body of an answer.
type answer struct {
	io.ReadCloser
	flight *flight
	// left is how many bytes may still be read.
	left int64
}

// Read implements io.Reader. A watch that we end looks as if the server had ended it, which clients know to deal with.
func (a *answer) Read(buffer []byte) (int, error) {
	n, err := a.ReadCloser.Read(buffer)
	if !a.flight.watch {
		if a.left -= int64(n); a.left < 0 {
			return 0, errTooLarge
		}
	}
	if err == nil || errors.Is(err, io.EOF) {
		return n, err
	}
	cause := a.flight.ended()
	switch {
	case a.flight.watch && cause != nil:
		return n, io.EOF
	case errors.Is(cause, context.Canceled):
		// The client has closed the body.
		return n, err
	}
	a.flight.report(outcome{broken: true})
	if cause != nil {
		return n, cause
	}
	return n, err
}

// Close implements io.Closer.
func (a *answer) Close() error {
	err := a.ReadCloser.Close()
	a.flight.end()
	return err
}

// isWatch tells whether the answer of a request goes on for as long as the client likes.
func isWatch(req *http.Request) bool {
	query := req.URL.Query()
	for _, parameter := range []string{"watch", "follow"} {
		if on, err := strconv.ParseBool(query.Get(parameter)); err == nil && on {
			return true
		}
	}
	return false
}
