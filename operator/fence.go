package operator

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/operator/internal/requests"
)

// Fence keeps a replica from writing when it is not certain to hold the lease of its leader election: before it leads,
// after it has lost the lease, and also when it has lost it without knowing, because its process was stopped (SIGSTOP, a
// paused machine) for longer than the lease lasts and goes on in the middle of a reconciliation.
//
// Every operator with a leader election has one. No resource of its frameworks begins to change anything while it is closed (see
// framework.Policy). That of [Dependencies] stands before each request of their Client, Recorder and RESTConfig, too;
// what else writes is given it: Check to buckets of NATS, Transport, TransportTo or Dependencies.HTTPClient to clients of HTTP APIs. What has
// no fence is held back before a resource begins only: connections that an author opens in another way, and programs that he starts.
//
// The fence opens with each renewal of the lease, and closes by itself some time before LeaseDuration after that renewal was
// begun: by half of what LeaseDuration is longer than RenewDeadline, so that clocks may differ in their speed. Others can take the
// lease over only later than that. A write that has passed the fence may still be on its way when it closes:
// let writes carry a precondition, a revision or a resource version, which refuses those that come too late.
//
// All methods are safe for concurrent use.
type Fence struct {
	now func() time.Time

	mu sync.Mutex
	// always is set while nobody else can write: without an election, and until an operator is made, for that of Dependencies.
	always bool
	// bound is set once an operator uses the fence.
	bound bool
	// lost is set once the lease was lost: the fence does not open again.
	lost bool
	// since is when the last successful renewal was begun, and zero when the lease is not held. It has a reading of the
	// monotonic clock, too.
	since time.Time
	// validity is how long a renewal counts.
	validity time.Duration
	// required are fences that have to be open too.
	required []*Fence
}

// NewFence returns a fence that is closed until an operator with LeaderElectionConfig.Fence holds its lease. Without a
// leader election, that is with Enabled false, the fence is open from New on. It is for those who need one before there are
// Dependencies, or have none.
func NewFence() *Fence { return &Fence{now: time.Now} }

// Check returns nil while this replica holds the lease for certain, and otherwise an error that wraps ErrLeaseLost.
func (f *Fence) Check() error { return f.check(false) }

// CheckRequest returns nil if Transport would let a request pass, and otherwise its error. It is for clients that have no transport of
// their own, but ask before each request.
func (f *Fence) CheckRequest(r *http.Request) error {
	reads := !requests.Writes(r)
	switch may, _ := r.Context().Value(beyondKey{}).(beyond); {
	case may == mayWrite, may == mayRead && reads:
		return nil
	}
	return f.check(reads)
}

// check is Check for something that writes, or only reads. Reading is refused to nobody but a leader that may have lost its
// lease: what it reads is what it would work with.
func (f *Fence) check(reading bool) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.always:
		return nil
	case f.lost:
		return fmt.Errorf("%w: this replica held it before", ErrLeaseLost)
	case f.since.IsZero() && reading:
		return nil
	case !f.bound:
		return fmt.Errorf("%w: the fence belongs to no operator: set it in LeaderElectionConfig.Fence", ErrLeaseLost)
	case f.since.IsZero():
		return fmt.Errorf("%w: this replica does not hold it, and must not write", ErrLeaseLost)
	}
	if age := f.age(); age >= f.validity {
		return fmt.Errorf("%w: this replica renewed it %s ago, which counts for %s: others may hold it by now",
			ErrLeaseLost, age.Round(time.Millisecond), f.validity)
	}
	for _, other := range f.required {
		if err := other.check(reading); err != nil {
			return err
		}
	}
	return nil
}

// fencePolicy lets no resource begin to change anything while a fence is closed, whatever it would
// change that by.
type fencePolicy struct{ *Fence }

// Admit implements framework.Policy.
func (p fencePolicy) Admit(context.Context, framework.Proposal) framework.Verdict {
	if err := p.Check(); err != nil {
		return framework.Deny(err)
	}
	return framework.Go()
}

// require has the fence closed as long as another one is.
func (f *Fence) require(other *Fence) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.required = append(f.required, other)
}

// age is the time since the last renewal by the clock that says more: the monotonic one may stand still while the machine
// sleeps, and the one on the wall may be set back.
func (f *Fence) age() time.Duration {
	now := f.now()
	return max(now.Sub(f.since), now.Round(0).Sub(f.since.Round(0)))
}

