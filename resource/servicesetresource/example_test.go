package servicesetresource_test

import (
	"context"
	"fmt"
	"os"

	"github.com/giantswarm/micrologger/microloggertest"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/resource/serviceset"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/servicesetresource"
)

// The plan of a cluster on whose way to cert-manager 1.17.1 there are two versions more. In an operator, Compute calls
// serviceset.ComputeClusterOperations, and the resources go into a resource set.
func ExampleNew() {
	certManager := client.ObjectKey{Namespace: "default", Name: "cert-manager"}
	set := func(version, template string) *v1alpha1.ServiceSet {
		return &v1alpha1.ServiceSet{
			ObjectMeta: metav1.ObjectMeta{Namespace: "platform", Name: "prod"},
			Spec: v1alpha1.ServiceSetSpec{Cluster: "prod", Services: []v1alpha1.ServiceWithValues{
				{Namespace: certManager.Namespace, Name: certManager.Name, Version: version, Template: template},
			}},
		}
	}
	sets, err := servicesetresource.New(servicesetresource.Config[*v1alpha1.ClusterDeployment]{
		Client: struct{ client.Client }{}, // a plan writes nothing
		Logger: microloggertest.New(),
		Compute: func(context.Context, *v1alpha1.ClusterDeployment) ([]serviceset.OwnerOperation, error) {
			before, after := set("1.14.2", "cert-manager-1-14-2"), set("1.15.0", "cert-manager-1-15-0")
			return []serviceset.OwnerOperation{{
				Owner: serviceset.Owner{Kind: v1alpha1.ClusterDeploymentKind},
				Key:   client.ObjectKeyFromObject(before),
				Operation: &serviceset.Operation{
					Operation: v1alpha1.ServiceSetOperationUpdate, Before: before, ServiceSet: after,
					Resolution: &serviceset.Resolution{Decisions: []serviceset.Decision{
						{
							Service: certManager, Reason: v1alpha1.ReasonStepping, Steps: 3,
							From:    v1alpha1.ServiceVersion{Template: "cert-manager-1-14-2", Version: "1.14.2"},
							To:      v1alpha1.ServiceVersion{Template: "cert-manager-1-15-0", Version: "1.15.0"},
							Desired: v1alpha1.ServiceVersion{Template: "cert-manager-1-17-1", Version: "1.17.1"},
						},
						{
							Service: client.ObjectKey{Namespace: "kof", Name: "kof-storage"}, Reason: v1alpha1.ReasonWaiting,
							WaitsFor: []client.ObjectKey{certManager},
						},
					}},
				},
			}}, nil
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	prod := &v1alpha1.ClusterDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "platform", Name: "prod"}}
	p, err := framework.PlanUpdate(context.Background(), prod, []framework.Resource{sets})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := plan.WriteText(os.Stdout, []*plan.Plan{p}, plan.TextOptions{}); err != nil {
		fmt.Println(err)
	}
	// Output:
	// ClusterDeployment platform/prod (update)
	//   servicesets
	//     ~ service default/cert-manager: 1.14.2 → 1.15.0 (step 1 of 3 to 1.17.1)
	//         ~ template: "cert-manager-1-14-2" -> "cert-manager-1-15-0"
	//         ~ version: "1.14.2" -> "1.15.0"
	//     · kof/kof-storage waits for default/cert-manager
	//
	// 0 to create, 1 to update, 0 to delete
}
