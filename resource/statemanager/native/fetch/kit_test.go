package fetch_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/fetch"
)

// newFetcher returns a fetcher with a cache of its own, unless the configuration names one.
func newFetcher(t testing.TB, config fetch.Config) *fetch.Fetcher {
	t.Helper()
	if config.Folder == "" {
		config.Folder = t.TempDir()
	}
	f, err := fetch.New(config)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// secret returns credentials with these keys.
func secret(t testing.TB, data map[string]string) fetch.Credentials {
	t.Helper()
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "login"}, Data: map[string][]byte{}}
	for key, value := range data {
		s.Data[key] = []byte(value)
	}
	c, err := fetch.CredentialsFromSecret(s)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// entry is one of a tar archive.
type entry struct {
	name, data, link string
	kind             byte
}

// pack returns a compressed tar archive.
func pack(t testing.TB, entries ...entry) []byte {
	t.Helper()
	var buffer bytes.Buffer
	zipped := gzip.NewWriter(&buffer)
	archive := tar.NewWriter(zipped)
	for _, e := range entries {
		if e.kind == 0 {
			e.kind = tar.TypeReg
		}
		header := &tar.Header{Name: e.name, Typeflag: e.kind, Linkname: e.link, Size: int64(len(e.data)), Mode: 0o644}
		if e.kind == tar.TypeXGlobalHeader {
			// As `git archive` begins.
			header = &tar.Header{Name: e.name, Typeflag: e.kind, PAXRecords: map[string]string{"comment": "a commit"}}
		}
		err := archive.WriteHeader(header)
		if err == nil {
			_, err = archive.Write([]byte(e.data))
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

// chartOf returns the archive of a chart with further entries.
func chartOf(t testing.TB, name, version string, further ...entry) []byte {
	t.Helper()
	files := []entry{
		{name: name + "/Chart.yaml", data: fmt.Sprintf("apiVersion: v2\nname: %s\nversion: %s\n", name, version)},
		{name: name + "/values.yaml", data: "replicas: 1\n"},
		{name: name + "/templates/page.yaml", data: "kind: ConfigMap\n"},
	}
	return pack(t, append(files, further...)...)
}

// noise is data that does not compress.
func noise(n int) string {
	data := make([]byte, n)
	random := rand.New(rand.NewPCG(1, 2))
	for i := range data {
		data[i] = byte(random.Uint32())
	}
	return string(data)
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// server is a web server that counts what it is asked for.
type server struct {
	*httptest.Server
	mu       sync.Mutex
	handler  http.Handler
	requests map[string]int
	logins   []string
}

func serve(t testing.TB, handler http.Handler) *server {
	return start(t, handler, (*httptest.Server).Start)
}

func serveTLS(t testing.TB, handler http.Handler) *server {
	return start(t, handler, (*httptest.Server).StartTLS)
}

func start(t testing.TB, handler http.Handler, run func(*httptest.Server)) *server {
	s := &server{handler: handler, requests: map[string]int{}}
	s.Server = httptest.NewUnstartedServer(s)
	s.Config.ErrorLog = quiet
	run(s.Server)
	t.Cleanup(s.Close)
	return s
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.requests[r.Method+" "+r.URL.Path]++
	s.logins = append(s.logins, r.Header.Get("Authorization"))
	handler := s.handler
	s.mu.Unlock()
	handler.ServeHTTP(w, r)
}

// become changes what the server answers.
func (s *server) become(handler http.Handler) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.handler = handler
}

// asked is how often something whose method and path have this in them was asked for.
func (s *server) asked(part string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for request, times := range s.requests {
		if strings.Contains(request, part) {
			n += times
		}
	}
	return n
}

// loggedIn is what the requests logged in with.
func (s *server) loggedIn() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.logins)
}

// ca is the certificate to trust for a server with TLS.
func (s *server) ca() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
}

// login lets only requests with a user and a password through.
func login(user, password string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		u, p, _ := r.BasicAuth()
		if u != user || p != password {
			w.Header().Set("WWW-Authenticate", `Basic realm="shop"`)
			http.Error(w, "you said "+p, http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// site is a web server's content by path, with ETags.
type site map[string][]byte

func (s site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	data, ok := s[r.URL.Path]
	if !ok {
		http.NotFound(w, r)
		return
	}
	tag := `"` + digest(data) + `"`
	w.Header().Set("ETag", tag)
	if r.Header.Get("If-None-Match") == tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	_, _ = w.Write(data)
}

// with returns the site with one file more.
func (s site) with(path string, data []byte) site {
	s = maps.Clone(s)
	s[path] = data
	return s
}

// repository returns a chart repository with archives, whose names are their paths.
func repository(archives map[string][]byte) site {
	s := site{}
	index := "apiVersion: v1\nentries:\n"
	for _, name := range slices.Sorted(maps.Keys(archives)) {
		s["/"+name] = archives[name]
		i := strings.LastIndex(name, "-")
		index += fmt.Sprintf("  %s:\n  - name: %s\n    version: %s\n    urls: [%s]\n    digest: %s\n", name[:i], name[:i],
			strings.TrimSuffix(name[i+1:], ".tgz"), name, strings.TrimPrefix(digest(archives[name]), "sha256:"))
	}
	s["/index.yaml"] = []byte(index)
	return s
}

// chart names version 1.0.0 of the chart app.
func chart(repository string) v1alpha1.HelmChart {
	return v1alpha1.HelmChart{Repository: repository, Chart: "app", Version: "1.0.0"}
}

// fails checks the class of an error, whether it is permanent, and parts of its text.
func fails(t *testing.T, err, class error, permanent bool, parts ...string) {
	t.Helper()
	if !errors.Is(err, class) {
		t.Fatalf("the error is %v, and not of the class %q", err, class)
	}
	if fetch.Permanent(err) != permanent {
		t.Errorf("permanent is %t: %v", !permanent, err)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the error says nothing of %q: %v", part, err)
		}
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("the error has more than one line: %v", err)
	}
}
