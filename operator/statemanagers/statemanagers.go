package statemanagers

import (
	"fmt"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/internal/claims"
)

// New returns the frameworks: one for the StateManagementProviders, and then one for the ServiceSets of each provider, that of
// Native first. It registers their metrics, and is called once for each Dependencies. The scheme of these has to know
// v1alpha1.AddToScheme and that of client-go.
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
	managers := config.Managers
	if config.Native != nil {
		native, err := newNative(d, s, *config.Native)
		if err != nil {
			return nil, err
		}
		managers = append([]Manager{native}, managers...)
	}
	var names []string
	missing := map[string]bool{}
	s.claims = map[string]*claims.Claims{}
	for i := range managers {
		missing[managers[i].Provider] = !config.LeaveProviders
		claimed := s.newClaims(d)
		for _, name := range managers[i].names() {
			names = append(names, name)
			s.claims[name] = claimed
		}
	}
	all, err := newProviders(d, s, names, missing)
	if err != nil {
		return nil, err
	}
	metrics := newMetrics(s, names)
	frameworks := []*framework.Framework{all}
	for _, manager := range managers {
		f, err := newManaged(d, s, metrics, manager)
		if err != nil {
			return nil, err
		}
		frameworks = append(frameworks, f)
	}
	if err := d.Registry.Register(metrics); err != nil {
		return nil, fmt.Errorf("register the metrics of state managers (New is called once for each Dependencies): %w", err)
	}
	return frameworks, nil
}
