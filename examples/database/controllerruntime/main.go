// Command controllerruntime is the operator of the folder above, made with controller-runtime alone, for comparison: docs/controllerruntime.md has
// what each takes, and what this one does not do. It is a module of its own.
package main

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"os"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/operatorkit/operatorkit/examples/database/v1alpha1"
	"github.com/operatorkit/operatorkit/examples/internal/zone"
)

func main() {
	url := flag.String("zone", "", "address of the zone with the records")
	options := ctrl.Options{LeaderElectionID: "database.operatorkit.io"}
	flag.BoolVar(&options.LeaderElection, "leader-elect", true, "have one of several replicas write")
	flag.StringVar(&options.Metrics.BindAddress, "metrics-address", ":8080", "where metrics are served")
	flag.StringVar(&options.HealthProbeBindAddress, "health-address", ":8081", "where health is served")
	flag.Parse()
	ctrl.SetLogger(zap.New())
	cfg, err := ctrl.GetConfig()
	if err == nil {
		err = run(ctrl.SetupSignalHandler(), cfg, options, &zone.Client{URL: *url, HTTP: http.DefaultClient})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, cfg *rest.Config, options ctrl.Options, records *zone.Client) error {
	options.Scheme = runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(options.Scheme); err != nil {
		return err
	}
	if err := v1alpha1.AddToScheme(options.Scheme); err != nil {
		return err
	}
	mgr, err := ctrl.NewManager(cfg, options)
	if err != nil {
		return err
	}
	if err := mgr.AddHealthzCheck("healthz", healthz.Ping); err != nil {
		return err
	}
	if err := mgr.AddReadyzCheck("readyz", healthz.Ping); err != nil {
		return err
	}
	if err := setUp(mgr, records); err != nil {
		return err
	}
	return mgr.Start(ctx)
}
