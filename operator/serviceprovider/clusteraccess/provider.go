package clusteraccess

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/operatorkit/operatorkit/operator/serviceprovider/clusters"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/v1alpha1"
)

// The ids of the clusters of a Provider, which are the purposes of their ClusterRequests too.
const (
	MCP      = "mcp"
	Workload = "workload"
)

// TenantLabel is a label of a Cluster: the namespace of the onboarding cluster whose MCP it is.
const TenantLabel = "clusters.operatorkit.io/tenant"

// AskFunc says what is asked for, for an object.
type AskFunc func(request reconcile.Request) (*Ask, error)

// Permissions asks for these permissions, in the cluster that is the default.
func Permissions(permissions ...v1alpha1.Permission) AskFunc {
	return func(reconcile.Request) (*Ask, error) { return &Ask{Permissions: permissions}, nil }
}

// ProviderConfig configures a Provider.
type ProviderConfig struct {
	Config
	// MCP says what is asked for in the MCP. An Ask that names no cluster gets one with the purpose "mcp" and the TenantLabel
	// of the object's namespace. Required.
	MCP AskFunc
	// Workload says what is asked for in the workload cluster. An Ask that names no cluster gets one with the purpose
	// "workload". Default: there is none.
	Workload AskFunc
	// Additional are further clusters. Default: none.
	Additional []Access[struct{}]
}

// Provider gets access to the MCP and the workload cluster of an object, and to additional ones. It is a
// serviceprovider.ClusterAccessProvider, and an AdditionalAccessProvider.
type Provider struct{ clusters *Clusters[struct{}] }

// NewProvider returns a Provider, or an error that lists every fault. It sends no request.
func NewProvider(config ProviderConfig) (*Provider, error) {
	accesses := []Access[struct{}]{{ID: MCP}}
	if config.MCP != nil {
		accesses[0].Ask = inDefault(config.MCP, func(request reconcile.Request) *v1alpha1.ClusterRequestSpec {
			return &v1alpha1.ClusterRequestSpec{
				Purpose: MCP, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{TenantLabel: request.Namespace}},
			}
		})
	}
	if config.Workload != nil {
		accesses = append(accesses, Access[struct{}]{ID: Workload, Ask: inDefault(config.Workload, func(reconcile.Request) *v1alpha1.ClusterRequestSpec {
			return &v1alpha1.ClusterRequestSpec{Purpose: Workload}
		})})
	}
	c, err := New(config.Config, append(accesses, config.Additional...))
	if err != nil {
		return nil, err
	}
	return &Provider{c}, nil
}

// inDefault asks for a cluster where an AskFunc names none.
func inDefault(ask AskFunc, cluster func(reconcile.Request) *v1alpha1.ClusterRequestSpec) func(reconcile.Request, struct{}) (*Ask, error) {
	return func(request reconcile.Request, _ struct{}) (*Ask, error) {
		asked, err := ask(request)
		if err != nil || asked == nil || asked.ClusterRef != "" || asked.RequestRef != "" || asked.Cluster != nil {
			return asked, err
		}
		completed := *asked
		completed.Cluster = cluster(request)
		return &completed, nil
	}
}

// WaitForSync waits until everything is known: see Clusters.WaitForSync.
func (p *Provider) WaitForSync(ctx context.Context) error { return p.clusters.WaitForSync(ctx) }

// Changes tells a controller which objects are concerned by a change: see Clusters.Changes.
func (p *Provider) Changes() source.Source { return p.clusters.Changes() }

// Start implements manager.Runnable.
func (p *Provider) Start(ctx context.Context) error { return p.clusters.Start(ctx) }

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (p *Provider) NeedLeaderElection() bool { return p.clusters.NeedLeaderElection() }

// Reconcile asks for all clusters of an object: see Clusters.Reconcile.
func (p *Provider) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	return p.clusters.Reconcile(ctx, request, struct{}{})
}

// ReconcileDelete takes all away that was asked for: see Clusters.ReconcileDelete.
func (p *Provider) ReconcileDelete(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	return p.clusters.ReconcileDelete(ctx, request)
}

// MCPCluster returns the MCP of an object: see Clusters.Cluster.
func (p *Provider) MCPCluster(ctx context.Context, request reconcile.Request) (*clusters.Cluster, error) {
	return p.clusters.Cluster(ctx, request, MCP)
}

// MCPAccessRequest returns the AccessRequest for the MCP: see Clusters.AccessRequest.
func (p *Provider) MCPAccessRequest(ctx context.Context, request reconcile.Request) (*v1alpha1.AccessRequest, error) {
	return p.clusters.AccessRequest(ctx, request, MCP)
}

// WorkloadCluster returns the workload cluster of an object: see Clusters.Cluster.
func (p *Provider) WorkloadCluster(ctx context.Context, request reconcile.Request) (*clusters.Cluster, error) {
	return p.clusters.Cluster(ctx, request, Workload)
}

// WorkloadAccessRequest returns the AccessRequest for the workload cluster: see Clusters.AccessRequest.
func (p *Provider) WorkloadAccessRequest(ctx context.Context, request reconcile.Request) (*v1alpha1.AccessRequest, error) {
	return p.clusters.AccessRequest(ctx, request, Workload)
}

// AdditionalCluster returns the cluster of that id: see Clusters.Cluster.
func (p *Provider) AdditionalCluster(ctx context.Context, request reconcile.Request, id string) (*clusters.Cluster, error) {
	return p.clusters.Cluster(ctx, request, id)
}

// AdditionalAccessRequest returns the AccessRequest for the cluster of that id: see Clusters.AccessRequest.
func (p *Provider) AdditionalAccessRequest(ctx context.Context, request reconcile.Request, id string) (*v1alpha1.AccessRequest, error) {
	return p.clusters.AccessRequest(ctx, request, id)
}
