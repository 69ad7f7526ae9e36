// Package story shows the Postgres provider on four control planes of its own (platform, onboarding, MCP and workload): alice orders a
// database, the provider is granted access to the clusters that it needs for it, and the database runs.
package story

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/examples/internal/demo"
	postgres "github.com/operatorkit/operatorkit/examples/serviceprovider"
	"github.com/operatorkit/operatorkit/examples/serviceprovider/v1alpha1"
	"github.com/operatorkit/operatorkit/operator/serviceprovider"
	clustersv1alpha1 "github.com/operatorkit/operatorkit/operator/serviceprovider/v1alpha1"
)

// The names of the control planes. That of the platform is the Demo's.
const (
	Platform   = "platform"
	Onboarding = "onboarding"
	mcp        = "mcp"
	workload   = "workload"
)

// Wrap returns how the provider reaches a control plane, Platform or Onboarding, given how it would.
type Wrap func(cluster string, config *rest.Config) *rest.Config

// New returns the story.
func New(wrap Wrap) demo.Story {
	w := &world{wrap: wrap}
	return demo.Story{
		Name:        "serviceprovider",
		Operator:    postgres.Platform,
		AddToScheme: []func(*runtime.Scheme) error{v1alpha1.AddToScheme},
		Clusters:    []string{Onboarding, mcp, workload},
		// What makes Pods of a StatefulSet, and has its disks go with it.
		Controllers: []string{"statefulset-controller", "persistentvolumeclaim-protection-controller"},
		Look:        "bin/controlplane kubectl --context onboarding get postgreses -A   # or mcp, workload; without: the platform's",
		Prepare:     w.prepare,
		Tell:        w.order,
		Try: []string{
			"bin/controlplane kubectl get clusterrequests,accessrequests -A",
			"bin/controlplane kubectl --context workload -n postgres-team-blue get statefulsets,services,pods",
			"bin/controlplane kubectl --context onboarding -n team-blue delete postgres orders   # nothing of it stays",
		},
	}
}

// order has alice order a database.
func (w *world) order(ctx context.Context, d *demo.Demo) error {
	user, err := d.Clusters[Onboarding].User("alice")
	if err != nil {
		return err
	}
	alice, err := w.newClient(user)
	if err != nil {
		return err
	}
	w.Step("alice orders the Postgres orders")
	order := &v1alpha1.Postgres{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team-blue", Name: "orders"}, Spec: v1alpha1.PostgresSpec{Version: "17"},
	}
	if err := alice.Create(ctx, order); err != nil {
		return err
	}
	err = w.Until(ctx, "access to the clusters mcp-blue and workload is granted", func(ctx context.Context) (bool, error) {
		requests := &clustersv1alpha1.AccessRequestList{}
		err := w.Client.List(ctx, requests, client.InNamespace(postgres.Namespace))
		granted := 0
		for i := range requests.Items {
			if requests.Items[i].Status.Phase == clustersv1alpha1.PhaseGranted {
				granted++
			}
		}
		return granted == 2, err
	})
	if err != nil {
		return err
	}
	return w.Until(ctx, "orders is ready: its StatefulSet runs in workload, and its Secret is in mcp", func(ctx context.Context) (bool, error) {
		err := alice.Get(ctx, client.ObjectKeyFromObject(order), order)
		ready := meta.FindStatusCondition(order.Conditions, serviceprovider.ServiceProviderConditionReady)
		if err == nil && ready != nil && ready.Status != metav1.ConditionTrue {
			err = fmt.Errorf("orders is not ready: %s: %s", ready.Reason, ready.Message)
		}
		return ready != nil && ready.Status == metav1.ConditionTrue, err
	})
}
