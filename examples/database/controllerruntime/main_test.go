package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/operatorkit/operatorkit/examples/database/life"
	"github.com/operatorkit/operatorkit/examples/database/v1alpha1"
	"github.com/operatorkit/operatorkit/examples/internal/zone"
	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/resource/objectresource"
)

func TestTheTwinSurvivesACrashAtEveryWrite(t *testing.T) {
	operatortest.CrashAtEveryWrite(t, lifeOfDatabases(t))
}

// world is where Databases live: a control plane, and a zone.
type world struct {
	kube   *operatortest.Instance
	scheme *runtime.Scheme
	phases []operatortest.Phase
	url    string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	ctrl.SetLogger(logr.Discard())
	w := &world{kube: operatortest.Start(t), scheme: runtime.NewScheme()}
	definitions, err := operator.ReadCRDs(v1alpha1.CRDs)
	if err != nil {
		t.Fatal(err)
	}
	w.kube.InstallCRDs(t, definitions...)
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(w.scheme); err != nil {
			t.Fatal(err)
		}
	}
	z := &life.Zone{}
	s := httptest.NewServer(z)
	t.Cleanup(s.Close)
	w.phases, w.url = life.Phases(z), s.URL
	return w
}

// options are those of a manager for one namespace.
func (w *world) options(namespace string) ctrl.Options {
	again := true
	return ctrl.Options{
		Scheme: w.scheme, Cache: cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}}, Metrics: server.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: &again}, HealthProbeBindAddress: "0",
	}
}

// records returns a client of the zone.
func (w *world) records(transport http.RoundTripper) *zone.Client {
	return &zone.Client{URL: w.url, HTTP: &http.Client{Transport: transport}}
}

func lifeOfDatabases(t *testing.T) operatortest.Scenario {
	t.Helper()
	w := newWorld(t)
	return operatortest.Scenario{
		Name: "database", Scheme: w.scheme, Config: w.kube.RESTConfig(), Objects: life.Objects(), Phases: w.phases, Normalize: objectresource.Normalize,
		Start: func(ctx context.Context, cfg *rest.Config, namespace string) error {
			return run(ctx, cfg, w.options(namespace), w.records(operatortest.TransportOf(ctx, http.DefaultTransport)))
		},
	}
}
