package platform_test

import (
	"io"
	"log"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"

	"github.com/operatorkit/operatorkit/examples/platform"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/fetch"
)

// TestEveryTemplateCanBeFetched holds that templates and charts fit together.
func TestEveryTemplateCanBeFetched(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	host := strings.TrimPrefix(server.URL, "http://")
	published, err := platform.PublishCharts(t.Context(), host)
	if err != nil {
		t.Fatal(err)
	}
	fetcher, err := fetch.New(fetch.Config{Folder: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	catalog, err := platform.Catalog("platform", host)
	if err != nil {
		t.Fatal(err)
	}
	fetched := 0
	for _, obj := range catalog {
		template, ok := obj.(*v1alpha1.ServiceTemplate)
		if !ok || template.Spec.Helm == nil {
			continue
		}
		chart, err := fetcher.Chart(t.Context(), *template.Spec.Helm, fetch.Credentials{})
		if err != nil {
			t.Errorf("template %s: %v", template.Name, err)
			continue
		}
		fetched++
		t.Logf("%s: %s", template.Name, chart.Metadata.Description)
	}
	if fetched != published {
		t.Errorf("%d charts are published, but %d templates name one", published, fetched)
	}
}
