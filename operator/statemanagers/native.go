package statemanagers

import (
	"fmt"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/resource/statemanager/native"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/fetch"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/helm"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/manifest"
	"github.com/operatorkit/operatorkit/resource/statemanager/target"
)

// newNative puts the native state manager together.
func newNative(d *operator.Dependencies, s *sources, config NativeConfig) (Manager, error) {
	t := config.Targets
	clusters, err := target.New(target.Config{
		Deployments: s.clusters, Secrets: newKubeconfigs(s.clusters, s.secrets, d.Client, d.Logger), Management: d.RESTConfig,
		Owners: native.Owners(s.sets), WrapTransport: d.Fence.TransportTo(t.WrapTransport), Logger: d.Logger, Registerer: d.Registry,
		QPS: t.QPS, Burst: t.Burst, RequestTimeout: t.RequestTimeout, ConnectTimeout: t.ConnectTimeout, IdleTimeout: t.IdleTimeout,
		ProbeInterval: t.ProbeInterval, MinRetry: t.MinRetry, MaxRetry: t.MaxRetry,
	})
	if err != nil {
		return Manager{}, err
	}
	fetcher, err := fetch.New(config.Fetch)
	if err != nil {
		return Manager{}, fmt.Errorf("%w: statemanagers.NativeConfig: Fetch: %w", framework.ErrInvalidConfig, err)
	}
	charts, err := helm.New(config.Helm)
	if err != nil {
		return Manager{}, err
	}
	manifests, err := manifest.New(config.Manifests)
	if err != nil {
		return Manager{}, err
	}
	manager, err := native.New(native.Config{
		Name: config.Provider, FormerNames: config.FormerProviders, Origin: config.Origin, Clusters: clusters, Management: d.Client, ConfigMaps: s.configMaps, Secrets: s.secrets,
		Helm: charts, Manifests: manifests, Fetcher: fetcher, Logger: d.Logger,
		KindTimeout: config.KindTimeout, HealthChecks: config.HealthChecks, DefaultServiceAccount: config.DefaultServiceAccount,
	})
	if err != nil {
		return Manager{}, err
	}
	return Manager{
		Provider: config.Provider, FormerProviders: config.FormerProviders, StateManager: manager,
		Watches: []framework.Watch{{Source: clusters.Notices(), Map: target.Users}},
	}, nil
}
