package fetch_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	helm "helm.sh/helm/v4/pkg/registry"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/content/memory"
	"oras.land/oras-go/v2/registry/remote"

	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/fetch"
)

const fluxLayer = "application/vnd.cncf.flux.content.v1.tar+gzip"

// store is an OCI registry on this machine, for pushing.
type store struct{ *server }

func newStore(t testing.TB) store {
	return store{serve(t, registry.New(registry.Logger(quiet)))}
}

func (s store) host() string { return strings.TrimPrefix(s.URL, "http://") }

// front is another server in front of the registry.
func (s store) front(t testing.TB) http.Handler {
	t.Helper()
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(u)
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	proxy.Transport, proxy.ErrorLog = transport, quiet
	return proxy
}

// pushChart pushes as `helm push` does, and returns the digest of the manifest.
func (s store) pushChart(t testing.TB, repository string, archive []byte, options ...helm.PushOption) string {
	t.Helper()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	client, err := helm.NewClient(helm.ClientOptPlainHTTP(), helm.ClientOptHTTPClient(&http.Client{Transport: transport}),
		helm.ClientOptCredentialsFile(filepath.Join(t.TempDir(), "config.json")))
	if err != nil {
		t.Fatal(err)
	}
	pushed, err := client.Push(archive, s.host()+"/"+repository, append(options, helm.PushOptStrictMode(false))...)
	if err != nil {
		t.Fatal(err)
	}
	return pushed.Manifest.Digest
}

// pushLayers pushes as `oras push` does, and returns the digest of the manifest.
func (s store) pushLayers(t testing.TB, repository, tag, kind string, layers ...[]byte) string {
	t.Helper()
	ctx := t.Context()
	local := memory.New()
	var descriptors []ocispec.Descriptor
	for _, data := range layers {
		d := content.NewDescriptorFromBytes(kind, data)
		if err := local.Push(ctx, d, bytes.NewReader(data)); err != nil {
			t.Fatal(err)
		}
		descriptors = append(descriptors, d)
	}
	manifest, err := oras.PackManifest(ctx, local, oras.PackManifestVersion1_1, "application/vnd.example.files", oras.PackManifestOptions{Layers: descriptors})
	if err != nil {
		t.Fatal(err)
	}
	if err := local.Tag(ctx, manifest, tag); err != nil {
		t.Fatal(err)
	}
	to, err := remote.NewRepository(s.host() + "/" + repository)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	to.PlainHTTP, to.Client = true, &http.Client{Transport: transport}
	if _, err := oras.Copy(ctx, local, tag, to, tag, oras.DefaultCopyOptions); err != nil {
		t.Fatal(err)
	}
	return manifest.Digest.String()
}

// oci is the address of a server as one of a registry.
func oci(s *server) string {
	_, host, _ := strings.Cut(s.URL, "://")
	return "oci://" + host
}

