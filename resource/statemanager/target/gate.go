package target

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"k8s.io/client-go/util/flowcontrol"
)

// gate is the one way to a cluster: it finds the connection to use now, keeps to the rate, and counts.
type gate struct {
	cluster *Cluster
	// admit returns the connection to use.
	admit func(ctx context.Context) (*connection, error)
}

// RoundTrip implements http.RoundTripper.
func (g *gate) RoundTrip(req *http.Request) (*http.Response, error) {
	flight, err := g.board(req)
	if err != nil {
		if req.Body != nil {
			_ = req.Body.Close()
		}
		return nil, err
	}
	return flight.conn.send(flight, req)
}

// watchGate is the gate for watches. They end with the cluster, which is no loss of contact: what fails then, fails with
// the end of its request.
type watchGate struct{ gate }

// RoundTrip implements http.RoundTripper.
func (g *watchGate) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := g.gate.RoundTrip(req)
	if err != nil && g.cluster.dropped() {
		<-req.Context().Done()
		return nil, req.Context().Err()
	}
	return resp, err
}

// board returns a flight on the connection to use, once the rate allows it. What happens to the cluster while it waits is
// taken into account: there is another connection then, or an error that says why not.
func (g *gate) board(req *http.Request) (*flight, error) {
	if req.URL.Host != g.cluster.host {
		return nil, errForeignHost
	}
	for {
		conn, err := g.admit(req.Context())
		if err != nil {
			return nil, g.refused(err)
		}
		f, ok := conn.begin(req)
		if !ok {
			continue
		}
		begun := time.Now()
		err = g.cluster.limiter.Wait(f.ctx)
		g.cluster.clusters.metrics.waited(time.Since(begun))
		if err == nil && conn.ctx.Err() == nil {
			return f, nil
		}
		interrupted := f.ended() != nil || conn.ctx.Err() != nil
		f.end()
		if !interrupted {
			return nil, fmt.Errorf("wait for the rate limit of %s: %w", describe(g.cluster.key), err)
		}
	}
}

// refused counts what is not sent because the cluster can't be reached.
func (g *gate) refused(err error) error {
	if errors.Is(err, ErrUnreachable) {
		g.cluster.clusters.metrics.refused()
	}
	return err
}

// newLimiter returns what all requests to one cluster wait for.
func newLimiter(qps float32, burst int) flowcontrol.RateLimiter {
	if qps < 0 {
		return flowcontrol.NewFakeAlwaysRateLimiter()
	}
	return flowcontrol.NewTokenBucketRateLimiter(qps, burst)
}
