package operatortest

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
)

// party is who writes in a run.
type party string

const (
	theUser      party = "the user"
	theOperator  party = "the operator"
	theNeighbour party = "the neighbour"
)

// writer is a party of a run, which has the name of its namespace.
type writer struct {
	party party
	run   string
}

// Ledger knows which of several operators created what, and which wrote what another one had created, where no [Scenario] runs them. It
// is safe for concurrent use.
type Ledger struct{ ledger *ledger }

// NewLedger returns a ledger, to which leases and events are all the same.
func NewLedger() *Ledger { return &Ledger{newLedger([]Match{Leases, Events})} }

// As returns a copy of a configuration by which an operator of that name writes. Faults go around it: a write whose answer is lost counts too.
func (l *Ledger) As(name string, config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(l.ledger.as(writer{party: party(name)}))
	return config
}

// Trespasses says in words who wrote or deleted what another one had created.
func (l *Ledger) Trespasses() []string { return l.ledger.of("") }

// ledger knows who created what, and who wrote what another one had created.
type ledger struct {
	uncounted []Match

	mu         sync.Mutex
	creators   map[types.UID]writer
	trespasses map[string][]string // by run
}

func newLedger(uncounted []Match) *ledger {
	return &ledger{uncounted: uncounted, creators: map[types.UID]writer{}, trespasses: map[string][]string{}}
}

// of returns the trespasses of a run.
func (l *ledger) of(run string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.trespasses[run])
}

// as returns what wraps the transport of a writer. It has to be below the faults: a write whose answer is lost counts too.
func (l *ledger) as(w writer) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper {
		return &ledgerTransport{ledger: l, writer: w, next: next}
	}
}

// enter notes a write that was carried out. Of what nobody of the three created, such as what Kubernetes' own controllers did,
// the ledger knows nothing.
func (l *ledger) enter(w writer, request Request, status int, uids []types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, uid := range uids {
		creator, known := l.creators[uid]
		switch {
		case !known && status == http.StatusCreated:
			l.creators[uid] = w
		case known && creator.party != theUser && w.party != theUser && creator != w:
			l.trespasses[w.run] = append(l.trespasses[w.run], fmt.Sprintf("%s wrote what is %s's: %s", w.party, creator.party, request))
		}
	}
}

type ledgerTransport struct {
	ledger *ledger
	writer writer
	next   http.RoundTripper
}

// WrappedRoundTripper lets apimachinery's helpers reach the transport below.
func (t *ledgerTransport) WrappedRoundTripper() http.RoundTripper { return t.next }

// CloseIdleConnections is what http.Client.CloseIdleConnections looks for.
func (t *ledgerTransport) CloseIdleConnections() { utilnet.CloseIdleConnectionsFor(t.next) }

func (t *ledgerTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	request, body, err := readRequest(req)
	if err != nil {
		return nil, err
	}
	resp, err := t.next.RoundTrip(withBody(req.Context(), req, body))
	if err != nil || resp.StatusCode >= http.StatusMultipleChoices || !request.isWrite() || matchesAny(t.ledger.uncounted, request) {
		return resp, err
	}
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		_ = resp.Body.Close()
		return nil, fmt.Errorf("read the answer to %s: %w", request, err)
	}
	if err := resp.Body.Close(); err != nil {
		return nil, err
	}
	resp.Body = io.NopCloser(bytes.NewReader(answer))
	t.ledger.enter(t.writer, request, resp.StatusCode, readHead(mediaType(resp.Header), answer).uids())
	return resp, nil
}