// tokens lets only requests with a token through, which a user and a password get at its /token.
func tokens(user, password string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/token" {
			if u, p, _ := r.BasicAuth(); u != user || p != password {
				http.Error(w, `{"errors":[{"code":"DENIED","message":"not `+p+`"}]}`, http.StatusUnauthorized)
				return
			}
			_, _ = w.Write([]byte(`{"token":"opened"}`))
			return
		}
		if r.Header.Get("Authorization") != "Bearer opened" {
			w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer realm="https://%s/token",service="shop"`, r.Host))
			http.Error(w, "no", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func TestChartOfARegistry(t *testing.T) {
	behind := newStore(t)
	pushed := behind.pushChart(t, "charts/app:1.0.0", chartOf(t, "app", "1.0.0"))
	docker := func(s *server) string {
		return fmt.Sprintf(`{"auths":{%q:{"username":"ann","password":"secret-1"}}}`, strings.TrimPrefix(s.URL, "https://"))
	}
	for name, test := range map[string]struct {
		guard func(string, string, http.Handler) http.Handler
		keys  func(*server) map[string]string
	}{
		"basic":                   {login, func(*server) map[string]string { return map[string]string{"username": "ann", "password": "secret-1"} }},
		"login for a token":       {tokens, func(*server) map[string]string { return map[string]string{"username": "ann", "password": "secret-1"} }},
		"token":                   {tokens, func(*server) map[string]string { return map[string]string{"token": "opened\n"} }},
		"docker":                  {login, func(s *server) map[string]string { return map[string]string{".dockerconfigjson": docker(s)} }},
		"docker, login for token": {tokens, func(s *server) map[string]string { return map[string]string{".dockerconfigjson": docker(s)} }},
	} {
		t.Run(name, func(t *testing.T) {
			s := serveTLS(t, test.guard("ann", "secret-1", behind.front(t)))
			keys := test.keys(s)
			keys["ca.crt"] = s.ca()
			f := newFetcher(t, fetch.Config{})
			for range 2 {
				c, err := f.Chart(t.Context(), chart(oci(s)+"/charts"), secret(t, keys))
				if err != nil {
					t.Fatal(err)
				}
				if c.Name() != "app" || c.Digest != pushed {
					t.Errorf("got %s with %s: want app with %s", c.Name(), c.Digest, pushed)
				}
			}
			asked := s.asked("")
			if _, err := f.Chart(t.Context(), chart(oci(s)+"/charts"), secret(t, keys)); err != nil || s.asked("") != asked {
				t.Errorf("a chart that is in the cache was asked for: %v", err)
			}
		})
	}
}

func TestRegistryOnThisMachineNeedsNoTLS(t *testing.T) {
	s := newStore(t)
	s.pushChart(t, "app:1.0.0", chartOf(t, "app", "1.0.0"))
	if _, err := newFetcher(t, fetch.Config{}).Chart(t.Context(), chart(oci(s.server)), fetch.Credentials{}); err != nil {
		t.Fatal(err)
	}
}

func TestVersionWithAPlus(t *testing.T) {
	s := newStore(t)
	s.pushChart(t, "app:1.0.0+build.1", chartOf(t, "app", "1.0.0+build.1"))
	from := chart(oci(s.server))
	from.Version = "1.0.0+build.1"
	if _, err := newFetcher(t, fetch.Config{}).Chart(t.Context(), from, fetch.Credentials{}); err != nil {
		t.Fatal(err)
	}
	from.Version = "1.0.0+build.2"
	_, err := newFetcher(t, fetch.Config{}).Chart(t.Context(), from, fetch.Credentials{})
	fails(t, err, fetch.ErrNotFound, false, "1.0.0+build.1")
}

func TestAnIndexMayNameARegistry(t *testing.T) {
	charts := newStore(t)
	pushed := charts.pushChart(t, "charts/app:1.0.0", chartOf(t, "app", "1.0.0"))
	s := serve(t, login("ann", "secret-1", site{"/index.yaml": fmt.Appendf(nil,
		"entries: {app: [{version: 1.0.0, urls: ['%s/charts/app:1.0.0']}]}", oci(charts.server))}))
	c, err := newFetcher(t, fetch.Config{}).Chart(t.Context(), chart(s.URL), secret(t, map[string]string{"username": "ann", "password": "secret-1"}))
	if err != nil {
		t.Fatal(err)
	}
	if c.Digest != pushed {
		t.Errorf("got %s: want %s", c.Digest, pushed)
	}
	if logins := strings.Join(charts.loggedIn(), ""); logins != "" {
		t.Errorf("the registry got the credentials of the repository: %s", logins)
	}
}

func TestFaultsOfARegistry(t *testing.T) {
	s := newStore(t)
	archive := chartOf(t, "app", "1.0.0")
	for _, version := range []string{"0.8.0", "0.9.0", "1.1.0", "2.0.0"} {
		s.pushChart(t, "some/app:"+version, chartOf(t, "app", version))
	}
	s.pushChart(t, "renamed/app:1.0.0", chartOf(t, "ape", "1.0.0"))
	s.pushLayers(t, "files/app", "1.0.0", fluxLayer, archive)
	s.pushChart(t, "broken/app:1.0.0", archive)
	s.pushChart(t, "large/app:1.0.0", chartOf(t, "app", "1.0.0", entry{name: "app/noise", data: noise(20 << 10)}))
	for name, test := range map[string]struct {
		folder    string
		class     error
		permanent bool
		says      []string
	}{
		"no version":           {"some", fetch.ErrNotFound, false, []string{"0.8.0, 0.9.0, 1.1.0, 2.0.0"}},
		"no chart":             {"none", fetch.ErrNotFound, false, []string{"the registry does not have it"}},
		"another chart":        {"renamed", fetch.ErrInvalid, true, []string{`the chart "ape"`}},
		"an artifact of files": {"files", fetch.ErrInvalid, true, []string{"no chart, but an artifact", "helm push"}},
		"too large":            {"large", fetch.ErrTooLarge, true, []string{"the limit is 16.0 KiB", "raise Limits.Download"}},
		"no name":              {"No Name", fetch.ErrInvalid, true, []string{"no reference"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFetcher(t, fetch.Config{Limits: fetch.Limits{Download: 16 << 10}})
			_, err := f.Chart(t.Context(), chart(oci(s.server)+"/"+test.folder), fetch.Credentials{})
			fails(t, err, test.class, test.permanent, test.says...)
		})
	}
}

func TestMovedTag(t *testing.T) {
	s := newStore(t)
	first := s.pushChart(t, "app:1.0.0", chartOf(t, "app", "1.0.0"))
	folder := t.TempDir()
	trusting, asking := newFetcher(t, fetch.Config{Folder: folder}), newFetcher(t, fetch.Config{Folder: folder, Trust: -1})
	get := func(f *fetch.Fetcher, pinned, want string) {
		t.Helper()
		from := chart(oci(s.server))
		from.Digest = pinned
		c, err := f.Chart(t.Context(), from, fetch.Credentials{})
		if err != nil {
			t.Fatal(err)
		}
		if c.Digest != want {
			t.Errorf("got %s: want %s", c.Digest, want)
		}
	}
	get(trusting, "", first)
	second := s.pushChart(t, "app:1.0.0", chartOf(t, "app", "1.0.0", entry{name: "app/more"}))
	get(trusting, "", first)
	get(asking, "", second)
	before := s.asked("GET")
	get(asking, "", second)
	if n := s.asked("GET") - before; n != 0 {
		t.Errorf("a tag that has not moved took %d requests beyond HEAD", n)
	}
	get(trusting, "", second)
	get(asking, first, first)

	from := chart(oci(s.server))
	from.Digest = digest([]byte("never"))
	_, err := asking.Chart(t.Context(), from, fetch.Credentials{})
	fails(t, err, fetch.ErrDigest, true, from.Digest, second)
}

func TestFilesOfARegistry(t *testing.T) {
	s := newStore(t)
	archive := pack(t, entry{name: "base/kustomization.yaml", data: "resources: []"})
	plain := unzip(t, archive)
	for name, test := range map[string]struct {
		kind   string
		layers [][]byte
		says   string
	}{
		"flux":           {fluxLayer, [][]byte{archive}, ""},
		"not compressed": {"application/vnd.oci.image.layer.v1.tar", [][]byte{plain}, ""},
		"any type":       {"application/octet-stream", [][]byte{archive}, ""},
		"two archives":   {fluxLayer, [][]byte{archive, plain}, "has 2"},
		"no archive":     {"text/plain", [][]byte{[]byte("a"), []byte("b")}, "has 0"},
	} {
		t.Run(name, func(t *testing.T) {
			repository := "files/" + strings.ReplaceAll(name, " ", "-")
			pushed := s.pushLayers(t, repository, "v1", test.kind, test.layers...)
			for _, from := range []v1alpha1.Artifact{
				{URL: oci(s.server) + "/" + repository + ":v1"},
				{URL: oci(s.server) + "/" + repository, Digest: pushed},
				{URL: oci(s.server) + "/" + repository + "@" + pushed},
			} {
				files, err := newFetcher(t, fetch.Config{}).Files(t.Context(), from, fetch.Credentials{})
				if test.says != "" {
					fails(t, err, fetch.ErrInvalid, true, test.says)
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				if files.Digest != pushed {
					t.Errorf("the digest is %s: want %s", files.Digest, pushed)
				}
				contains(t, files, map[string]string{"base/kustomization.yaml": "resources: []"})
			}
		})
	}
	_, err := newFetcher(t, fetch.Config{}).Files(t.Context(), v1alpha1.Artifact{URL: oci(s.server) + "/files/flux"}, fetch.Credentials{})
	fails(t, err, fetch.ErrInvalid, true, "add :tag")
}
