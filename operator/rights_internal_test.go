package operator

import (
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestRightsNameResourcesAsDefinitionsOrKubernetesDo(t *testing.T) {
	defined := &apiextensionsv1.CustomResourceDefinition{Spec: apiextensionsv1.CustomResourceDefinitionSpec{
		Group: "example.com", Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: "Shelf", Plural: "shelves"},
	}}
	c := &rightsCollector{definitions: []*apiextensionsv1.CustomResourceDefinition{defined}}
	for kind, want := range map[string]string{
		"ConfigMap": "configmaps", "NetworkPolicy": "networkpolicies", "Ingress": "ingresses", "Endpoints": "endpoints",
		"Gateway": "gateways", "APIKey": "apikeys", "Shelf": "shelves",
	} {
		if got := c.resourceOf(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: kind}); got != want {
			t.Errorf("%s: got %s, want %s", kind, got, want)
		}
	}
}
