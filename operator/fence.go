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

// Fence keeps a replica from writing when it is not certain to hold the lease of its leader
// election: before it leads, after it has lost the lease, and even if it has not noticed the loss,
// because its process was stopped (SIGSTOP, a paused machine) for longer than the lease lasts and
// resumes in the middle of a reconciliation.
//
// Every operator with leader election has one. While it is closed, no resource of its frameworks
// starts to change anything (see framework.Policy). The fence of [Dependencies] also checks each
// request of their Client, Recorder and RESTConfig. Give it to other writers: Check to NATS
// buckets, and Transport, TransportTo or Dependencies.HTTPClient to clients of HTTP APIs. A writer
// without a fence, such as another connection or program that an author starts, is only held back
// before a resource starts.
//
// The fence opens with each renewal of the lease. It closes by itself before LeaseDuration has
// passed since the start of that renewal: earlier by half of the difference between LeaseDuration
// and RenewDeadline, so that clocks may differ in speed. Others can acquire the lease only later
// than that. A write that has passed the fence may still be on its way when the fence closes. Give
// writes a precondition, such as a revision or a resource version, which refuses late ones.
//
// All methods are safe for concurrent use.
type Fence struct {
	now func() time.Time

	mu sync.Mutex
	// always is set while there can be no other writer: without an election, and, for the fence of
	// Dependencies, until an operator is made.
	always bool
	// bound is set once an operator uses the fence.
	bound bool
	// lost is set once the lease was lost: the fence does not open again.
	lost bool
	// since is the start of the last successful renewal, and zero while the lease is not held. It
	// includes a reading of the monotonic clock.
	since time.Time
	// validity is how long a renewal counts.
	validity time.Duration
	// required are fences that must be open too.
	required []*Fence
}

// NewFence returns a fence that is closed until an operator with LeaderElectionConfig.Fence holds
// its lease. Without leader election (Enabled is false) the fence is open from New on. NewFence is
// for code that needs a fence before it has Dependencies, or that has none.
func NewFence() *Fence { return &Fence{now: time.Now} }

// Check returns nil while this replica certainly holds the lease, and otherwise an error that wraps
// ErrLeaseLost.
func (f *Fence) Check() error { return f.check(false) }

// CheckRequest returns nil if Transport would let a request pass, and otherwise its error. It is
// for clients without a transport, which must call it before each request.
func (f *Fence) CheckRequest(r *http.Request) error {
	reads := !requests.Writes(r)
	switch may, _ := r.Context().Value(beyondKey{}).(beyond); {
	case may == mayWrite, may == mayRead && reads:
		return nil
	}
	return f.check(reads)
}

// check is Check for a write, or for a read. Only a leader that may have lost its lease may not
// read, because its work would be based on the result.
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

// fencePolicy keeps resources from starting any change while a fence is closed, whatever the means
// of the change.
type fencePolicy struct{ *Fence }

// Admit implements framework.Policy.
func (p fencePolicy) Admit(context.Context, framework.Proposal) framework.Verdict {
	if err := p.Check(); err != nil {
		return framework.Deny(err)
	}
	return framework.Go()
}

// require keeps the fence closed while another one is closed.
func (f *Fence) require(other *Fence) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.required = append(f.required, other)
}

// age is the time since the last renewal by the clock that shows the longer time: the monotonic
// clock may stop while the machine sleeps, and the wall clock may be set back.
func (f *Fence) age() time.Duration {
	now := f.now()
	return max(now.Sub(f.since), now.Round(0).Sub(f.since.Round(0)))
}

// Transport returns a transport that refuses to start requests while the fence is closed. A replica
// that does not lead yet may read: by GET, HEAD and OPTIONS, unless these open a connection (exec,
// WebSockets), and by dry runs (dryRun=All) and queries (reviews, tokens) of Kubernetes. A replica
// that may have lost its lease may not even read. Dependencies.RESTConfig has the transport
// already; it fits the Wrap of another rest.Config:
//
//	config.Wrap(fence.Transport)
//
// An operator with such a config still ensures its definitions, and campaigns for its lease.
func (f *Fence) Transport(next http.RoundTripper) http.RoundTripper {
	return &fencedTransport{fence: f, next: next}
}

// TransportTo returns a function that puts the fence before the requests to each of many clusters.
// It fits the WrapTransport of components that connect to them. The transports that wrap adds are
// behind the fence; wrap may be nil.
func (f *Fence) TransportTo(wrap func(cluster types.NamespacedName, next http.RoundTripper) http.RoundTripper,
) func(cluster types.NamespacedName, next http.RoundTripper) http.RoundTripper {
	return func(cluster types.NamespacedName, next http.RoundTripper) http.RoundTripper {
		if wrap != nil {
			next = wrap(cluster, next)
		}
		return f.Transport(tracedAPIServer(next))
	}
}

// bind assigns the fence to an election in which a renewal counts for validity, or to an operator
// without an election. It returns false if the fence has an operator already.
func (f *Fence) bind(validity time.Duration, elected bool) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.bound {
		return false
	}
	f.bound, f.validity, f.always = true, validity, !elected
	return true
}

// renewed opens the fence after a renewal that started at start.
func (f *Fence) renewed(start time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.since = start
}

// holdsLease reports whether the lease was renewed, and not released or lost since.
func (f *Fence) holdsLease() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return !f.since.IsZero() && !f.lost
}

// renewedAt returns the start of the last successful renewal, in seconds of Unix time, and 0 while
// the lease is not held.
func (f *Fence) renewedAt() float64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.since.IsZero() || f.lost {
		return 0
	}
	return float64(f.since.UnixNano()) / 1e9
}

// isLost reports whether the fence is closed for good.
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

// dispense reverts require.
func (f *Fence) dispense(other *Fence) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.required = slices.DeleteFunc(f.required, func(known *Fence) bool { return known == other })
}

// fenceOf returns the fence that guards all requests of config, or nil. It looks through transports
// that have a WrappedRoundTripper.
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

// beyond is a permission that a context has on every replica, leading or not.
type beyond int

const (
	// mayRead is for requests on behalf of users that inspect a replica.
	mayRead beyond = iota + 1
	// mayWrite is for campaigning and for ensuring definitions.
	mayWrite
)

// beyondKey is the context key of beyond.
type beyondKey struct{}

func withoutFence(ctx context.Context) context.Context {
	return context.WithValue(ctx, beyondKey{}, mayWrite)
}

// beyondFence lets a handler ask the API server for the user of a token, even on a replica that may
// have lost its lease, so that its metrics and its page stay available. It permits reads only:
// writes by a requested plan are still held back.
func beyondFence(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), beyondKey{}, mayRead)))
	})
}
