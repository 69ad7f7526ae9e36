package helm_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"log"
	"maps"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
	helmregistry "helm.sh/helm/v4/pkg/registry"

	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/artifact"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/fetch"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/helm"
)

// fetched is a carrier.Source of a chart in a registry.
type fetched struct {
	source
	fetcher *fetch.Fetcher
	from    v1alpha1.HelmChart
}

func (f fetched) Chart(ctx context.Context) (*artifact.Chart, error) {
	return f.fetcher.Chart(ctx, f.from, fetch.Credentials{})
}

func TestAChartComesFromARegistry(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	address := strings.TrimPrefix(server.URL, "http://")
	pusher, err := helmregistry.NewClient(helmregistry.ClientOptPlainHTTP(), helmregistry.ClientOptWriter(io.Discard))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pusher.Push(packed(t, "page", pageChart("1.0.0")), address+"/charts/page:1.0.0"); err != nil {
		t.Fatal(err)
	}
	fetcher, err := fetch.New(fetch.Config{Folder: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	k := newKit(t, helm.Config{})
	k.settle(k.service(pageChart("1.0.0"), func(s *carrier.Service) {
		s.Source = fetched{fetcher: fetcher, from: v1alpha1.HelmChart{Repository: "oci://" + address + "/charts", Chart: "page", Version: "1.0.0"}}
		s.Fingerprint = "pushed"
	}))
	equal(t, "helm list", k.listed(), []string{"web 1 deployed page-1.0.0"})
	if chart := k.list()[0].Chart; len(chart.Templates) != 1 || chart.Values["text"] != "hello" {
		t.Errorf("the release does not have the whole chart: %+v", chart)
	}
}

// packed is a chart as `helm package` makes it.
func packed(t *testing.T, name string, chart files) []byte {
	t.Helper()
	var buffer bytes.Buffer
	zipped := gzip.NewWriter(&buffer)
	writer := tar.NewWriter(zipped)
	for _, file := range slices.Sorted(maps.Keys(chart)) {
		header := &tar.Header{Name: name + "/" + file, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(chart[file]))}
		if err := writer.WriteHeader(header); err != nil {
			t.Fatal(err)
		}
		if _, err := writer.Write([]byte(chart[file])); err != nil {
			t.Fatal(err)
		}
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	if err := zipped.Close(); err != nil {
		t.Fatal(err)
	}
	return buffer.Bytes()
}
