package target

import (
	"context"
	"errors"
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
	for {
		conn, err := g.pass(req)
		if err != nil {
			if req.Body != nil {
				_ = req.Body.Close()
			}
			return nil, err
		}
		// A connection that was given up a moment ago has a successor, or there is an error that says why not.
		if f, ok := conn.begin(req); ok {
			return conn.send(f, req)
		}
	}
}

func (g *gate) pass(req *http.Request) (*connection, error) {
	c := g.cluster
	if req.URL.Host != c.host {
		return nil, errForeignHost
	}
	if _, err := g.admit(req.Context()); err != nil {
		return nil, g.refused(err)
	}
	begun := time.Now()
	if err := c.limiter.Wait(req.Context()); err != nil {
		return nil, err
	}
	c.clusters.metrics.waited(time.Since(begun))
	// Much may have happened meanwhile.
	conn, err := g.admit(req.Context())
	if err != nil {
		return nil, g.refused(err)
	}
	return conn, nil
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
