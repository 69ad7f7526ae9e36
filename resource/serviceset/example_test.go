package serviceset_test

import (
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
