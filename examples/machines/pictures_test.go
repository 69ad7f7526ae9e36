package machines_test

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/examples/internal/demotest"
	"github.com/operatorkit/operatorkit/examples/internal/pictures"
	example "github.com/operatorkit/operatorkit/examples/machines"
	"github.com/operatorkit/operatorkit/framework/identity"
	"github.com/operatorkit/operatorkit/operator/machines"
	"github.com/operatorkit/operatorkit/operator/machines/v1alpha1"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/resource/deployment/api"
	"github.com/operatorkit/operatorkit/resource/deployment/docker"
)

// TestPictures shows the service in the middle of an update, after its story.
func TestPictures(t *testing.T) {
	b := pictures.New(t)
	d := demotest.Start(t)
	config, err := clientcmd.BuildConfigFromFlags("", d.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c := operatortest.NewClient(t, config, scheme)
	shop := &v1alpha1.MachineService{ObjectMeta: metav1.ObjectMeta{Namespace: "machines", Name: "shop"}}
	// It starts, and is waited for until it works, which it never does.
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"container":{"image":"shop:bad"}}}`))
	if err := c.Patch(t.Context(), shop, patch); err != nil {
		t.Fatal(err)
	}
	engines := connect(t, c)
	ctx := identity.NewContext(t.Context(), &identity.Scope{Identity: machines.ServicesOf(example.Name)})
	operatortest.Eventually(t, "containers of the next version have started", func() bool {
		starting, err := engines.InspectService(ctx, shop.Name)
		return err == nil && slices.ContainsFunc(starting.Containers, func(c api.Container) bool {
			return c.Spec.Container.Image == "shop:bad" && c.State == api.ContainerRunning
		})
	})
	b.Take("machines-graph", d.Page+"inspector/object?framework=machineservices&namespace=machines&name=shop", 1080)
}

// connect returns a client of the engines of all Machines.
func connect(t *testing.T, c client.Client) *docker.Client {
	t.Helper()
	list := &v1alpha1.MachineList{}
	if err := c.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	config := docker.Config{Cluster: "machines"}
	for i := range list.Items {
		m := &list.Items[i]
		config.Machines = append(config.Machines, docker.Machine{ID: m.Name, Name: m.Name, Endpoint: docker.Endpoint{Host: m.Spec.Address}})
	}
	engines, err := docker.New(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = engines.Close() })
	return engines
}
