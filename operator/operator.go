package operator

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/informer/crdclient"
	"github.com/operatorkit/operatorkit/internal/access"
	"github.com/operatorkit/operatorkit/internal/faults"
	"github.com/operatorkit/operatorkit/internal/panics"
	"github.com/operatorkit/operatorkit/operator/inspector"
	"github.com/operatorkit/operatorkit/operator/internal/upgrade"
)

// Operator runs frameworks and the parts they need. Make one with New and run it once.
type Operator struct {
	config   Config
	sources  []informer.Source
	crds     framework.CRDClient
	election *election
	// sharing is nil without sharding.
	sharing *sharing
	// upgrade is nil without a budget for upgrades.
	upgrade    *upgrade.Controller
	httpClient *http.Client
	// authorizer authorizes access to the metrics. It is nil if access is not restricted.
	authorizer *inspector.KubernetesAuthorizer

	begun      atomic.Bool
	working    atomic.Bool
	stuck      atomic.Bool
	crdsServed atomic.Bool
	addr       atomic.Pointer[net.Addr]
	pageAddr   atomic.Pointer[net.Addr]
	// ownIP returns the address of this process as seen by others.
	ownIP func() net.IP
}

// New returns an operator, or an error for which framework.IsInvalidConfig holds and which lists
// every fault. It sends no request.
func New(config Config) (*Operator, error) {
	config.setDefaults()
	if err := config.validate(); err != nil {
		return nil, err
	}
	o := &Operator{config: config, ownIP: sync.OnceValue(func() net.IP { return ownAddress(config.RESTConfig) })}
	if err := o.identify(); err != nil {
		return nil, err
	}
	if err := o.collectSources(); err != nil {
		return nil, err
	}
	if err := o.bindFence(); err != nil {
		return nil, err
	}
	if err := o.connect(); err != nil {
		return nil, err
	}
	if config.Inspector != nil {
		config.Inspector.Watch(config.Frameworks...)
		if o.sharing != nil {
			config.Inspector.ShareBy(o.sharing)
		}
		if o.upgrade != nil {
			config.Inspector.LimitBy(o.upgrade)
		}
	}
	err := config.Registry.Register(o.leadingGauge())
	if err == nil && o.election != nil {
		err = o.election.register(config.Name, config.Registry)
	}
	if err == nil && o.upgrade != nil {
		err = o.registerUpgrade()
	}
	if err == nil && o.sharing != nil {
		err = o.sharing.counts.register(config.Name, config.Registry)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: operator.Config: Registry: %w", framework.ErrInvalidConfig, err)
	}
	return o, nil
}

// leadingGauge returns the gauge for whether the replica works and may do so.
func (o *Operator) leadingGauge() prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name:        "operatorkit_operator_leading",
		Help:        "Whether this replica runs the frameworks of the operator, and holds the lease: 1 when it does, 0 otherwise. With sharding, whether it runs the Runnables.",
		ConstLabels: prometheus.Labels{"operator": o.config.Name},
	}, func() float64 {
		if !o.working.Load() || o.election != nil && o.config.LeaderElection.Fence.Check() != nil || o.sharing != nil && !o.sharing.leads() {
			return 0
		}
		return 1
	})
}

// bindFence finds the fence of the election, or makes one, and assigns it to the operator.
func (o *Operator) bindFence() error {
	election := &o.config.LeaderElection
	fence, found := election.Fence, fenceOf(o.config.RESTConfig)
	switch {
	case fence == nil && !election.Enabled:
		return nil
	case fence != nil && found != nil && fence != found:
		return fmt.Errorf("%w: operator.Config: LeaderElection.Fence must be the one that RESTConfig has already: leave it empty", framework.ErrInvalidConfig)
	case fence == nil && found != nil:
		fence = found
	case fence == nil:
		fence = NewFence()
	}
	if !fence.bind(election.validity(), election.Enabled) {
		return fmt.Errorf("%w: operator.Config: LeaderElection.Fence, or that of RESTConfig, has an operator already: make one for each, "+
			"by Dependencies of its own", framework.ErrInvalidConfig)
	}
	election.Fence = fence
	for _, f := range o.config.Frameworks {
		f.Require(fencePolicy{fence})
	}
	return nil
}

