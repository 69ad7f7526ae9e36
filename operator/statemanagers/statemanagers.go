package statemanagers

import (
	"fmt"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/operator"
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
	names := make([]string, len(managers))
	for i := range managers {
		names[i] = managers[i].Provider
	}
	all, err := newProviders(d, s, names, config.LeaveProviders)
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
