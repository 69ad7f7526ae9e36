package namespaces_test

import (
	"strings"
	"testing"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/clusteraccess/namespaces"
)

func TestWhoAsksFollowsFromTheNamespace(t *testing.T) {
	layout, err := namespaces.Layout{}.Complete()
	if err != nil || layout.Clusters != namespaces.DefaultClusters {
		t.Fatalf("the defaults are %+v, %v", layout, err)
	}
	for namespace, want := range map[string]string{
		namespaces.Of("postgres"): "postgres", "provider-a-b": "a-b", "provider-": "", "provider": "", "postgres": "", "": "",
		"my-provider-postgres": "", namespaces.DefaultClusters: "",
	} {
		if got := layout.Provider(namespace); got != want {
			t.Errorf("namespace %q is of provider %q, want %q", namespace, got, want)
		}
	}
}

func TestTheClustersAreInNoNamespaceOfAProvider(t *testing.T) {
	for _, layout := range []namespaces.Layout{
		{Clusters: namespaces.Of("postgres")},
		{Provider: func(namespace string) string { return namespace }},
	} {
		if _, err := layout.Complete(); !framework.IsInvalidConfig(err) || !strings.Contains(err.Error(), "choose another one") {
			t.Errorf("err = %v", err)
		}
	}
	if _, err := (namespaces.Layout{Clusters: "No"}).Complete(); !framework.IsInvalidConfig(err) {
		t.Errorf("err = %v", err)
	}
}
