package platform_test

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/examples/internal/demotest"
	"github.com/operatorkit/operatorkit/examples/internal/pictures"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/resource/serviceset"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// TestPictures shows the platform after its story, with one more version of the gateway that nobody has published.
func TestPictures(t *testing.T) {
	b := pictures.New(t)
	d := demotest.Start(t)
	set := askForAnUnpublishedGateway(t, d.Kubeconfig)
	b.Take("platform-graph", d.Page+"inspector/object?framework=clusterdeployments.services.operatorkit.io&namespace=platform&name=eu", 900)
	b.Take("platform-object", d.Page+"inspector/object?framework="+setsFramework+"&namespace="+set.Namespace+"&name="+set.Name, 900)
}

// setsFramework is the name of the framework of ServiceSets.
const setsFramework = "statemanager-native"

// askForAnUnpublishedGateway wants a version of the gateway that is not in the registry, and a change of shop, which has to
// wait for it. It returns the ServiceSet of a cluster.
func askForAnUnpublishedGateway(t *testing.T, kubeconfig string) *v1alpha1.ServiceSet {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c := operatortest.NewClient(t, config, scheme)
	ctx := t.Context()
	template := &v1alpha1.ServiceTemplate{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: "platform", Name: "gateway-2-1-1"}, template); err != nil {
		t.Fatal(err)
	}
	helm := *template.Spec.Helm
	helm.Version = "2.2.0"
	next := &v1alpha1.ServiceTemplate{
		ObjectMeta: metav1.ObjectMeta{Namespace: "platform", Name: "gateway-2-2-0"},
		Spec:       v1alpha1.ServiceTemplateSpec{Helm: &helm},
	}
	if err := c.Create(ctx, next); err != nil {
		t.Fatal(err)
	}
	chain := &v1alpha1.ServiceTemplateChain{}
	edit(t, c, client.ObjectKey{Namespace: "platform", Name: "gateway"}, chain, func() {
		templates := &chain.Spec.SupportedTemplates
		(*templates)[len(*templates)-1].AvailableUpgrades = []v1alpha1.AvailableUpgrade{{Name: next.Name}}
		*templates = append(*templates, v1alpha1.SupportedTemplate{Name: next.Name})
	})
	services := &v1alpha1.MultiClusterService{}
	edit(t, c, client.ObjectKey{Name: "platform"}, services, func() {
		list := services.Spec.ServiceSpec.Services
		for i := range list {
			switch list[i].Name {
			case "gateway":
				list[i].Template = next.Name
			case "shop":
				list[i].Values = "{title: The new shop, host: shop.example.com}"
			}
		}
	})
	eu := &v1alpha1.ClusterDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "platform", Name: "eu"}}
	set := &v1alpha1.ServiceSet{}
	operatortest.Eventually(t, "the gateway has failed", func() error {
		if err := c.Get(ctx, serviceset.ObjectKey("", eu, services), set); err != nil {
			return err
		}
		for _, s := range set.Status.Services {
			if s.Name == "gateway" && s.State == v1alpha1.ServiceStateFailed {
				return nil
			}
		}
		return fmt.Errorf("its state is %v", set.Status.Services)
	})
	return set
}

// edit changes an object.
func edit(t *testing.T, c client.Client, key client.ObjectKey, obj client.Object, change func()) {
	t.Helper()
	if err := c.Get(t.Context(), key, obj); err != nil {
		t.Fatal(err)
	}
	before := obj.DeepCopyObject().(client.Object)
	change()
	if err := c.Patch(t.Context(), obj, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
}
