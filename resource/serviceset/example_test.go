package serviceset_test

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/resource/serviceset"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// certManager is a ServiceTemplate with a version.
func certManager(version string) *v1alpha1.ServiceTemplate {
	return &v1alpha1.ServiceTemplate{
		ObjectMeta: metav1.ObjectMeta{Name: "cert-manager-" + version},
		Spec:       v1alpha1.ServiceTemplateSpec{Version: version},
	}
}

// An upgrade of three steps has begun, and what depends on it waits.
func ExampleResolve() {
	chain := &v1alpha1.ServiceTemplateChain{Spec: v1alpha1.ServiceTemplateChainSpec{SupportedTemplates: []v1alpha1.SupportedTemplate{
		{Name: "cert-manager-1.14.2", AvailableUpgrades: []v1alpha1.AvailableUpgrade{{Name: "cert-manager-1.15.0"}}},
		{Name: "cert-manager-1.15.0", AvailableUpgrades: []v1alpha1.AvailableUpgrade{{Name: "cert-manager-1.16.3"}}},
		{Name: "cert-manager-1.16.3", AvailableUpgrades: []v1alpha1.AvailableUpgrade{{Name: "cert-manager-1.17.1"}}},
		{Name: "cert-manager-1.17.1"},
	}}}
	templates := map[string]*v1alpha1.ServiceTemplate{"kof-storage": {ObjectMeta: metav1.ObjectMeta{Name: "kof-storage"}}}
	for _, version := range []string{"1.14.2", "1.15.0", "1.16.3", "1.17.1"} {
		templates["cert-manager-"+version] = certManager(version)
	}
	resolution, err := serviceset.Resolve(serviceset.Input{
		Owner: serviceset.Owner{
			Kind: v1alpha1.ClusterDeploymentKind, Key: client.ObjectKey{Namespace: "platform", Name: "prod"},
			Services: []v1alpha1.Service{
				{Name: "kof-storage", Template: "kof-storage", DependsOn: []v1alpha1.ServiceDependsOn{{Name: "cert-manager"}}},
				{Name: "cert-manager", Template: "cert-manager-1.17.1", TemplateChain: "cert-manager"},
			},
			Set: &v1alpha1.ServiceSet{
				Spec: v1alpha1.ServiceSetSpec{Services: []v1alpha1.ServiceWithValues{
					{Name: "cert-manager", Template: "cert-manager-1.14.2", Version: "1.14.2"},
				}},
				Status: v1alpha1.ServiceSetStatus{Services: []v1alpha1.ServiceState{
					{Name: "cert-manager", Template: "cert-manager-1.14.2", Version: "1.14.2", State: v1alpha1.ServiceStateDeployed},
				}},
			},
		},
		Templates: templates,
		Chains:    map[string]*v1alpha1.ServiceTemplateChain{"cert-manager": chain},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, d := range resolution.Decisions {
		fmt.Println(&d)
	}
	for _, s := range resolution.Services {
		fmt.Println(s.Name, s.Template)
	}
	// Output:
	// default/cert-manager 1.14.2 → 1.15.0 (step 1 of 3 to 1.17.1)
	// default/kof-storage waits for default/cert-manager
	// cert-manager cert-manager-1.15.0
}

// platformOf returns a reader of objects, in place of a client or an informer.Reader, with what they name.
func platformOf(objects ...client.Object) client.Reader {
	objects = append(objects, &v1alpha1.StateManagementProvider{
		ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.DefaultStateManagementProvider},
		Spec:       v1alpha1.StateManagementProviderSpec{Selector: metav1.LabelSelector{MatchLabels: map[string]string{"manager": "native"}}},
	})
	for name, version := range map[string]string{"cert-manager": "1.17.1", "ingress": "4.12.0"} {
		objects = append(objects, &v1alpha1.ServiceTemplate{
			ObjectMeta: metav1.ObjectMeta{Namespace: "platform", Name: name + "-" + version},
			Spec:       v1alpha1.ServiceTemplateSpec{Version: version},
		})
	}
	return &scene{objects: objects}
}

// The cluster prod has a service of its own, and gets one from a MultiClusterService. Another MultiClusterService has gone, and
// has left two services behind: the one that depends on the other goes first.
func ExampleComputeClusterOperations() {
	c := platformOf(
		&v1alpha1.MultiClusterService{
			ObjectMeta: metav1.ObjectMeta{Name: "base"},
			Spec: v1alpha1.MultiClusterServiceSpec{
				ClusterSelector: &metav1.LabelSelector{},
				ServiceSpec:     v1alpha1.ServiceSpec{Services: []v1alpha1.Service{{Name: "cert-manager", Template: "cert-manager-1.17.1"}}},
			},
		},
		&v1alpha1.ServiceSet{
			ObjectMeta: metav1.ObjectMeta{Namespace: "platform", Name: "prod.old", Labels: map[string]string{v1alpha1.ClusterLabel: "prod"}},
			Spec: v1alpha1.ServiceSetSpec{Cluster: "prod", MultiClusterService: "old", Services: []v1alpha1.ServiceWithValues{
				{Name: "database", Template: "database-4.0.0"},
				{Name: "web", Template: "web-2.0.0", DependsOn: []v1alpha1.ServiceDependsOn{{Name: "database"}}},
			}},
		},
	)
	cd := &v1alpha1.ClusterDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "platform", Name: "prod"}}
	cd.Spec.ServiceSpec.Services = []v1alpha1.Service{{Name: "ingress", Template: "ingress-4.12.0"}}

	operations, err := serviceset.ComputeClusterOperations(context.Background(), c, "system", cd)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, o := range operations {
		fmt.Println(o.Owner.Kind, o.Owner.Key.Name, o.Operation.Operation)
		for i := range o.Operation.Resolution.Decisions {
			fmt.Println(" ", &o.Operation.Resolution.Decisions[i])
		}
	}
	// Output:
	// MultiClusterService base create
	//   default/cert-manager is installed in version 1.17.1
	// MultiClusterService old update
	//   default/database is removed after default/web
	//   default/web is removed
	// ClusterDeployment prod create
	//   default/ingress is installed in version 4.12.0
}

// What contradicts itself is an error that names every culprit.
func ExampleGraphError() {
	_, err := serviceset.Resolve(serviceset.Input{Owner: serviceset.Owner{Services: []v1alpha1.Service{
		{Name: "a", Template: "a", DependsOn: []v1alpha1.ServiceDependsOn{{Name: "b"}}},
		{Name: "b", Template: "b", DependsOn: []v1alpha1.ServiceDependsOn{{Name: "a"}}},
	}}})
	fmt.Println(err)
	// Output:
	// services depend on each other: default/a → default/b → default/a: take one of these dependencies out
}

func ExampleObjectKey() {
	cd := &v1alpha1.ClusterDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "platform", Name: "prod"}}
	mcs := &v1alpha1.MultiClusterService{ObjectMeta: metav1.ObjectMeta{Name: "base"}}
	fmt.Println(serviceset.ObjectKey("system", cd, nil))
	fmt.Println(serviceset.ObjectKey("system", cd, mcs))
	fmt.Println(serviceset.ObjectKey("system", nil, mcs))
	// Output:
	// platform/prod
	// platform/prod.cae662172fd450bb
	// system/management-cae662172fd450bb
}
