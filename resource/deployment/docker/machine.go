package docker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/containerd/errdefs"
	moby "github.com/moby/moby/client"

	"github.com/operatorkit/operatorkit/resource/deployment/api"
)

// machine keeps up the connection to an engine.
type machine struct {
	client *Client
	cancel context.CancelCauseFunc
	// suspect asks for a heartbeat at once.
	suspect chan struct{}
	waiters waiters
	// changes counts what may have put something onto the machine.
	changes atomic.Int64
	// last is when something happened on the machine last, by the clock of the client.
	last atomic.Int64

	// naming is held by who changes where names lead, and joining counts the containers that are about to be on the network.
	naming  sync.Mutex
	joining atomic.Int64
	// directing is held by who changes what the proxy serves.
	directing sync.Mutex
	// untold tells that other machines don't know yet what this one has for them.
	untold atomic.Bool

	mu     sync.Mutex
	config Machine
	// conn is nil while there is none.
	conn *connection
	// known is closed when it is known whether the engine answers.
	known  chan struct{}
	reason error
	since  time.Time
	engine EngineInfo
	seen   *snapshot
	// filling are the volumes with configs whose containers are being created.
	filling map[string]bool
	// leaving are containers that are about to be stopped, and how often.
	leaving map[string]int
	// trials are the aides that are being made, by ID, and whether they have ended since.
	trials map[string]bool
	// details are containers as they were inspected, by ID: what a list says of them is newer, and the rest changes by updates alone.
	details map[string]*api.Container
}

// snapshot is what was on a machine.
type snapshot struct {
	inventory api.Inventory
	// changes and last are what they were on the machine before.
	changes, last int64
}

// become returns the machine with another configuration. A nil machine is one that is new. It is called with the client's lock.
func (m *machine) become(c *Client, config Machine) *machine {
	var seen *snapshot
	if m != nil {
		m.mu.Lock()
		if config.Gone == m.config.Gone && reflect.DeepEqual(config.Endpoint, m.config.Endpoint) {
			m.config = config
			m.mu.Unlock()
			return m
		}
		if m.seen != nil && m.seen.changes == m.changes.Load() {
			seen = &snapshot{inventory: m.seen.inventory}
		}
		m.mu.Unlock()
		m.stop(errors.New("the machine has another endpoint now"))
		c.forgetEngine(config.ID)
	}
	n := &machine{
		client: c, config: config, suspect: make(chan struct{}, 1), known: make(chan struct{}), since: time.Now(),
		seen: seen, filling: map[string]bool{}, leaving: map[string]int{},
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	n.cancel = cancel
	if config.Gone {
		n.reason = errGone
		close(n.known)
		return n
	}
	c.running.Add(1)
	go func() {
		defer c.running.Done()
		n.run(ctx)
	}()
	return n
}

var errGone = errors.New("it was declared gone for good")

func (m *machine) stop(cause error) { m.cancel(cause) }

func (m *machine) spec() Machine {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.config
}

// recheck asks for a heartbeat at once.
func (m *machine) recheck() {
	select {
	case m.suspect <- struct{}{}:
	default:
	}
}

// run connects, and connects again, until the context ends.
func (m *machine) run(ctx context.Context) {
	b := m.client.config.BackOffFactory()
	var pause time.Duration
	for ctx.Err() == nil {
		conn, err := m.connect(ctx)
		if err == nil {
			b.Reset()
			m.up(conn)
			m.follow(conn)
			m.undecided()
			// It may have been the connection alone, so that it is tried again at once.
			continue
		}
		if ctx.Err() != nil {
			break
		}
		m.down(err)
		if next := b.NextBackOff(); next != backoff.Stop {
			pause = next
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
		}
	}
	m.down(context.Cause(ctx))
}

func (m *machine) up(conn *connection) {
	m.tick()
	m.mu.Lock()
	m.conn, m.reason, m.engine, m.details, m.trials = conn, nil, conn.info, map[string]*api.Container{}, map[string]bool{}
	m.decide()
	id := m.config.ID
	m.mu.Unlock()
	m.client.notify(Notice{MachineID: id})
}

// undecided holds what is asked for until it is known whether the engine answers.
func (m *machine) undecided() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.conn, m.known = nil, make(chan struct{})
}