// identify assigns the frameworks to the operator. A framework must not claim the objects of
// another one.
func (o *Operator) identify() error {
	var wrong faults.List
	finalizers := map[string]string{}
	for i, f := range o.config.Frameworks {
		if err := access.EngineOf(f).Join(o.config.Name, o.config.FormerNames); err != nil {
			return fmt.Errorf("operator.Config: Frameworks[%d]: %w", i, err)
		}
		for _, other := range o.config.Frameworks {
			wrong.If(slices.Contains(f.Identity().FormerFrameworks, other.Name()), "Frameworks[%d], %q, must not have the former name %q, which another framework has: it would take over what is that one's",
				i, f.Name(), other.Name())
		}
		finalizer := f.Finalizer()
		if other, taken := finalizers[finalizer]; taken && finalizer != "" {
			wrong.Add("Frameworks[%d], %q, must not have the finalizer %q of the framework %q: each would take off what holds "+
				"objects for the other", i, f.Name(), finalizer, other)
		}
		finalizers[finalizer] = f.Name()
	}
	return wrong.Of("operator.Config")
}

// collectSources lists every source once.
func (o *Operator) collectSources() error {
	all := o.config.Sources
	for _, f := range o.config.Frameworks {
		all = append(all, f.Sources()...)
	}
	var wrong faults.List
	names := map[string]bool{}
	for _, s := range all {
		if slices.Contains(o.sources, s) {
			continue
		}
		wrong.If(names[s.Name()], "two sources are named %q: use one for both, or name them apart", s.Name())
		names[s.Name()] = true
		o.sources = append(o.sources, s)
	}
	return wrong.Of("operator.Config")
}

// connect makes the clients that are needed.
func (o *Operator) connect() error {
	c := o.config
	if len(c.CRDs) > 0 || c.LeaderElection.onKubernetes() || c.Upgrade.enabled() || hasLimits(c.Frameworks) {
		if err := o.connectToKubernetes(); err != nil {
			return err
		}
	}
	if c.AuthorizeMetrics {
		var err error
		if o.authorizer, err = inspector.NewKubernetesAuthorizer(inspector.KubernetesAuthorizerConfig{RESTConfig: c.RESTConfig}); err != nil {
			return fmt.Errorf("operator.Config: AuthorizeMetrics: %w", err)
		}
	}
	switch {
	case c.Sharding.Enabled:
		var err error
		if o.sharing, err = newSharing(o.config, o.httpClient, o.pageForOthers); err != nil {
			return err
		}
		o.election = o.sharing.together
	case c.LeaderElection.Enabled:
		o.election = newElection(o.config.LeaderElection, c.Logger)
	}
	if c.Upgrade.enabled() {
		var err error
		if o.upgrade, err = o.newUpgrade(); err != nil {
			return err
		}
	}
	return nil
}

func (o *Operator) connectToKubernetes() error {
	c := o.config
	httpClient, err := rest.HTTPClientFor(c.RESTConfig)
	if err != nil {
		return fmt.Errorf("%w: operator.Config: RESTConfig: %w", framework.ErrInvalidConfig, err)
	}
	o.httpClient = httpClient
	if err := c.shareLimits(httpClient); err != nil {
		return err
	}
	if len(c.CRDs) > 0 && c.CRDMode != IgnoreCRDs {
		apiClient, err := client.New(c.RESTConfig, client.Options{HTTPClient: httpClient, Scheme: runtime.NewScheme()})
		if err != nil {
			return fmt.Errorf("make the client for custom resource definitions: %w", err)
		}
		o.crds, err = crdclient.New(crdclient.Config{Client: apiClient, Logger: c.Logger, ReadOnly: c.CRDMode == CheckCRDs})
		if err != nil {
			return fmt.Errorf("make the client for custom resource definitions: %w", err)
		}
	}
	if c.LeaderElection.onKubernetes() && !c.Sharding.Enabled {
		o.config.LeaderElection.Lock, err = newLeaseLock(c.LeaderElection, c.RESTConfig, httpClient)
	}
	return err
}

// Addr returns the address of the listener. It is nil before Run has bound it, and without a
// listener.
func (o *Operator) Addr() net.Addr {
	if addr := o.addr.Load(); addr != nil {
		return *addr
	}
	return nil
}