// Transport returns a transport that refuses to begin requests while the fence is closed. A replica that does not lead yet may
// read: by GET, HEAD and OPTIONS, unless these open a connection (exec, WebSockets), and by dry runs (dryRun=All) and questions (reviews,
// tokens) of Kubernetes. One that may have lost its lease may not even that. Dependencies.RESTConfig has it already; it fits the Wrap of
// another rest.Config:
//
//	config.Wrap(fence.Transport)
//
// An operator that is given such a config still ensures its definitions, and campaigns for its lease.
func (f *Fence) Transport(next http.RoundTripper) http.RoundTripper {
	return &fencedTransport{fence: f, next: next}
}

// TransportTo returns a function that puts the fence before the requests to each of many clusters, for the WrapTransport of what
// connects to them. What wrap, which may be nil, goes around them with comes behind the fence.
func (f *Fence) TransportTo(wrap func(cluster types.NamespacedName, next http.RoundTripper) http.RoundTripper,
) func(cluster types.NamespacedName, next http.RoundTripper) http.RoundTripper {
	return func(cluster types.NamespacedName, next http.RoundTripper) http.RoundTripper {
		if wrap != nil {
			next = wrap(cluster, next)
		}
		return f.Transport(tracedAPIServer(next))
	}
}

// bind makes the fence that of an election in which a renewal counts for validity, or of an operator without one. It returns
// false when it has an operator already.
func (f *Fence) bind(validity time.Duration, elected bool) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.bound {
		return false
	}
	f.bound, f.validity, f.always = true, validity, !elected
	return true
}

// renewed opens the fence for a renewal that was begun at start.
func (f *Fence) renewed(start time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.since = start
}

// holdsLease tells whether the lease was renewed, and not given up or lost since.
func (f *Fence) holdsLease() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return !f.since.IsZero() && !f.lost
}

// renewedAt is when the last successful renewal was begun, in seconds of Unix time, and 0 while the lease is not held.
func (f *Fence) renewedAt() float64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.since.IsZero() || f.lost {
		return 0
	}
	return float64(f.since.UnixNano()) / 1e9
}

// isLost tells whether the fence is closed for good.
func (f *Fence) isLost() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.lost || slices.ContainsFunc(f.required, (*Fence).isLost)
}

// close closes the fence until the next renewal.
func (f *Fence) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.since = time.Time{}
}

// lose closes the fence for good.
func (f *Fence) lose() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lost = true
}

// dispense ends require.
func (f *Fence) dispense(other *Fence) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.required = slices.DeleteFunc(f.required, func(known *Fence) bool { return known == other })
}

// fenceOf returns the fence that stands before all requests of config, or nil. It sees through transports that have a
// WrappedRoundTripper.
func fenceOf(config *rest.Config) *Fence {
	if config == nil || config.WrapTransport == nil {
		return nil
	}
	for transport := config.WrapTransport(http.DefaultTransport); transport != nil; {
		if fenced, ok := transport.(*fencedTransport); ok {
			return fenced.fence
		}
		wrapper, ok := transport.(utilnet.RoundTripperWrapper)
		if !ok {
			return nil
		}
		transport = wrapper.WrappedRoundTripper()
	}
	return nil
}

type fencedTransport struct {
	fence *Fence
	next  http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t *fencedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := t.fence.CheckRequest(r); err != nil {
		if r.Body != nil {
			_ = r.Body.Close()
		}
		return nil, fmt.Errorf("%s %s: %w", r.Method, r.URL.Path, err)
	}
	return t.next.RoundTrip(r)
}

// WrappedRoundTripper lets others find the transport below, for example to close its connections.
func (t *fencedTransport) WrappedRoundTripper() http.RoundTripper { return t.next }

// CloseIdleConnections is what http.Client.CloseIdleConnections looks for.
func (t *fencedTransport) CloseIdleConnections() { utilnet.CloseIdleConnectionsFor(t.next) }

// beyond is what every replica may do in a context, whether or not it leads.
type beyond int

const (
	// mayRead is for what is asked by those who look at a replica.
	mayRead beyond = iota + 1
	// mayWrite is for campaigning and for ensuring definitions.
	mayWrite
)

// beyondKey is that of beyond in contexts.
type beyondKey struct{}

func withoutFence(ctx context.Context) context.Context {
	return context.WithValue(ctx, beyondKey{}, mayWrite)
}

// beyondFence lets a handler ask the API server whose a token is, also on a replica that may have lost its lease, of which the metrics and the
// page tell. It reads only: what the plans write that somebody asks for is held back.
func beyondFence(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), beyondKey{}, mayRead)))
	})
}
