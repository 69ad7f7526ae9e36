package main

import (
	"context"
	"net/http"
	"path/filepath"
	"sync"
	"time"

	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/logging"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/operator/statemanagers"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/fetch"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/helm"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/manifest"
	"github.com/operatorkit/operatorkit/resource/statemanager/target"
)

// operatorRun is a running operator.
type operatorRun struct {
	dependencies *operator.Dependencies
	stop         context.CancelFunc
	ended        chan error
}

// startOperator starts the operator of package statemanagers, with nothing in memory.
func (w *world) startOperator(ctx context.Context) error {
	logger, err := logging.New(logging.Config{Writer: w.log, Format: logging.FormatText})
	if err != nil {
		return err
	}
	d, err := operator.NewDependencies(operator.DependenciesConfig{
		Name: "charttest", RESTConfig: w.management.config, Scheme: w.scheme, Logger: logger, Namespaces: []string{system},
	})
	if err != nil {
		return err
	}
	frameworks, err := statemanagers.New(d, statemanagers.Config{SystemNamespace: system, Native: &statemanagers.NativeConfig{
		Fetch: fetch.Config{Folder: filepath.Join(w.folder, "fetched")},
		Helm:  helm.Config{Timeout: w.timeout, History: historyMax}, Manifests: manifest.Config{HealthTimeout: w.timeout},
		Targets: statemanagers.Targets{QPS: -1, MinRetry: look, MaxRetry: time.Second, WrapTransport: w.traffic.wrap},
	}})
	if err != nil {
		return err
	}
	crds, err := operator.ReadCRDs(v1alpha1.CRDs)
	if err != nil {
		return err
	}
	o, err := operator.New(operator.Config{
		Name: d.Name, Logger: logger, RESTConfig: d.RESTConfig, Registry: d.Registry, Frameworks: frameworks, CRDs: crds,
	})
	if err != nil {
		return err
	}
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)
	w.operator = &operatorRun{dependencies: d, stop: stop, ended: ended}
	go func() { ended <- o.Run(running) }()
	return nil
}

// stopOperator ends the operator and waits for that.
func (w *world) stopOperator() error {
	if w.operator == nil {
		return nil
	}
	w.operator.stop()
	err := <-w.operator.ended
	w.operator.dependencies.Close()
	w.operator = nil
	return err
}

// reconciled tells how often the operator that runs has reconciled sets.
func (r *operatorRun) reconciled() (uint64, error) {
	families, err := r.dependencies.Registry.Gather()
	if err != nil {
		return 0, err
	}
	var n uint64
	for _, family := range families {
		if family.GetName() != "operatorkit_framework_reconciliation_duration_seconds" {
			continue
		}
		for _, metric := range family.GetMetric() {
			for _, label := range metric.GetLabel() {
				if label.GetName() == "framework" && label.GetValue() == "statemanager-"+v1alpha1.DefaultStateManagementProvider {
					n += metric.GetHistogram().GetSampleCount()
				}
			}
		}
	}
	return n, nil
}

// traffic is what the state manager sends to the cluster.
type traffic struct {
	writes *operatortest.Faults
	mu     sync.Mutex
	// last is when the last request was sent that is no watch and no probe.
	last time.Time
}

func newTraffic() *traffic {
	return &traffic{writes: operatortest.NewFaults(operatortest.Uncounted()), last: time.Now()}
}

func (t *traffic) wrap(_ target.Key, next http.RoundTripper) http.RoundTripper {
	next = t.writes.Transport(next)
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		if r.URL.Path != "/version" && r.URL.Query().Get("watch") == "" {
			t.mu.Lock()
			t.last = time.Now()
			t.mu.Unlock()
		}
		return next.RoundTrip(r)
	})
}

// silent is for how long nothing was sent.
func (t *traffic) silent() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return time.Since(t.last)
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
