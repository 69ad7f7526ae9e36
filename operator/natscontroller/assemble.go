package natscontroller

import (
	"context"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/internal/panics"
	"github.com/operatorkit/operatorkit/operator"
)

// rehearse assembles everything without a trace, to find faults. What runs is assembled by Start, which knows how many
// workers there are to be.
func (c *ControllerRuntime[T]) rehearse() error {
	election, restConfig := c.config.LeaderElection, c.config.RESTConfig
	election.Fence = nil
	if restConfig != nil {
		// A fence that stands before it belongs to what runs.
		restConfig = rest.CopyConfig(restConfig)
		restConfig.WrapTransport = nil
	}
	f, _, err := c.assemble(c.config.Workers, prometheus.NewRegistry(), election, restConfig)
	if err != nil {
		return err
	}
	c.framework.Store(f)
	return nil
}

// assemble makes the framework and the operator that runs it.
func (c *ControllerRuntime[T]) assemble(workers int, registry *prometheus.Registry, election operator.LeaderElectionConfig, restConfig *rest.Config) (*framework.Framework, *operator.Operator, error) {
	router, err := c.router()
	if err != nil {
		return nil, nil, err
	}
	c.primary.handles = func(obj any) bool { return !framework.IsNoResourceSet(routed(router, obj)) }
	f, err := framework.New(framework.Config{
		Name: c.config.Name, FormerNames: c.config.FormerNames, Source: c.primary, Watches: c.watches(), ResourceRouter: router, Logger: c.config.Logger,
		Workers: workers, BackOffFactory: c.config.BackOffFactory, ShutdownTimeout: c.config.ShutdownTimeout,
		Recorder: frameworkRecorder[T]{c}, Registerer: registry, Observer: c.config.Observer, Guards: c.config.Guards,
	})
	if err != nil {
		return nil, nil, err
	}
	var runnables []operator.Runnable
	if c.config.Garbage.Interval > 0 {
		runnables = append(runnables, operator.Runnable{Name: "garbage of " + c.config.Name, Run: c.collect})
	}
	o, err := operator.New(operator.Config{
		Name: c.config.Operator, FormerNames: c.config.FormerOperators, Logger: c.config.Logger, RESTConfig: restConfig, Frameworks: []*framework.Framework{f},
		Runnables: runnables, LeaderElection: election, ListenAddress: c.config.ListenAddress, ContactTimeout: c.config.ContactTimeout,
		Registry: registry, Upgrade: c.config.Upgrade, StateNamespace: c.config.StateNamespace,
	})
	if err != nil {
		return nil, nil, err
	}
	return f, o, nil
}

// routed returns the error of a router for an object.
func routed(router *framework.ResourceRouter, obj any) error {
	return panics.Recovered(func() error {
		_, err := router.ResourceSet(obj)
		return err
	})
}

// watches are those of all sources but the primary's.
func (c *ControllerRuntime[T]) watches() []framework.Watch {
	var watches []framework.Watch
	for _, s := range c.config.Secondaries {
		watches = append(watches, framework.Watch{Source: c.seen(s.source), Map: c.handleSecondary})
	}
	for _, w := range append(c.config.Tertiaries[:len(c.config.Tertiaries):len(c.config.Tertiaries)], c.config.Externals...) {
		watches = append(watches, framework.Watch{Source: c.seen(w.Source), Map: w.Map})
	}
	return watches
}

// seen returns a source as the framework sees it.
func (c *ControllerRuntime[T]) seen(source informer.Source) informer.Source {
	if source == informer.Source(c.config.Primary) {
		return c.primary
	}
	if s, ok := c.secondaries[source]; ok {
		return s
	}
	return source
}

// handleSecondary is the informer.MapFunc of the secondaries. It names no primary itself, because HandleSecondary enqueues.
func (c *ControllerRuntime[T]) handleSecondary(_ context.Context, obj any) []informer.Key {
	c.custom.HandleSecondary(obj)
	return nil
}

// router puts SyncHandler into each set, and into one of its own for keys without an entry.
func (c *ControllerRuntime[T]) router() (*framework.ResourceRouter, error) {
	absentSet, err := framework.NewResourceSet(framework.ResourceSetConfig{
		Handles: framework.HandlesType[absent], Resources: c.withSync(nil),
	})
	if err != nil {
		return nil, err
	}
	sets := []*framework.ResourceSet{absentSet}
	configs := []framework.ResourceSetConfig{{Handles: framework.HandlesType[T], Resources: c.withSync(c.config.Resources)}}
	if len(c.config.ResourceSets) > 0 {
		configs = nil
	}
	for _, s := range c.config.ResourceSets {
		config := s.Config()
		if !config.HandlesRest {
			config.Handles = func(obj any) bool { return framework.HandlesType[T](obj) && s.Handles(obj) }
		}
		config.Resources = c.withSync(config.Resources)
		configs = append(configs, config)
	}
	for _, config := range configs {
		set, err := framework.NewResourceSet(c.withRefusals(config))
		if err != nil {
			return nil, err
		}
		sets = append(sets, set)
	}
	return framework.NewResourceRouter(framework.ResourceRouterConfig{Logger: c.config.Logger, ResourceSets: sets})
}

// withSync puts SyncHandler behind some resources, and before those that conclude.
func (c *ControllerRuntime[T]) withSync(resources []framework.Resource) []framework.Resource {
	work := slices.IndexFunc(resources, func(r framework.Resource) bool {
		concluder, ok := r.(framework.Concluder)
		return ok && concluder.Concludes()
	})
	if work < 0 {
		work = len(resources)
	}
	return slices.Insert(slices.Clone(resources), work, framework.Resource(syncResource[T]{c}))
}
