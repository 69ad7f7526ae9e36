package operatortest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"syscall"
)

// ErrInjected is in the chain of every error that a [Faults] made itself, as
// opposed to one that came from the network or the API server.
var ErrInjected = errors.New("injected fault")

// Cut breaks the link between the operator and its API server: everything under
// way ends with a reset connection, watches too, and everything new is refused,
// until [Faults.Restore]. What the server had already received it may still
// carry out.
func (f *Faults) Cut() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.link.change(linkCut)
}

// Restore mends what [Faults.Cut] broke.
func (f *Faults) Restore() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.link.change(linkOpen)
}

// activity returns whether anything was let in so far, how many writes were counted,
// and whether one of them is under way.
func (f *Faults) activity() (seen bool, writes int, busy bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for p := range f.link.passing {
		busy = busy || p.write != nil
	}
	return f.seen, len(f.writes), busy
}

type linkState int

const (
	linkOpen linkState = iota
	linkHeld           // new requests wait for the next change
	linkCut            // new requests are refused, those under way are broken
)

// errLinkCut is the cause by which the context of a broken request ends, so that
// it can be told from the end of the caller's own context.
var errLinkCut = errors.New("link cut")

// link is the state of a Faults' connection. Its methods need the lock of its Faults.
type link struct {
	state   linkState
	changed chan struct{} // closed at the next change of state
	passing map[*passage]struct{}
}

func newLink() link {
	return link{changed: make(chan struct{}), passing: map[*passage]struct{}{}}
}

func (l *link) change(state linkState) {
	l.state = state
	close(l.changed)
	l.changed = make(chan struct{})
	if state != linkCut {
		return
	}
	for p := range l.passing {
		p.cancel(errLinkCut)
	}
	clear(l.passing)
}

func (l *link) enter(ctx context.Context) *passage {
	p := &passage{}
	p.ctx, p.cancel = context.WithCancelCause(ctx)
	l.passing[p] = struct{}{}
	return p
}

// passage is one request on its way, until its answer's body is closed.
type passage struct {
	faults  *Faults
	request Request
	write   *Write // nil when the request is not a counted write
	fault   Fault
	ctx     context.Context
	cancel  context.CancelCauseFunc
}

func (p *passage) leave() {
	p.faults.mu.Lock()
	delete(p.faults.link.passing, p)
	p.faults.mu.Unlock()
	p.cancel(nil)
}

// answered notes what the API server said to a write.
func (p *passage) answered(status int) {
	if p.write == nil {
		return
	}
	p.faults.mu.Lock()
	defer p.faults.mu.Unlock()
	p.write.Status = status
}

// explain makes what looks like a cancellation, but is none of the caller's, look
// like the broken connection that it stands for.
func (p *passage) explain(err error) error {
	if errors.Is(context.Cause(p.ctx), errLinkCut) {
		return lost("the link to the API server was cut")
	}
	return err
}

// hand gives the caller an answer whose body keeps the passage until it is closed.
func (p *passage) hand(resp *http.Response) *http.Response {
	if resp.StatusCode == http.StatusSwitchingProtocols {
		p.faults.mu.Lock()
		delete(p.faults.link.passing, p)
		p.faults.mu.Unlock()
		return resp
	}
	resp.Body = &passingBody{ReadCloser: resp.Body, passage: p}
	return resp
}

type passingBody struct {
	io.ReadCloser
	passage *passage
}

func (b *passingBody) Read(buffer []byte) (int, error) {
	n, err := b.ReadCloser.Read(buffer)
	if err != nil && !errors.Is(err, io.EOF) {
		err = b.passage.explain(err)
	}
	return n, err
}

func (b *passingBody) Close() error {
	err := b.ReadCloser.Close()
	b.passage.leave()
	return err
}

// refused is the error of a request that did not reach the API server.
func refused(why string) error {
	return connectionError("dial", os.NewSyscallError("connect", syscall.ECONNREFUSED), why)
}

// lost is the error of a request that may have reached the API server.
func lost(why string) error {
	return connectionError("read", os.NewSyscallError("read", syscall.ECONNRESET), why)
}

func connectionError(op string, cause error, why string) error {
	return fmt.Errorf("%w: %s: %w", ErrInjected, why, &net.OpError{Op: op, Net: "tcp", Err: cause})
}
