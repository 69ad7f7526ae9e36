package inspector

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/operator/internal/upgrade"
)

// Inspector remembers what frameworks do and shows it. It is a framework.Observer and an http.Handler. All methods are
// safe for concurrent use.
type Inspector struct {
	config  Config
	memory  *memory
	handler http.Handler
	// certificate is nil without TLS.
	certificate *certificate
	// searching is full while a batch is searched for.
	searching chan struct{}
	plans     chan struct{}
	streams   chan struct{}
	graphs    chan struct{}

	mu      sync.RWMutex
	watched []*statistics
	byName  map[string]*statistics
	drawers map[*framework.Framework]DrawFunc
	ring    Ring
	// upgrades is nil without a budget for upgrades.
	upgrades *upgrade.Controller
	sampled  uint64
	// next is the batch that queries can join, or nil.
	next     *batch
	stopping chan struct{}
}

// New returns an inspector, or an error for which framework.IsInvalidConfig holds and which lists every fault. It reads the
// certificate, and sends no request.
func New(config Config) (*Inspector, error) {
	if err := config.complete(); err != nil {
		return nil, err
	}
	i := &Inspector{
		config: config, memory: newMemory(config), byName: map[string]*statistics{},
		drawers: map[*framework.Framework]DrawFunc{}, stopping: make(chan struct{}),
		searching: make(chan struct{}, 1), plans: make(chan struct{}, maxPlans),
		streams: make(chan struct{}, maxStreams), graphs: make(chan struct{}, maxGraphs),
	}
	if config.CertFile != "" {
		i.certificate = &certificate{certFile: config.CertFile, keyFile: config.KeyFile, failed: func(err error) {
			i.log("the certificate stays as it was", "error", err.Error())
		}}
		if err := i.certificate.look(); err != nil {
			return nil, fmt.Errorf("%w: inspector.Config: CertFile and KeyFile: %w", framework.ErrInvalidConfig, err)
		}
	}
	i.handler = i.guard(i.byOwner(i.routes()))
	return i, nil
}

// Address is the host and port to listen on.
func (i *Inspector) Address() string { return i.config.Address }

// Watch shows frameworks on the page. Their names differ. A framework whose observer the inspector is, but which it was
// not told to watch, is not shown.
func (i *Inspector) Watch(frameworks ...*framework.Framework) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, f := range frameworks {
		s := &statistics{framework: f, resources: map[string]*resourceOverview{}}
		i.watched = append(i.watched, s)
		i.byName[f.Name()] = s
	}
}

// Observe implements framework.Observer.
func (i *Inspector) Observe(record *framework.Record) {
	s := i.framework(record.Framework)
	if s == nil {
		return
	}
	s.add(record)
	i.memory.add(record)
}

// Run samples what the charts show until ctx ends. Then it ends the streams of live pages, so that the server of the
// inspector can shut down. It is called once.
func (i *Inspector) Run(ctx context.Context) {
	defer close(i.stopping)
	ticker := time.NewTicker(samplePeriod)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticker.C:
			i.sample(now)
		}
	}
}

// Close closes connections to the API server that are idle. It is called when nothing is served any more.
func (i *Inspector) Close() {
	if a, ok := i.config.Authorizer.(*KubernetesAuthorizer); ok {
		a.Close()
	}
}

func (i *Inspector) sample(now time.Time) {
	for _, s := range i.frameworks() {
		s.sample(now)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.sampled++
}

// ServeHTTP implements http.Handler.
func (i *Inspector) ServeHTTP(w http.ResponseWriter, r *http.Request) { i.handler.ServeHTTP(w, r) }

func (i *Inspector) frameworks() []*statistics {
	i.mu.RLock()
	defer i.mu.RUnlock()
	return slices.Clone(i.watched)
}

func (i *Inspector) framework(name string) *statistics {
	i.mu.RLock()
	defer i.mu.RUnlock()
	return i.byName[name]
}

// overview returns what is known now.
func (i *Inspector) overview() Overview {
	now := time.Now()
	o := Overview{Operator: i.config.Name, At: now, Frameworks: []frameworkOverview{}, Failing: i.failing(), Upgrade: i.upgrade()}
	if r := i.sharedBy(); r != nil {
		o.Replicas = r.Replicas()
	}
	for _, s := range i.frameworks() {
		f := s.overview(now)
		o.Frameworks = append(o.Frameworks, f)
		o.FailingCount += f.Status.Failing
		for _, fight := range s.framework.Fights() {
			if o.FightCount++; o.FightCount <= maxFailing {
				o.Fights = append(o.Fights, fightOverview{f.Name, fight.Key.Namespace, fight.Key.Name, fight})
			}
		}
	}
	return o
}
