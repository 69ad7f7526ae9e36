package postgres

import (
	"context"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/command"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/clusteraccess"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/clusteraccess/granter"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/clusteraccess/namespaces"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/clusteraccess/scheduler"
	clustersv1alpha1 "github.com/operatorkit/operatorkit/operator/serviceprovider/v1alpha1"
)

// Platform is what the command line of the platform's own operator is made of: it chooses clusters for those who ask, and
// grants access to them.
var Platform = command.Config{
	Name:        "platform",
	Short:       "Chooses clusters for service providers and grants them access",
	CRDFiles:    clustersv1alpha1.CRDs,
	AddToScheme: []func(*runtime.Scheme) error{clustersv1alpha1.AddToScheme},
	New: func(_ context.Context, d *operator.Dependencies) ([]*framework.Framework, error) {
		choosing, err := scheduler.New(d, namespaces.Layout{})
		if err != nil {
			return nil, err
		}
		granting, err := granter.New(d, granter.Config{Policy: policy})
		return append(choosing, granting...), err
	},
}

// policy is the most that the provider gets, and no other one gets anything: in an MCP, the Secrets in the namespace of the tenant whose MCP
// it is; in a workload cluster, what databases are made of, in namespaces that are meant for them.
func policy(cluster *clustersv1alpha1.Cluster, request *clustersv1alpha1.AccessRequest) granter.Policy {
	if request.Namespace != Namespace {
		return granter.Policy{Name: "nothing"}
	}
	all := []string{"get", "list", "watch", "create", "update", "patch", "delete"}
	core := func(resources ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{""}, Resources: resources, Verbs: all}
	}
	var permissions []clustersv1alpha1.Permission
	if tenant := cluster.Labels[clusteraccess.TenantLabel]; tenant != "" && slices.Contains(cluster.Spec.Purposes, clusteraccess.MCP) {
		permissions = append(permissions, clustersv1alpha1.Permission{Namespace: tenant, Rules: []rbacv1.PolicyRule{core("secrets")}})
	}
	if slices.Contains(cluster.Spec.Purposes, clusteraccess.Workload) {
		permissions = append(permissions, clustersv1alpha1.Permission{
			Namespace: WorkloadNamespace("*"),
			Rules: []rbacv1.PolicyRule{
				core("secrets", "services", "configmaps"),
				{APIGroups: []string{"apps"}, Resources: []string{"statefulsets"}, Verbs: all},
			},
		})
	}
	return granter.Policy{Name: "databases", Permissions: permissions}
}
