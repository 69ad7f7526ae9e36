package clusteraccess

import (
	"context"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/operatorkit/operatorkit/framework"
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
	// of the object's namespace. Required, unless Fixed has the MCP.
	MCP AskFunc
	// Workload says what is asked for in the workload cluster. An Ask that names no cluster gets one with the purpose
	// "workload". Default: there is none.
	Workload AskFunc
	// Additional are further clusters. Default: none.
	Additional []Access[struct{}]
	// Fixed are clusters that are not asked for, by id: MCP, Workload, or that of an additional one. Default: none.
	Fixed map[string]Fixed
}

// TypedProviderConfig is a ProviderConfig for registrations of clusters that depend on data D of an object.
type TypedProviderConfig[D any] struct {
	Config
	// Data computes the data, in every reconciliation. In its context are the object and the config of a reconciliation:
	//
	//	Data: serviceprovider.AccessData(func(db *v1alpha1.Postgres, config *v1alpha1.ProviderConfig) (string, error) { … })
	//
	// While it fails nothing is asked for, and a deletion that needs access waits. Required.
	Data func(ctx context.Context, request reconcile.Request) (D, error)
	// MCP, Workload, Additional and Fixed are those of a ProviderConfig.
	MCP, Workload func(request reconcile.Request, data D) (*Ask, error)
	Additional    []Access[D]
	Fixed         map[string]Fixed
}

// Provider is a TypedProvider without data.
type Provider = TypedProvider[struct{}]

// TypedProvider gets access to the MCP and the workload cluster of an object, and to additional ones. It is a
// serviceprovider.ClusterAccessProvider, an AdditionalAccessProvider, a FixedAccessProvider and a KindAccessProvider: each API has one of its
// own.
type TypedProvider[D any] struct {
	*Clusters[D]
	data func(ctx context.Context, request reconcile.Request) (D, error)
}

// NewProvider returns a Provider, or an error that lists every fault. It sends no request.
func NewProvider(config ProviderConfig) (*Provider, error) {
	return NewTypedProvider(TypedProviderConfig[struct{}]{
		Config: config.Config, MCP: withoutData(config.MCP), Workload: withoutData(config.Workload),
		Additional: config.Additional, Fixed: config.Fixed,
		Data: func(context.Context, reconcile.Request) (struct{}, error) { return struct{}{}, nil },
	})
}

func withoutData(ask AskFunc) func(reconcile.Request, struct{}) (*Ask, error) {
	if ask == nil {
		return nil
	}
	return func(request reconcile.Request, _ struct{}) (*Ask, error) { return ask(request) }
}

// NewTypedProvider is NewProvider for one with data.
func NewTypedProvider[D any](config TypedProviderConfig[D]) (*TypedProvider[D], error) {
	var accesses []Access[D]
	if _, fixed := config.Fixed[MCP]; !fixed || config.MCP != nil {
		accesses = append(accesses, Access[D]{ID: MCP})
	}
	if config.MCP != nil {
		accesses[0].Ask = inDefault(config.MCP, func(request reconcile.Request) *v1alpha1.ClusterRequestSpec {
			return &v1alpha1.ClusterRequestSpec{
				Purpose: MCP, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{TenantLabel: request.Namespace}},
			}
		})
	}
	if config.Workload != nil {
		accesses = append(accesses, Access[D]{ID: Workload, Ask: inDefault(config.Workload, func(reconcile.Request) *v1alpha1.ClusterRequestSpec {
			return &v1alpha1.ClusterRequestSpec{Purpose: Workload}
		})})
	}
	accesses = append(accesses, config.Additional...)
	for _, id := range slices.Sorted(maps.Keys(config.Fixed)) {
		fixed := config.Fixed[id]
		accesses = append(accesses, Access[D]{ID: id, Fixed: &fixed})
	}
	if config.Data == nil {
		return nil, fmt.Errorf("%w: clusteraccess.TypedProviderConfig: Data must be set", framework.ErrInvalidConfig)
	}
	c, err := New(config.Config, accesses)
	if err != nil {
		return nil, err
	}
	return &TypedProvider[D]{c, config.Data}, nil
}

// inDefault asks for a cluster where a function names none.
func inDefault[D any](ask func(reconcile.Request, D) (*Ask, error), cluster func(reconcile.Request) *v1alpha1.ClusterRequestSpec) func(reconcile.Request, D) (*Ask, error) {
	return func(request reconcile.Request, data D) (*Ask, error) {
		asked, err := ask(request, data)
		if err != nil || asked == nil || asked.ClusterRef != "" || asked.RequestRef != "" || asked.Cluster != nil {
			return asked, err
		}
		completed := *asked
		completed.Cluster = cluster(request)
		return &completed, nil
	}
}

// Reconcile asks for all clusters of an object, with its data: see Clusters.Reconcile.
func (p *TypedProvider[D]) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	data, err := p.data(ctx, request)
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("find out what access to the clusters of %s depends on: %w", request, err)
	}
	return p.Clusters.Reconcile(ctx, request, data)
}

// MCPCluster returns the MCP of an object: see Clusters.Cluster.
func (p *TypedProvider[D]) MCPCluster(ctx context.Context, request reconcile.Request) (*clusters.Cluster, error) {
	return p.Cluster(ctx, request, MCP)
}

// MCPAccessRequest returns the AccessRequest for the MCP: see Clusters.AccessRequest.
func (p *TypedProvider[D]) MCPAccessRequest(ctx context.Context, request reconcile.Request) (*v1alpha1.AccessRequest, error) {
	return p.AccessRequest(ctx, request, MCP)
}

// WorkloadCluster returns the workload cluster of an object: see Clusters.Cluster.
func (p *TypedProvider[D]) WorkloadCluster(ctx context.Context, request reconcile.Request) (*clusters.Cluster, error) {
	return p.Cluster(ctx, request, Workload)
}

// WorkloadAccessRequest returns the AccessRequest for the workload cluster: see Clusters.AccessRequest.
func (p *TypedProvider[D]) WorkloadAccessRequest(ctx context.Context, request reconcile.Request) (*v1alpha1.AccessRequest, error) {
	return p.AccessRequest(ctx, request, Workload)
}

// AdditionalCluster returns the cluster of that id: see Clusters.Cluster.
func (p *TypedProvider[D]) AdditionalCluster(ctx context.Context, request reconcile.Request, id string) (*clusters.Cluster, error) {
	return p.Cluster(ctx, request, id)
}

// AdditionalAccessRequest returns the AccessRequest for the cluster of that id: see Clusters.AccessRequest.
func (p *TypedProvider[D]) AdditionalAccessRequest(ctx context.Context, request reconcile.Request, id string) (*v1alpha1.AccessRequest, error) {
	return p.AccessRequest(ctx, request, id)
}
