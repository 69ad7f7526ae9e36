package docker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/moby/moby/api/types/events"
	"github.com/moby/moby/api/types/system"
	moby "github.com/moby/moby/client"
)

// EngineInfo says what an engine is.
type EngineInfo struct {
	// Version is that of the engine, APIVersion that of the API which was agreed on.
	Version, APIVersion string
	// OperatingSystem and Architecture are those of the machine, and Platform both of them as api.Machine has them.
	OperatingSystem, Architecture, Platform string
	// CPUs is their number, Memory the size in bytes.
	CPUs   int
	Memory int64
}

// Status is what is known of a machine, beyond api.Machine.
type Status struct {
	// Connected tells whether it answers, and Reason why not.
	Connected bool
	Reason    string
	// Since is when that began.
	Since time.Time
	// Engine is what it was when it answered last.
	Engine EngineInfo
}

// Status returns what is known of a machine now, or false for one that there isn't. It waits for nothing.
func (c *Client) Status(machineID string) (Status, bool) {
	m, err := c.machine(machineID)
	if err != nil {
		return Status{}, false
	}
	described := m.describe()
	m.mu.Lock()
	defer m.mu.Unlock()
	return Status{Connected: m.conn != nil, Reason: described.Reason, Since: m.since, Engine: m.engine}, true
}

// connection is one to an engine whose events are read. Its context ends with it.
type connection struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	engine *moby.Client
	hangUp func()
	events moby.EventsResult
	info   EngineInfo
}

// watched are the events that matter: those that change what is there, and what containers do. Health checks make others by the
// second.
var watched = moby.Filters{}.
	Add("type", string(events.ContainerEventType), string(events.VolumeEventType), string(events.ImageEventType)).
	Add("event", string(events.ActionCreate), string(events.ActionStart), string(events.ActionDie), string(events.ActionDestroy),
		string(events.ActionPause), string(events.ActionUnPause), string(events.ActionRename), string(events.ActionUpdate),
		string(events.ActionHealthStatus), string(events.ActionPull), string(events.ActionLoad), string(events.ActionImport),
		string(events.ActionTag), string(events.ActionUnTag), string(events.ActionDelete))

func (m *machine) connect(ctx context.Context) (*connection, error) {
	spec := m.spec()
	conn := &connection{hangUp: func() {}}
	conn.ctx, conn.cancel = context.WithCancelCause(ctx)
	timeout := m.client.config.ConnectTimeout
	deadline := time.AfterFunc(timeout, func() { conn.cancel(fmt.Errorf("it has not answered in %s", timeout)) })
	err := conn.open(m, &spec.Endpoint)
	if err == nil && !deadline.Stop() {
		err = context.Cause(conn.ctx)
	}
	if err != nil {
		deadline.Stop()
		if conn.ctx.Err() != nil {
			err = context.Cause(conn.ctx)
		}
		conn.close(err)
		return nil, err
	}
	return conn, nil
}

func (c *connection) open(m *machine, endpoint *Endpoint) error {
	d, err := endpoint.dialer()
	if err != nil {
		return err
	}
	engine, hangUp, err := d.open(c.ctx, moby.WithHTTPRequestHook(m.mayAsk))
	if err != nil {
		return err
	}
	c.engine, c.hangUp = engine, hangUp
	if _, err := c.engine.Ping(c.ctx, moby.PingOptions{NegotiateAPIVersion: true}); err != nil {
		return err
	}
	info, err := c.engine.Info(c.ctx, moby.InfoOptions{})
	if err != nil {
		return err
	}
	if other := m.client.claimEngine(engineID(&info.Info), m); other != "" {
		return fmt.Errorf("it is the same engine as that of machine %s", other)
	}
	c.info = EngineInfo{
		Version: info.Info.ServerVersion, APIVersion: c.engine.ClientVersion(), OperatingSystem: info.Info.OperatingSystem,
		Architecture: info.Info.Architecture, Platform: platformOf(&info.Info), CPUs: info.Info.NCPU, Memory: info.Info.MemTotal,
	}
	// Engines begin to send after they have answered: what happens between is asked for by their own clock.
	c.events = c.engine.Events(c.ctx, moby.EventsListOptions{Since: info.Info.SystemTime, Filters: maps.Clone(watched)})
	select {
	case err := <-c.events.Err:
		return fmt.Errorf("ask for events: %w", err)
	default:
		return nil
	}
}

// architectures are the names that kernels have for what images call otherwise.
var architectures = map[string]string{
	"x86_64": "amd64", "aarch64": "arm64", "armv7l": "arm", "armv6l": "arm", "i686": "386", "i386": "386", "loongarch64": "loong64",
}

