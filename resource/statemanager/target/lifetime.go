package target

import (
	"errors"
	"maps"
	"slices"
	"time"
)

// start begins to look after the cluster. The caller holds the lock of Clusters, which run.
func (c *Cluster) start() {
	c.clusters.log("target cluster is in use", "cluster", c.key.String())
	c.clusters.wg.Go(c.supervise)
}

// join adds a user. The caller holds the lock of Clusters.
func (c *Cluster) join(user Key) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.leaving != nil {
		c.leaving.Stop()
	}
	if _, known := c.users[user]; known {
		return
	}
	c.users[user] = struct{}{}
	c.clusters.notices.joined(user)
}

// leave removes a user and what it watches. After the last one, the cluster has its IdleTimeout left.
func (c *Cluster) leave(user Key) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, known := c.users[user]; !known {
		return
	}
	c.watchOnly(user, nil)
	delete(c.users, user)
	c.clusters.notices.left(user)
	if len(c.users) == 0 && c.closed == nil {
		c.leaving = time.AfterFunc(c.clusters.config.IdleTimeout, func() { c.clusters.dropIdle(c) })
	}
}

// idle tells whether everybody has left.
func (c *Cluster) idle() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.users) == 0
}

// close ends everything. The goroutines end soon after.
func (c *Cluster) close(cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed != nil {
		return
	}
	c.closed = cause
	if c.leaving != nil {
		c.leaving.Stop()
	}
	for user := range c.users {
		c.watchOnly(user, nil)
		c.clusters.notices.left(user)
	}
	clear(c.users)
	c.stop()
	if c.conn != nil {
		c.conn.close(cause)
	}
	c.announce()
}

// dropped tells whether the cluster was closed.
func (c *Cluster) dropped() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed != nil
}

// reconsider has the kubeconfig looked for again.
func (c *Cluster) reconsider() {
	c.mu.Lock()
	c.stale = true
	c.mu.Unlock()
	c.rouse()
}

// refersTo tells whether the kubeconfig is looked for in that Secret.
func (c *Cluster) refersTo(secret Key) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.where.secret == secret
}

// rouse wakes the supervisor.
func (c *Cluster) rouse() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// announce wakes who waits for another state.
func (c *Cluster) announce() {
	close(c.changed)
	c.changed = make(chan struct{})
}

// resolve looks for the kubeconfig and takes the one that is there now. Only the supervisor calls it.
func (c *Cluster) resolve() {
	c.mu.Lock()
	c.stale = false
	known := ""
	if c.conn != nil {
		known = c.conn.fingerprint
	}
	c.mu.Unlock()

	next, err := c.connection(known)
	c.mu.Lock()
	if c.closed != nil {
		c.mu.Unlock()
		if next != nil {
			next.close(errMoved)
		}
		return
	}
	old, changed := c.conn, false
	switch {
	case err != nil:
		c.conn = nil
		changed = c.health.disconnect(stateOf(err), err, now())
	case next != nil:
		c.conn, changed = next, c.health.state != Connecting
		c.health.connect(now())
	}
	if c.conn != old {
		c.version, c.identity = nil, ""
		c.mapper.Reset()
	}
	c.settle(changed)
	if old != nil && c.currentIsNot(old) {
		old.retire()
	}
}

// connection makes a connection with the kubeconfig as it is now; none if it is the known one.
func (c *Cluster) connection(known string) (*connection, error) {
	var where reference
	var err error
	if c.key != (Key{}) {
		where, err = c.clusters.refer(c.key)
	}
	// Before the Secret is read: from now on somebody tells of its changes.
	c.mu.Lock()
	c.where = where
	c.mu.Unlock()
	if err != nil {
		return nil, err
	}
	found, err := c.clusters.lookup(c.key, where, known)
	if err != nil || found.fingerprint == known {
		return nil, err
	}
	conn, err := newConnection(c.key, found, &c.clusters.config, c.observe)
	if err != nil {
		return nil, missing(KubeconfigInvalid, "%s: %w", where, err)
	}
	return conn, nil
}

func (c *Cluster) currentIsNot(conn *connection) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.conn != conn
}

func stateOf(err error) State {
	var failed *lookupError
	if errors.As(err, &failed) {
		return failed.state
	}
	return KubeconfigInvalid
}

// settle ends a change of the health: it gives the lock back, and then tells everybody if the state is another one.
func (c *Cluster) settle(changed bool) {
	if !changed {
		c.mu.Unlock()
		return
	}
	c.announce()
	state, cause := c.health.state, brief(c.health.cause)
	users := slices.Collect(maps.Keys(c.users))
	c.mu.Unlock()
	fields := []any{"cluster", c.key.String(), "state", string(state)}
	if cause != "" {
		fields = append(fields, "cause", cause)
	}
	c.clusters.log("state of target cluster changed", fields...)
	c.clusters.metrics.changed(state)
	c.clusters.notices.tell(Notice{Cluster: c.key, Occasion: StateChanged, State: state}, users)
}
