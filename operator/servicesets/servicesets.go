package servicesets

import (
	"fmt"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/internal/statuses"
)

// New returns the frameworks for ClusterDeployments, MultiClusterServices and ServiceTemplateChains, in this order, and registers their metrics. It
// is called once for each Dependencies. The scheme of these has to know v1alpha1.AddToScheme.
//
// The error is one for which framework.IsInvalidConfig holds if it is about the configuration.
func New(d *operator.Dependencies, config Config) ([]*framework.Framework, error) {
	if err := config.complete(); err != nil {
		return nil, err
	}
	s, err := newSources(d, config)
	if err != nil {
		return nil, err
	}
	specs := &specs{services: statuses.SpecsOf(s.services), templates: statuses.SpecsOf(s.templates), providers: statuses.SpecsOf(s.providers), chains: statuses.SpecsOf(s.chains)}
	clusters, err := newClusters(d, config, s, specs)
	if err != nil {
		return nil, err
	}
	services, err := newServices(d, config, s, specs)
	if err != nil {
		return nil, err
	}
	chains, err := newChains(d, s)
	if err != nil {
		return nil, err
	}
	if err := d.Registry.Register(newCollector(s)); err != nil {
		return nil, fmt.Errorf("register the metrics of service sets (New is called once for each Dependencies): %w", err)
	}
	return []*framework.Framework{clusters, services, chains}, nil
}
