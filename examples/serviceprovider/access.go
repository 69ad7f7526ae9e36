package postgres

import (
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/operatorkit/operatorkit/operator/serviceprovider/clusteraccess"
	clustersv1alpha1 "github.com/operatorkit/operatorkit/operator/serviceprovider/v1alpha1"
)

// verbs are what applying, reading and deleting an object of a known name takes. Listing is not among them.
var verbs = []string{"get", "create", "patch", "delete"}

// WorkloadNamespace is where the databases of a namespace of the onboarding cluster run in a workload cluster.
func WorkloadNamespace(tenant string) string { return "postgres-" + tenant }

// askInMCP asks for what the provider needs in the MCP of a database: to write its Secret, in the namespace of its user.
func askInMCP(request reconcile.Request) (*clusteraccess.Ask, error) {
	return &clusteraccess.Ask{Permissions: []clustersv1alpha1.Permission{{
		Namespace: request.Namespace,
		Rules:     []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: verbs}},
	}}}, nil
}

// askInWorkload asks for what the provider needs in the workload cluster of a database.
func askInWorkload(request reconcile.Request) (*clusteraccess.Ask, error) {
	return &clusteraccess.Ask{Permissions: []clustersv1alpha1.Permission{{
		Namespace: WorkloadNamespace(request.Namespace),
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"secrets", "services"}, Verbs: verbs},
			{APIGroups: []string{"apps"}, Resources: []string{"statefulsets"}, Verbs: verbs},
		},
	}}}, nil
}