// Run runs the operator until ctx ends, and then returns nil. Otherwise it returns the errors of
// all parts that failed, joined, once everything has stopped. It does not wait forever for a part
// that ignores the end of its context: the error then names the part and wraps
// framework.ErrStillRunning, the fence stays closed, and the lease is not released but expires. In
// that case end the process. Run may be called once.
func (o *Operator) Run(ctx context.Context) error {
	if o.begun.Swap(true) {
		return fmt.Errorf("run operator %q: %w: it has been run before; make a new one", o.config.Name, framework.ErrExecutionFailed)
	}
	if o.httpClient != nil {
		defer utilnet.CloseIdleConnectionsFor(o.httpClient.Transport)
	}
	if o.authorizer != nil {
		defer o.authorizer.Close()
	}
	if err := o.run(ctx); err != nil {
		return fmt.Errorf("run operator %q: %w", o.config.Name, err)
	}
	return nil
}

func (o *Operator) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	server, err := o.listen(cancel)
	if err != nil {
		return err
	}
	page, err := o.inspect(cancel)
	if err != nil {
		return errors.Join(err, server.close())
	}
	err = errors.Join(o.runParts(ctx, cancel), page.close(), server.close())
	o.log("stopped")
	return err
}

// runParts starts the parts in order, and stops them in reverse order.
func (o *Operator) runParts(ctx context.Context, cancel context.CancelFunc) error {
	if err := o.ensureCRDs(ctx); err != nil || ctx.Err() != nil {
		return err
	}
	sourcesCtx, stopSources := context.WithCancel(context.WithoutCancel(ctx))
	defer stopSources()
	sources := parts{failed: cancel}
	for _, s := range o.sources {
		sources.run("source", s.Name(), func() error { return s.Run(sourcesCtx) })
	}
	o.log("started", "frameworks", len(o.config.Frameworks), "sources", len(o.sources))

	var warming sync.WaitGroup
	warming.Go(func() { o.warm(ctx) })
	var err error
	if o.election == nil {
		err = o.work(ctx)
		cancel()
	}
	warming.Wait()
	if o.election != nil && ctx.Err() == nil {
		err = o.election.lead(ctx, o.work)
	}
	stopSources()
	return errors.Join(err, sources.waitFor(o.config.ShutdownTimeout))
}

// ensureCRDs ensures that the definitions are served. The end of ctx is not an error.
func (o *Operator) ensureCRDs(ctx context.Context) error {
	if o.config.CRDMode == IgnoreCRDs {
		o.crdsServed.Store(true)
		return nil
	}
	for _, crd := range o.config.CRDs {
		err := panics.Recovered(func() error { return o.crds.EnsureCreated(withoutFence(ctx), crd, o.config.BackOffFactory()) })
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		o.log("definition is served", "crd", crd.Name)
	}
	o.crdsServed.Store(true)
	return nil
}

// work runs the frameworks and runnables until ctx ends or one of them fails.
func (o *Operator) work(ctx context.Context) error {
	o.working.Store(true)
	defer o.working.Store(false)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var err error
	if o.upgrade != nil {
		o.upgrade.Round(ctx)
		var limiting sync.WaitGroup
		limiting.Go(func() { o.upgrade.Run(ctx) })
		defer limiting.Wait()
		defer cancel()
	}
	if o.sharing != nil {
		err = o.sharing.work(ctx, o)
	} else {
		runnables := o.startRunnables(ctx, cancel)
		err = o.startFrameworks(ctx, cancel).wait()
		cancel()
		err = errors.Join(err, runnables.waitFor(o.config.ShutdownTimeout))
	}
	o.stuck.Store(errors.Is(err, framework.ErrStillRunning))
	return err
}

// startFrameworks runs the frameworks until ctx ends. failed is called when one fails.
func (o *Operator) startFrameworks(ctx context.Context, failed func()) *parts {
	frameworks := &parts{failed: failed}
	for _, f := range o.config.Frameworks {
		frameworks.run("framework", f.Name(), func() error { return f.Run(ctx) })
	}
	return frameworks
}

// startRunnables is startFrameworks for the runnables.
func (o *Operator) startRunnables(ctx context.Context, failed func()) *parts {
	runnables := &parts{failed: failed}
	for _, r := range o.config.Runnables {
		runnables.run("runnable", r.Name, func() error { return r.Run(ctx) })
	}
	return runnables
}

// unserved returns the definitions until they are known to be served.
func (o *Operator) unserved() []*apiextensionsv1.CustomResourceDefinition {
	if o.crdsServed.Load() {
		return nil
	}
	return o.config.CRDs
}

func (o *Operator) log(message string, fields ...any) {
	o.config.Logger.Log(append([]any{"level", "info", "message", message, "operator", o.config.Name}, fields...)...)
}
