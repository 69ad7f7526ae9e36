package operator

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"
)

// Fence keeps a replica from writing when it is not certain to hold the lease of its leader election: before it leads,
// after it has lost the lease, and also when it has lost it without knowing, because its process was stopped (SIGSTOP, a
// paused machine) for longer than the lease lasts and goes on in the middle of a reconciliation. It is given to
// LeaderElectionConfig.Fence, and to what writes: Check to buckets of NATS, Transport to clients of HTTP APIs.
//
// The fence opens with each renewal of the lease, and closes by itself LeaseDuration after that renewal was begun. Others
// can take the lease over only later than that. A write that has passed the fence may still be on its way when it closes:
// let writes carry a precondition, a revision or a resource version, which refuses those that come too late.
//
// All methods are safe for concurrent use.
type Fence struct {
	now func() time.Time

	mu sync.Mutex
	// always is set when there is no election, so that nobody else writes.
	always bool
	// bound is set once an operator uses the fence.
	bound bool
	// since is when the last successful renewal was begun, and zero when the lease is not held. It has a reading of the
	// monotonic clock, too.
	since time.Time
	lease time.Duration
}

// NewFence returns a fence that is closed until an operator with LeaderElectionConfig.Fence holds its lease. Without a
// leader election, that is with Enabled false, the fence is open from New on.
func NewFence() *Fence { return &Fence{now: time.Now} }

// Check returns nil while this replica holds the lease for certain, and otherwise an error that wraps ErrLeaseLost.
func (f *Fence) Check() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.always:
		return nil
	case !f.bound:
		return fmt.Errorf("%w: the fence belongs to no operator: set it in LeaderElectionConfig.Fence", ErrLeaseLost)
	case f.since.IsZero():
		return fmt.Errorf("%w: this replica does not hold it, and must not write", ErrLeaseLost)
	}
	if age := f.age(); age >= f.lease {
		return fmt.Errorf("%w: this replica renewed it %s ago, and it lasts %s: others may hold it by now",
			ErrLeaseLost, age.Round(time.Millisecond), f.lease)
	}
	return nil
}

// age is the time since the last renewal by the clock that says more: the monotonic one may stand still while the machine
// sleeps, and the one on the wall may be set back.
func (f *Fence) age() time.Duration {
	now := f.now()
	return max(now.Sub(f.since), now.Round(0).Sub(f.since.Round(0)))
}

// Transport returns a transport that refuses requests that write while the fence is closed. These are all but GET, HEAD and
// OPTIONS, and dry runs of Kubernetes (dryRun=All), by which replicas plan that do not lead. It fits the Wrap of a rest.Config:
//
//	config.Wrap(fence.Transport)
//
// An operator that is given such a config still ensures its definitions, and campaigns for its lease.
func (f *Fence) Transport(next http.RoundTripper) http.RoundTripper {
	return &fencedTransport{fence: f, next: next}
}

// bind makes the fence that of an election, or of an operator without one. It returns false when it has an operator
// already.
func (f *Fence) bind(lease time.Duration, elected bool) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.bound {
		return false
	}
	f.bound, f.lease, f.always = true, lease, !elected
	return true
}

// renewed opens the fence for a renewal that was begun at start.
func (f *Fence) renewed(start time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.since = start
}

// close closes the fence until the next renewal.
func (f *Fence) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.since = time.Time{}
}

type fencedTransport struct {
	fence *Fence
	next  http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t *fencedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if reads(r) || r.Context().Value(beforeLeading{}) != nil {
		return t.next.RoundTrip(r)
	}
	if err := t.fence.Check(); err != nil {
		if r.Body != nil {
			_ = r.Body.Close()
		}
		return nil, fmt.Errorf("%s %s: %w", r.Method, r.URL.Path, err)
	}
	return t.next.RoundTrip(r)
}

// WrappedRoundTripper lets others find the transport below, for example to close its connections.
func (t *fencedTransport) WrappedRoundTripper() http.RoundTripper { return t.next }

func reads(r *http.Request) bool {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return true
	}
	return slices.Contains(r.URL.Query()["dryRun"], "All")
}

// beforeLeading is the key of contexts in which every replica may write: campaigning, ensuring definitions.
type beforeLeading struct{}

func withoutFence(ctx context.Context) context.Context {
	return context.WithValue(ctx, beforeLeading{}, true)
}
