package native_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
	helmregistry "helm.sh/helm/v4/pkg/registry"

	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/helm"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/manifest"
)

// files are those of an archive, by name.
type files map[string]string

// pack returns a compressed tar archive.
func pack(t testing.TB, content files) []byte {
	t.Helper()
	var buffer bytes.Buffer
	zipped := gzip.NewWriter(&buffer)
	archive := tar.NewWriter(zipped)
	for _, name := range slices.Sorted(maps.Keys(content)) {
		err := archive.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Size: int64(len(content[name])), Mode: 0o644})
		if err == nil {
			_, err = archive.Write([]byte(content[name]))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(archive.Close(), zipped.Close()); err != nil {
		t.Fatal(err)
	}
	return buffer.Bytes()
}

const pageTemplate = `apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}-page
data:
  version: {{ .Chart.Version | quote }}
  title: {{ .Values.title | quote }}
`

// chartOf returns a chart with a ConfigMap that shows its version and its value title, and with further templates.
func chartOf(t testing.TB, name, version string, further files) []byte {
	t.Helper()
	content := files{
		name + "/Chart.yaml":          fmt.Sprintf("apiVersion: v2\nname: %s\nversion: %s\n", name, version),
		name + "/values.yaml":         "title: hello\n",
		name + "/templates/page.yaml": pageTemplate,
	}
	for file, text := range further {
		content[name+"/"+file] = text
	}
	return pack(t, content)
}

func digestOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// repository is a chart repository with archives, whose names are their paths, and with a file files.tgz for each of the others.
func repository(archives map[string][]byte) http.Handler {
	index, last := "apiVersion: v1\nentries:\n", ""
	for _, name := range slices.Sorted(maps.Keys(archives)) {
		chart, version, ok := strings.Cut(strings.TrimSuffix(name, ".tgz"), "-")
		if !ok {
			continue
		}
		if chart != last {
			index += fmt.Sprintf("  %s:\n", chart)
			last = chart
		}
		index += fmt.Sprintf("  - name: %s\n    version: %s\n    urls: [%s]\n    digest: %s\n", chart, version, name, digestOf(archives[name]))
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		data, ok := archives[strings.TrimPrefix(r.URL.Path, "/")]
		if r.URL.Path == "/index.yaml" {
			data, ok = []byte(index), true
		}
		if !ok {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(data)
	})
}

var quietLog = log.New(io.Discard, "", 0)

func serve(t testing.TB, tls bool, handler http.Handler) *httptest.Server {
	t.Helper()
	s := httptest.NewUnstartedServer(handler)
	s.Config.ErrorLog = quietLog
	if tls {
		s.StartTLS()
	} else {
		s.Start()
	}
	t.Cleanup(s.Close)
	return s
}

// login lets only requests with a user and a password through.
func login(user, password string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if u, p, _ := r.BasicAuth(); u != user || p != password {
			w.Header().Set("WWW-Authenticate", `Basic realm="shop"`)
			http.Error(w, "you said "+p, http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func certificate(s *httptest.Server) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
}

// push pushes a chart into a registry as `helm push` does, and returns the digest of the manifest.
func push(t testing.TB, host string, archive []byte, name, version string) string {
	t.Helper()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	c, err := helmregistry.NewClient(helmregistry.ClientOptPlainHTTP(), helmregistry.ClientOptHTTPClient(&http.Client{Transport: transport}),
		helmregistry.ClientOptCredentialsFile(filepath.Join(t.TempDir(), "config.json")))
	if err != nil {
		t.Fatal(err)
	}
	pushed, err := c.Push(archive, fmt.Sprintf("%s/charts/%s:%s", host, name, version))
	if err != nil {
		t.Fatal(err)
	}
	return pushed.Manifest.Digest
}

func newRegistry() http.Handler { return registry.New(registry.Logger(quietLog)) }

// newPlatform is a world with the real carriers.
func newPlatform(t *testing.T) *world {
	t.Helper()
	charts, err := helm.New(helm.Config{})
	if err != nil {
		t.Fatal(err)
	}
	manifests, err := manifest.New(manifest.Config{})
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, charts, manifests)
	return w
}

// charts serves charts without TLS, and makes a template "name-version" for each.
func (w *world) charts(archives map[string][]byte) {
	w.t.Helper()
	w.countedCharts(archives)
}

// countedCharts is charts, and counts the requests.
func (w *world) countedCharts(archives map[string][]byte) *atomic.Int64 {
	w.t.Helper()
	requests, next := &atomic.Int64{}, repository(archives)
	s := serve(w.t, false, http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		next.ServeHTTP(out, r)
	}))
	for name := range archives {
		chart, version, _ := strings.Cut(strings.TrimSuffix(name, ".tgz"), "-")
		w.template(strings.TrimSuffix(name, ".tgz"), v1alpha1.ServiceTemplateSpec{Helm: &v1alpha1.HelmChart{Repository: s.URL, Chart: chart, Version: version}})
	}
	return requests
}

// manifests makes a template of manifests in a ConfigMap.
func (w *world) manifests(name, text string) {
	w.t.Helper()
	w.configMap(name, map[string]string{"all.yaml": text})
	w.template(name, v1alpha1.ServiceTemplateSpec{Resources: &v1alpha1.FileSource{LocalSource: &v1alpha1.LocalSource{Kind: "ConfigMap", Name: name}}})
}

// configMapText is a manifest of a ConfigMap.
func configMapText(name, text string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: %s\ndata:\n  text: %q\n---\n", name, text)
}
