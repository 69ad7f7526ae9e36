package operatortest_test

import (
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/operatorkit/operatorkit/operator/operatortest"
)

func TestOwnedObjectsGoWithTheirOwner(t *testing.T) {
	t.Parallel()
	kube := operatortest.Start(t)
	client := newClient(t, kube.RESTConfig())
	for _, policy := range []metav1.DeletionPropagation{metav1.DeletePropagationBackground, metav1.DeletePropagationForeground} {
		t.Run(string(policy), func(t *testing.T) {
			namespace := kube.Namespace(t)
			maps := client.CoreV1().ConfigMaps(namespace)
			owner := createConfigMap(t, client, namespace, "owner")
			block := true
			createConfigMap(t, client, namespace, "owned", metav1.OwnerReference{
				APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID, BlockOwnerDeletion: &block,
			})
			createConfigMap(t, client, namespace, "unrelated")

			if err := maps.Delete(t.Context(), owner.Name, metav1.DeleteOptions{PropagationPolicy: &policy}); err != nil {
				t.Fatal(err)
			}

			for _, name := range []string{"owner", "owned"} {
				operatortest.Eventually(t, name+" is gone", func() bool { return configMapGone(t, client, namespace, name) })
			}
			if configMapGone(t, client, namespace, "unrelated") {
				t.Error("an object without owner is gone, too")
			}
		})
	}
}

func TestObjectsOwnedByAKindThatIsNewGoWithTheirOwner(t *testing.T) {
	t.Parallel()
	kube := operatortest.Start(t)
	client := newClient(t, kube.RESTConfig())
	namespace := kube.Namespace(t)
	kube.InstallCRDs(t, definition("gadgets", "Gadget", "v1"))
	gadgets := gadgetClient(t, kube.RESTConfig(), "v1").Namespace(namespace)
	owner, err := gadgets.Create(t.Context(), gadget("v1"), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	createConfigMap(t, client, namespace, "owned", metav1.OwnerReference{
		APIVersion: owner.GetAPIVersion(), Kind: owner.GetKind(), Name: owner.GetName(), UID: owner.GetUID(),
	})

	if err := gadgets.Delete(t.Context(), owner.GetName(), metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}

	operatortest.Eventually(t, "the owned object is gone", func() bool { return configMapGone(t, client, namespace, "owned") })
}

func configMapGone(t *testing.T, client kubernetes.Interface, namespace, name string) bool {
	t.Helper()
	_, err := client.CoreV1().ConfigMaps(namespace).Get(t.Context(), name, metav1.GetOptions{})
	return apierrors.IsNotFound(err)
}

// definition of a kind in the group test.operatorkit.io that takes any fields.
func definition(plural, kind string, versions ...string) *apiextensionsv1.CustomResourceDefinition {
	const group = "test.operatorkit.io"
	anything := true
	d := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: plural + "." + group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group,
			Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: plural, Kind: kind},
		},
	}
	for i, version := range versions {
		d.Spec.Versions = append(d.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{
			Name: version, Served: true, Storage: i == 0,
			Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
				Type: "object", XPreserveUnknownFields: &anything,
			}},
		})
	}
	return d
}

func gadget(version string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "test.operatorkit.io/" + version, "kind": "Gadget",
		"metadata": map[string]any{"name": "one"},
	}}
}

func gadgetClient(t *testing.T, config *rest.Config, version string) dynamic.NamespaceableResourceInterface {
	t.Helper()
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { utilnet.CloseIdleConnectionsFor(httpClient.Transport) })
	client, err := dynamic.NewForConfigAndClient(config, httpClient)
	if err != nil {
		t.Fatal(err)
	}
	return client.Resource(schema.GroupVersionResource{Group: "test.operatorkit.io", Version: version, Resource: "gadgets"})
}