// platformOf returns the platform of a machine, as images name it.
func platformOf(info *system.Info) string {
	architecture := info.Architecture
	if name, ok := architectures[architecture]; ok {
		architecture = name
	}
	return cmp.Or(info.OSType, "linux") + "/" + architecture
}

// heldBack is a request that was not sent.
type heldBack struct{ error }

// Unwrap returns why.
func (h *heldBack) Unwrap() error { return h.error }

// mayAsk asks whether a request may be sent.
func (m *machine) mayAsk(r *http.Request) error {
	if err := m.client.config.BeforeRequest(r); err != nil {
		return &heldBack{err}
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		m.tick()
	}
	return nil
}

// engineID tells engines apart. The ID alone does not where machines are copies of each other.
func engineID(info *system.Info) string {
	return strings.Join([]string{info.ID, info.Name, info.DockerRootDir}, "\n")
}

func (c *connection) close(cause error) {
	c.cancel(cause)
	c.hangUp()
}

// follow reads events until the connection ends.
func (m *machine) follow(conn *connection) {
	refresh := make(chan struct{}, 1)
	refresh <- struct{}{}
	var keepers sync.WaitGroup
	keepers.Go(func() { m.beat(conn) })
	keepers.Go(func() { m.remember(conn, refresh) })
	defer keepers.Wait()
	for {
		select {
		case message := <-conn.events.Messages:
			m.happened(message)
			select {
			case refresh <- struct{}{}:
			default:
			}
		case err := <-conn.events.Err:
			if conn.ctx.Err() == nil {
				err = fmt.Errorf("it has hung up: %w", err)
			}
			conn.close(err)
			m.waiters.wakeAll()
			return
		}
	}
}

// happened tells those whom an event concerns.
func (m *machine) happened(message events.Message) {
	attributes := message.Actor.Attributes
	id := m.spec().ID
	m.tick()
	if message.Type != events.ContainerEventType {
		m.changes.Add(1)
		_, configs := attributes[LabelConfigsOf]
		// Engines tell of the creation of a volume for each container that is made with it, also if it is there.
		certificates := message.Type == events.VolumeEventType && isIngressVolume(message.Actor.ID)
		if !configs && !certificates {
			m.client.notify(Notice{MachineID: id})
		}
		return
	}
	switch message.Action {
	// Engines tell that a container has ended before their lists say so. Who asks for the container itself waits until it is so.
	case events.ActionCreate, events.ActionRename, events.ActionUpdate, events.ActionDie:
		m.changes.Add(1)
		m.forget(message.Actor.ID)
	}
	m.waiters.wake(message.Actor.ID)
	aide, gone := attributes[LabelNames] != "" || attributes[LabelIngress] != "", message.Action == events.ActionDestroy
	if aide && (gone || message.Action == events.ActionDie) && !m.onTrial(message.Actor.ID, gone) {
		m.client.notify(Notice{MachineID: id})
	}
	if service := attributes[LabelService]; service != "" && attributes[LabelCluster] == m.client.config.Cluster {
		m.client.notify(Notice{MachineID: id, Service: service})
	}
}

// beat ends the connection when the engine does not answer any more.
func (m *machine) beat(conn *connection) {
	ticker := time.NewTicker(m.client.config.Heartbeat)
	defer ticker.Stop()
	for {
		select {
		case <-conn.ctx.Done():
			return
		case <-ticker.C:
		case <-m.suspect:
		}
		if err := m.ping(conn); err != nil {
			conn.cancel(err)
			return
		}
		// Engines leave out events for those who read slowly.
		m.tick()
		m.waiters.wakeAll()
	}
}

func (m *machine) ping(conn *connection) error {
	timeout := m.client.config.ConnectTimeout
	ctx, cancel := context.WithTimeout(conn.ctx, timeout)
	defer cancel()
	info, err := conn.engine.Info(ctx, moby.InfoOptions{})
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("it has not answered in %s", timeout)
	case err != nil:
		return err
	}
	if other := m.client.claimEngine(engineID(&info.Info), m); other != "" {
		return fmt.Errorf("it is the same engine as that of machine %s", other)
	}
	return nil
}

// settle is how long is waited for further events before it is looked what they have changed.
const settle = 100 * time.Millisecond

// remember keeps what is on the machine for the time when it can't be seen.
func (m *machine) remember(conn *connection, refresh <-chan struct{}) {
	for {
		select {
		case <-conn.ctx.Done():
			return
		case <-refresh:
		}
		m.mu.Lock()
		known := m.seen != nil && m.seen.last == m.last.Load()
		m.mu.Unlock()
		if known {
			continue
		}
		// A failure shows in the heartbeat too, and the next event brings another try.
		_, _ = m.look(conn.ctx)
		timer := time.NewTimer(settle)
		select {
		case <-conn.ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
	}
}
