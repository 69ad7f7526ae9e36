// Package postgres is a service provider: users order a Postgres in the onboarding cluster, and get a database that runs in a
// workload cluster, with the credentials for it in their managed control plane (MCP). The provider has no rights in these two
// but those that it asks for and that the platform grants, for each database anew. On the platform it has a namespace in which it
// asks, and sees nothing of what the platform manages clusters with, or of other providers.
//
//	$ make run EXAMPLE=serviceprovider                       # on four control planes of its own, with two users
//	$ go run ./examples/serviceprovider/cmd/platform run     # the platform's operator, which chooses clusters and grants access
//	$ go run ./examples/serviceprovider/cmd/operator --onboarding users.kubeconfig   # the provider
//	$ go run ./examples/serviceprovider/cmd/operator --onboarding users.kubeconfig plan team-blue/orders   # what it would do
//
// What the provider's author has to write is in resources.go and objects.go (placed.go is how objects get into a cluster); what the
// platform allows is in platform.go; and what the provider may do in the platform cluster and in the onboarding cluster is in the
// folder permissions.
package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/giantswarm/micrologger"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/operatorkit/operatorkit/examples/serviceprovider/v1alpha1"
	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/operator/logging"
	"github.com/operatorkit/operatorkit/operator/serviceprovider"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/clusteraccess"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/clusteraccess/namespaces"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/clusters"
	clustersv1alpha1 "github.com/operatorkit/operatorkit/operator/serviceprovider/v1alpha1"
)

const (
	// Name is the name of the provider, and of its PostgresConfig.
	Name = "postgres"
	// Namespace is that of the provider on the platform cluster.
	Namespace = namespaces.ProviderPrefix + Name
)

// Config configures a Provider.
type Config struct {
	// Platform and Onboarding are how the two clusters are reached that the provider has rights of its own in. Required.
	Platform, Onboarding *rest.Config
	// Namespace is that of the provider on the platform cluster: access is asked for and issued there, and the pull Secret is there too.
	// Default: Namespace, "provider-postgres".
	Namespace string
	// Logger is for everything. Required.
	Logger micrologger.Logger
	// LeaderElection lets one of several replicas work, by a lease in Namespace. Default: false.
	LeaderElection bool
	// MetricsAddress is where /metrics is. Default: empty, which is off.
	MetricsAddress string
}

// Provider is the program of the provider.
type Provider struct {
	manager   ctrl.Manager
	access    *clusteraccess.Provider
	databases *serviceprovider.APIReconciler[*v1alpha1.Postgres, *v1alpha1.PostgresConfig]
	logger    micrologger.Logger
}

// NewScheme returns a scheme with the types of the provider, of access to clusters, and of Kubernetes.
func NewScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme), clustersv1alpha1.AddToScheme(scheme))
	return scheme, err
}

// New returns a Provider that does not run yet.
func New(c Config) (*Provider, error) {
	c.Namespace = cmp.Or(c.Namespace, Namespace)
	scheme, err := NewScheme()
	if err != nil {
		return nil, err
	}
	platform, err := clusters.New("platform", c.Platform, scheme)
	if err != nil {
		return nil, err
	}
	onboarding, err := clusters.New("onboarding", c.Onboarding, scheme)
	if err != nil {
		return nil, err
	}
	access, err := clusteraccess.NewProvider(clusteraccess.ProviderConfig{
		Config: clusteraccess.Config{Provider: Name, Namespace: c.Namespace, Platform: platform, Scheme: scheme, Logger: c.Logger},
		MCP:    askInMCP, Workload: askInWorkload,
	})
	if err != nil {
		return nil, err
	}
	updates := make(chan event.GenericEvent, 1)
	configs, err := serviceprovider.NewConfigReconcilerBuilder[*v1alpha1.PostgresConfig]().
		PlatformCluster(platform).ProviderName(Name).UpdateChannel(updates).
		EmptyObjectProvider(func() *v1alpha1.PostgresConfig { return &v1alpha1.PostgresConfig{} }).
		Build()
	if err != nil {
		return nil, err
	}
	providerConfig := &v1alpha1.PostgresConfig{}
	providerConfig.Name = Name
	resources, err := (&provider{platform: platform.Client(), namespace: c.Namespace}).resources(c.Logger)
	if err != nil {
		return nil, err
	}
	databases, err := serviceprovider.NewAPIReconcilerBuilder[*v1alpha1.Postgres, *v1alpha1.PostgresConfig]().
		PlatformCluster(platform).OnboardingCluster(onboarding).
		ClusterAccessReconciler(access).WorkloadCluster(true).
		Reconciler(resources).
		EmptyObjectProvider(func() *v1alpha1.Postgres { return &v1alpha1.Postgres{} }).
		ProviderConfig(providerConfig).SecretNamespace(c.Namespace).
		Build()
	if err != nil {
		return nil, err
	}

	manager, err := newManager(c, scheme)
	if err != nil {
		return nil, err
	}
	err = errors.Join(manager.Add(access), configs.SetupWithManager(manager), databases.SetupWithManager(manager, Name, updates))
	return &Provider{manager, access, databases, c.Logger}, err
}

// newManager returns what runs the provider.
func newManager(c Config, scheme *runtime.Scheme) (ctrl.Manager, error) {
	if c.MetricsAddress == "" {
		c.MetricsAddress = "0" // which is off
	}
	anyName := true // programs that run two providers have the names of their controllers twice
	manager, err := ctrl.NewManager(c.Platform, ctrl.Options{
		Scheme: scheme, Logger: logging.Logr(c.Logger), Metrics: server.Options{BindAddress: c.MetricsAddress},
		Controller:     config.Controller{SkipNameValidation: &anyName},
		LeaderElection: c.LeaderElection, LeaderElectionID: Name + "-provider", LeaderElectionNamespace: c.Namespace,
		LeaderElectionReleaseOnCancel: true,
	})
	if err != nil {
		return nil, fmt.Errorf("make the manager: %w", err)
	}
	return manager, nil
}

// Start runs the provider until ctx ends.
func (p *Provider) Start(ctx context.Context) error { return p.manager.Start(ctx) }

// Plan writes what the next reconciliation of a database would change in its clusters, and changes nothing. It is for a Provider that
// was not started. Of a database that waits for something it says for what.
func (p *Provider) Plan(ctx context.Context, database client.ObjectKey, to io.Writer) error {
	f, err := p.databases.Framework(framework.Config{Logger: p.logger})
	if err != nil {
		return err
	}
	reading, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	running.Go(func() { _ = p.access.Start(reading) }) // never fails
	for _, s := range f.Sources() {
		running.Go(func() { _ = s.Run(reading) })
		if err := s.WaitForSync(ctx); err != nil {
			return fmt.Errorf("read the databases: %w", err)
		}
	}
	if err := p.access.WaitForSync(ctx); err != nil {
		return fmt.Errorf("read what was asked for: %w", err)
	}
	planned, err := f.Plan(ctx, database)
	if err != nil {
		return err
	}
	return plan.WriteText(to, []*plan.Plan{planned}, plan.TextOptions{})
}
