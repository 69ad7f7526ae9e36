package serviceprovider_test

import (
	"context"
	"testing"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/operator/serviceprovider"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/clusters"
	clustersv1alpha1 "github.com/operatorkit/operatorkit/operator/serviceprovider/v1alpha1"
)

// fixedMCP is access to an MCP that is not asked for.
type fixedMCP struct {
	*simpleAccess
	cluster *clusters.Cluster
	secret  client.ObjectKey
}

func (a fixedMCP) MCPCluster(context.Context, ctrl.Request) (*clusters.Cluster, error) {
	return a.cluster, nil
}

func (a fixedMCP) FixedCluster(id string) (client.ObjectKey, bool) { return a.secret, id == mcp }

func TestAFixedClusterIsAClusterOfAnObjectWithoutAnAccessRequest(t *testing.T) {
	w := newWorld(t)
	w.configure(ProviderConfigSpec{})
	w.access.ids = []string{workload}
	secret := client.ObjectKey{Namespace: w.namespace, Name: "fixed"}
	w.author.createOrUpdate = func(ctx context.Context, obj *Postgres, config *ProviderConfig, found clusterCtx) (ctrl.Result, error) {
		if found.MCPAccessSecretKey != secret {
			t.Errorf("the Secret with the kubeconfig is %v, want %v", found.MCPAccessSecretKey, secret)
		}
		return deploy(ctx, obj, config, found)
	}
	r := w.build(func(b *builder) {
		b.ClusterAccessReconciler(fixedMCP{w.access, w.cluster(mcp), secret}).WorkloadCluster(true)
	})
	request := w.order("db", 3)
	settle(t, r, request)
	w.tells("db", "Ready/True/Ready")
	if !w.isThere(mcp, "db") || !w.isThere(workload, "db") {
		t.Error("the object should be in the fixed cluster and in the one that was asked for")
	}
	asked := &clustersv1alpha1.AccessRequestList{}
	if err := planes[platform].user.List(t.Context(), asked, client.InNamespace(w.namespace)); err != nil || len(asked.Items) != 1 {
		t.Errorf("there are %d AccessRequests, %v, want that of the workload cluster", len(asked.Items), err)
	}

	// A tenant's annotation lets go of no cluster that answers, whether it was asked for or not.
	w.annotate("db", `"`+serviceprovider.LetGoAnnotation+`":"mcp"`)
	w.delete("db")
	settle(t, r, request)
	if w.isThere(mcp, "db") || w.isThere(workload, "db") || w.has(onboarding, w.named("db")) {
		t.Error("something is left")
	}
	if !w.events.told("ClusterAnswers", "mcp") {
		t.Errorf("there is no event: %q", w.events.all)
	}
}
