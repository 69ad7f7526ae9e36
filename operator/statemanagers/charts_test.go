package statemanagers_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// chartVersions are those of the chart "page".
var chartVersions = []string{"1.0.0", "2.0.0", "3.0.0"}

// serveCharts serves a chart repository until the test ends, and returns its address.
func serveCharts(t testing.TB) string {
	t.Helper()
	files := map[string][]byte{}
	var index strings.Builder
	index.WriteString("apiVersion: v1\nentries:\n  page:\n")
	for _, version := range chartVersions {
		archive := pack(t, pageChart(version))
		name := "page-" + version + ".tgz"
		files["/"+name] = archive
		sum := sha256.Sum256(archive)
		fmt.Fprintf(&index, "    - {apiVersion: v2, name: page, version: %s, urls: [%s], digest: %s}\n", version, name, hex.EncodeToString(sum[:]))
	}
	files["/index.yaml"] = []byte(index.String())
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		data, ok := files[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(data)
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.Start()
	t.Cleanup(server.Close)
	return server.URL
}

// pageChart is a chart with a ConfigMap and a Service.
func pageChart(version string) map[string]string {
	return map[string]string{
		"page/Chart.yaml":         fmt.Sprintf("apiVersion: v2\nname: page\nversion: %s\n", version),
		"page/values.yaml":        "text: hello\npassword: \"\"\n",
		"page/values.schema.json": `{"type": "object", "properties": {"text": {"type": "string"}}}`,
		"page/templates/page.yaml": `apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Release.Name }}}
data: {text: {{ .Values.text | quote }}, version: "` + version + `"}
---
apiVersion: v1
kind: Secret
metadata: {name: {{ .Release.Name }}}
stringData: {password: {{ .Values.password | quote }}}
`,
	}
}

// pack returns a compressed tar archive.
func pack(t testing.TB, files map[string]string) []byte {
	t.Helper()
	var buffer bytes.Buffer
	zipped := gzip.NewWriter(&buffer)
	archive := tar.NewWriter(zipped)
	for name, data := range files {
		if err := archive.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Size: int64(len(data)), Mode: 0o644}); err != nil {
			t.Fatal(err)
		}
		if _, err := archive.Write([]byte(data)); err != nil {
			t.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	if err := zipped.Close(); err != nil {
		t.Fatal(err)
	}
	return buffer.Bytes()
}

// pageTemplate is a template of the chart.
func pageTemplate(charts, version string) *v1alpha1.ServiceTemplate {
	return &v1alpha1.ServiceTemplate{
		ObjectMeta: metav1.ObjectMeta{Name: "page-" + version},
		Spec:       v1alpha1.ServiceTemplateSpec{Helm: &v1alpha1.HelmChart{Repository: charts, Chart: "page", Version: version}},
	}
}

// filesTemplate is a template of manifests in the ConfigMap name-files.
func filesTemplate(name string) *v1alpha1.ServiceTemplate {
	return &v1alpha1.ServiceTemplate{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.ServiceTemplateSpec{Version: "1.0.0", Resources: &v1alpha1.FileSource{
			LocalSource: &v1alpha1.LocalSource{Kind: "ConfigMap", Name: name + "-files"},
		}},
	}
}

// kustomizeTemplate is one of a kustomization.
func kustomizeTemplate(name string) *v1alpha1.ServiceTemplate {
	template := filesTemplate(name)
	template.Spec.Kustomize, template.Spec.Resources = template.Spec.Resources, nil
	return template
}
