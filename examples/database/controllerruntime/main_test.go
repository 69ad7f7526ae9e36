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

func lifeOfDatabases(t *testing.T) operatortest.Scenario {
	t.Helper()
	ctrl.SetLogger(logr.Discard())
	kube := operatortest.Start(t)
	definitions, err := operator.ReadCRDs(v1alpha1.CRDs)
	if err != nil {
		t.Fatal(err)
	}
	kube.InstallCRDs(t, definitions...)
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	z := &life.Zone{}
	s := httptest.NewServer(z)
	t.Cleanup(s.Close)
	return operatortest.Scenario{
		Name: "database", Scheme: scheme, Config: kube.RESTConfig(), Objects: life.Objects(), Phases: life.Phases(z), Normalize: objectresource.Normalize,
		Start: func(ctx context.Context, cfg *rest.Config, namespace string) error {
			client := &http.Client{Transport: operatortest.TransportOf(ctx, http.DefaultTransport)}
			again := true
			return run(ctx, cfg, ctrl.Options{
				Cache: cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}}, Metrics: server.Options{BindAddress: "0"},
				Controller: config.Controller{SkipNameValidation: &again}, HealthProbeBindAddress: "0",
			}, &zone.Client{URL: s.URL, HTTP: client})
		},
	}
}
