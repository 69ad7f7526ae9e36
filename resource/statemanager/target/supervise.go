package target

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/version"

	"github.com/operatorkit/operatorkit/internal/cut"
)

// maxVersion is how much of the answer to a probe is read, in bytes.
const maxVersion = 64 << 10

// supervise looks for the kubeconfig whenever it may have changed, and probes whenever a probe is due.
func (c *Cluster) supervise() {
	c.resolve()
	close(c.resolved)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for c.ctx.Err() == nil {
		conn, due, stale := c.task()
		wait := time.Until(due)
		switch {
		case stale:
			c.resolve()
			continue
		case conn != nil && wait <= 0:
			c.probe(conn)
			continue
		}
		var ring <-chan time.Time
		if conn != nil {
			timer.Reset(wait)
			ring = timer.C
		}
		select {
		case <-c.wake:
		case <-ring:
		case <-c.ctx.Done():
		}
	}
}

// task returns what there is to do.
func (c *Cluster) task() (conn *connection, due time.Time, stale bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.conn, c.health.nextTry, c.stale
}

// observe takes note of how a request went.
func (c *Cluster) observe(conn *connection, o outcome) {
	c.clusters.metrics.answered(o)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conn != conn {
		return
	}
	if !o.suspicious() {
		c.health.answered(now())
		return
	}
	c.health.doubt(now())
	c.rouse()
}

// probe asks for the version, and concludes what state the cluster is in.
func (c *Cluster) probe(conn *connection) {
	ctx, cancel := context.WithTimeout(c.ctx, c.clusters.config.ConnectTimeout)
	defer cancel()
	defer context.AfterFunc(conn.ctx, cancel)()
	info, err := conn.ask(ctx)
	state := Connected
	switch {
	case errors.Is(err, errUnauthorized):
		state = CredentialRefused
	case err != nil:
		state = Unreachable
	}
	c.clusters.metrics.probed(state)

	c.mu.Lock()
	if c.conn != conn || c.closed != nil {
		c.mu.Unlock()
		return
	}
	if err == nil {
		c.version = info
	}
	changed := c.health.conclude(state, err, now())
	failure := c.errLocked()
	c.settle(changed)
	if failure != nil {
		conn.interrupt(failure, everything)
		conn.pool.reset()
	}
}

var errUnauthorized = errors.New("the answer is 401 Unauthorized")

// ask asks for the version of the API server. Every answer that a Kubernetes API gives to somebody whom it knows is fine.
func (c *connection) ask(ctx context.Context) (*version.Info, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base.JoinPath("version").String(), nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json")
	resp, err := c.transport.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	switch resp.StatusCode {
	case http.StatusOK:
	case http.StatusForbidden:
		return &version.Info{GitVersion: "of unknown version"}, nil
	case http.StatusUnauthorized:
		return nil, errUnauthorized
	default:
		return nil, fmt.Errorf("the answer is %d, which is not that of a Kubernetes API", resp.StatusCode)
	}
	info := &version.Info{}
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxVersion)).Decode(info); err != nil || info.GitVersion == "" {
		return nil, errors.New("the answer is not that of a Kubernetes API: it has no version")
	}
	info.GitVersion = cut.Text(info.GitVersion, maxMessage)
	return info, nil
}
