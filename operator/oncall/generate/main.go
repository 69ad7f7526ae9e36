// Command generate writes the alert rules, the dashboard and the runbooks of every operator into a folder. They are made of the metrics that an
// operator registers which has all that there are: an election, sharding, a budget for upgrades, and a resource set that is only tried.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/giantswarm/micrologger"
	corev1 "k8s.io/api/core/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/oncall"
)

func main() {
	if err := generate(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func generate(folder string) error {
	metrics, err := metricsOfAnOperator()
	if err != nil {
		return err
	}
	rules, err := oncall.RulesFile()
	if err != nil {
		return err
	}
	dashboard, err := oncall.Dashboard(metrics)
	if err != nil {
		return err
	}
	runbooks, err := oncall.Runbooks(metrics)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil { //nolint:gosec // documentation is for all to read
		return err
	}
	for name, text := range map[string][]byte{"alerts.yaml": rules, "dashboard.json": dashboard, "runbooks.md": runbooks} {
		if err := os.WriteFile(filepath.Join(folder, name), text, 0o644); err != nil { //nolint:gosec // documentation is for all to read
			return err
		}
	}
	return nil
}

// metricsOfAnOperator returns the definitions of the metrics of an operator that is not connected to anything.
func metricsOfAnOperator() ([]oncall.Metric, error) {
	logger, err := micrologger.New(micrologger.Config{IOWriter: io.Discard})
	if err != nil {
		return nil, err
	}
	deps, err := operator.NewDependencies(operator.DependenciesConfig{
		Name: "any", RESTConfig: &rest.Config{Host: "https://localhost"}, Scheme: clientgoscheme.Scheme, Logger: logger,
	})
	if err != nil {
		return nil, err
	}
	defer deps.Close()
	source, err := deps.NewSource(&corev1.ConfigMap{})
	if err != nil {
		return nil, err
	}
	router := framework.ResourceRouterConfig{Logger: logger}
	for _, shadow := range []bool{false, true} {
		set, err := framework.NewResourceSet(framework.ResourceSetConfig{Name: "set", Shadow: shadow, HandlesRest: true, Resources: []framework.Resource{idle{}}})
		if err != nil {
			return nil, err
		}
		router.ResourceSets = append(router.ResourceSets, set)
	}
	config := framework.Config{Source: source}
	if config.ResourceRouter, err = framework.NewResourceRouter(router); err != nil {
		return nil, err
	}
	f, err := deps.NewFramework(config)
	if err != nil {
		return nil, err
	}
	_, err = operator.New(operator.Config{
		Name: deps.Name, Logger: logger, RESTConfig: deps.RESTConfig, Registry: deps.Registry, Frameworks: []*framework.Framework{f},
		LeaderElection: operator.LeaderElectionConfig{Enabled: true, Namespace: "any"}, Sharding: operator.ShardingConfig{Enabled: true},
		Upgrade: operator.UpgradeConfig{Budget: "1"},
	})
	if err != nil {
		return nil, err
	}
	return oncall.Describe(deps.Registry)
}

// idle is a resource that does nothing.
type idle struct{}

func (idle) Name() string                             { return "idle" }
func (idle) EnsureCreated(context.Context, any) error { return nil }
func (idle) EnsureDeleted(context.Context, any) error { return nil }
