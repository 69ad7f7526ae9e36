package operatortest

import (
	"net/http"
	"sync"

	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// exchanges is a record of the requests that go through its transports.
type exchanges struct {
	mu  sync.Mutex
	all []*Exchange
}

// list returns those so far, in their order.
func (r *exchanges) list() []Exchange {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := make([]Exchange, len(r.all))
	for i, e := range r.all {
		list[i] = *e
	}
	return list
}

// begin notes a request.
func (r *exchanges) begin(request Request) *Exchange {
	e := &Exchange{Request: request}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, e)
	return e
}

func (r *exchanges) transport(next http.RoundTripper) http.RoundTripper {
	return &recordingTransport{record: r, next: next}
}

// recordingTransport keeps each request with its answer.
type recordingTransport struct {
	record *exchanges
	next   http.RoundTripper
}

// WrappedRoundTripper lets apimachinery's helpers reach the transport below.
func (t *recordingTransport) WrappedRoundTripper() http.RoundTripper { return t.next }

// CloseIdleConnections is what http.Client.CloseIdleConnections looks for.
func (t *recordingTransport) CloseIdleConnections() { utilnet.CloseIdleConnectionsFor(t.next) }

func (t *recordingTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	e := t.record.begin(requestOf(req))
	resp, err := t.next.RoundTrip(req)
	if err == nil {
		t.record.mu.Lock()
		defer t.record.mu.Unlock()
		e.Status = resp.StatusCode
	}
	return resp, err
}