func (m *machine) down(err error) {
	m.mu.Lock()
	tell := m.reason == nil
	m.conn, m.reason = nil, err
	m.decide()
	id := m.config.ID
	m.mu.Unlock()
	if tell {
		m.client.notify(Notice{MachineID: id})
	}
}

// decide is called with the lock held.
func (m *machine) decide() {
	select {
	case <-m.known:
	default:
		close(m.known)
		m.since = time.Now()
	}
}

// decided waits until it is known whether the engine answers.
func (m *machine) decided(ctx context.Context) error {
	m.mu.Lock()
	known := m.known
	m.mu.Unlock()
	select {
	case <-known:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// connected returns the connection, or ErrUnreachable.
func (m *machine) connected(ctx context.Context) (*connection, error) {
	for {
		if err := m.decided(ctx); err != nil {
			return nil, err
		}
		m.mu.Lock()
		conn, reason := m.conn, m.reason
		m.mu.Unlock()
		switch {
		case conn != nil:
			return conn, nil
		case reason != nil:
			return nil, fmt.Errorf("%w: %w", ErrUnreachable, reason)
		}
	}
}

// do asks the engine. It ends with the connection.
func (m *machine) do(ctx context.Context, f func(ctx context.Context, engine *moby.Client) error) error {
	conn, err := m.connected(ctx)
	if err != nil {
		return err
	}
	asking, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(conn.ctx, func() { cancel(context.Cause(conn.ctx)) })()
	before := m.last.Load()
	err = f(asking, conn.engine)
	if m.last.Load() != before {
		// What was asked for may be there before the engine tells of it.
		m.tick()
	}
	var held *heldBack
	switch {
	case err == nil || ctx.Err() != nil || errors.As(err, &held):
		return err
	case conn.ctx.Err() != nil:
		return fmt.Errorf("%w: %w: %w", ErrUnreachable, context.Cause(conn.ctx), err)
	case moby.IsErrConnectionFailed(err), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		m.recheck()
		return fmt.Errorf("%w: %w", ErrUnreachable, err)
	case errdefs.IsNotFound(err):
		return fmt.Errorf("%w: %w", api.ErrNotFound, err)
	}
	return err
}

// tick says that something may have happened on the machine.
func (m *machine) tick() { m.last.Store(m.client.clock.Add(1)) }

// change is do for what may put something onto the machine.
func (m *machine) change(ctx context.Context, f func(ctx context.Context, engine *moby.Client) error) error {
	return m.do(ctx, func(ctx context.Context, engine *moby.Client) error {
		m.changes.Add(1)
		defer m.changes.Add(1)
		return f(ctx, engine)
	})
}

// describe returns what planning needs to know.
func (m *machine) describe() api.Machine {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := api.Machine{ID: m.config.ID, Name: m.config.Name, Labels: m.config.Labels, Addresses: m.config.Addresses,
		State: api.MachineAvailable, Platform: m.engine.Platform, Ignored: ignored(m.engine.APIVersion)}
	if m.client.config.Ingress != nil {
		out.Ingress, out.MeshAddress = m.config.Ingress != nil, m.config.MeshAddress
	}
	switch {
	case m.config.Gone:
		out.State, out.Reason = api.MachineGone, m.reason.Error()
	case m.conn == nil:
		out.State, out.Reason = api.MachineUnknown, "it is being connected to"
		if m.reason != nil {
			out.Reason = m.reason.Error()
		}
		if m.seen != nil && m.seen.changes == m.changes.Load() {
			out.LastSeen = m.seen.inventory.DeepCopy()
		}
	}
	return out
}
