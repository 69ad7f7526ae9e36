package fetch_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"strings"
	"testing"

	"github.com/operatorkit/operatorkit/resource/statemanager/native/artifact"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/fetch"
)

var quiet = log.New(io.Discard, "", 0)

func TestChartOfARepository(t *testing.T) {
	archive := chartOf(t, "app", "1.0.0")
	s := serveTLS(t, login("ann", "secret-1", repository(map[string][]byte{"app-1.0.0.tgz": archive})))
	f := newFetcher(t, fetch.Config{})
	with := secret(t, map[string]string{"username": "ann", "password": "secret-1", "ca.crt": s.ca()})
	var before *artifact.Chart
	for range 2 {
		c, err := f.Chart(t.Context(), chart(s.URL), with)
		if err != nil {
			t.Fatal(err)
		}
		if c.Name() != "app" || c.Metadata.Version != "1.0.0" || len(c.Templates) != 1 || c.Digest != digest(archive) {
			t.Errorf("got %s %s with %d templates, %s", c.Name(), c.Metadata.Version, len(c.Templates), c.Digest)
		}
		if before != nil && before.Chart == c.Chart {
			t.Error("two calls returned the same chart")
		}
		before = c
	}
	if n := s.asked("GET"); n != 2 {
		t.Errorf("two charts took %d requests: want one for the index and one for the archive", n)
	}
}

func TestVersionsAreComparedAsVersions(t *testing.T) {
	s := serve(t, repository(map[string][]byte{"app-v1.0.0.tgz": chartOf(t, "app", "v1.0.0")}))
	if _, err := newFetcher(t, fetch.Config{}).Chart(t.Context(), chart(s.URL), fetch.Credentials{}); err != nil {
		t.Fatal(err)
	}
}

func TestFaultsOfARepository(t *testing.T) {
	good := chartOf(t, "app", "1.0.0")
	index := func(address, digest string) site {
		return site{"/index.yaml": fmt.Appendf(nil, "apiVersion: v1\nentries:\n  app:\n  - version: 1.0.0\n    urls: [%q]\n    digest: %s\n", address, digest)}
	}
	anyChart := func(data []byte) site { return index("a.tgz", "").with("/a.tgz", data) }
	var lots []string
	for i := range 30 {
		lots = append(lots, fmt.Sprintf("  - version: 0.%d.0", i))
	}
	answer := func(code int) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", code) })
	}
	for name, test := range map[string]struct {
		site      http.Handler
		class     error
		permanent bool
		says      []string
	}{
		"no version": {site{"/index.yaml": []byte("entries:\n  app:\n" + strings.Join(lots, "\n"))}, fetch.ErrNotFound, false, []string{
			"fetch chart app 1.0.0 of http://", "nearest", "0.25.0, 0.26.0, 0.27.0, 0.28.0, 0.29.0:"}},
		"no chart": {site{"/index.yaml": []byte("entries: {apple: [], application: [], bpp: [], nginx: [], redis: [], zoo: []}")},
			fetch.ErrNotFound, false, []string{"6 charts, among them apple, application, "}},
		"no charts at all": {site{"/index.yaml": []byte("entries: {}")}, fetch.ErrNotFound, false, []string{"has no charts"}},
		"no index":         {site{}, fetch.ErrNotFound, false, []string{"no index.yaml"}},
		"a web page": {site{"/index.yaml": []byte("<html><body>Log in!</body></html>")}, fetch.ErrInvalid, false, []string{
			"not the index of a chart repository"}},
		"no archive":        {index("gone.tgz", ""), fetch.ErrNotFound, false, []string{"404"}},
		"no address":        {site{"/index.yaml": []byte("entries: {app: [{version: 1.0.0}]}")}, fetch.ErrInvalid, false, []string{"no address"}},
		"a strange address": {index("file:///etc/passwd", ""), fetch.ErrInvalid, false, []string{"can't be used"}},
		"another archive than the index says": {index("a.tgz", digest([]byte("x"))).with("/a.tgz", good), fetch.ErrDigest, false, []string{
			digest([]byte("x")), digest(good), "helm repo index"}},
		"another chart":       {anyChart(chartOf(t, "ape", "1.0.0")), fetch.ErrInvalid, true, []string{`the chart "ape"`}},
		"another version":     {anyChart(chartOf(t, "app", "1.0.1")), fetch.ErrInvalid, true, []string{`the version "1.0.1"`}},
		"no archive of files": {anyChart([]byte("hello")), fetch.ErrInvalid, true, []string{"no tar archive"}},
		"no chart in it":      {anyChart(pack(t, entry{name: "app/README.md"})), fetch.ErrInvalid, true, []string{"no Chart.yaml"}},
		"no folder in it":     {anyChart(pack(t, entry{name: "Chart.yaml"})), fetch.ErrInvalid, true, []string{"outside of a folder"}},
		"bad YAML":            {anyChart(pack(t, entry{name: "app/Chart.yaml", data: "a: b: c"})), fetch.ErrInvalid, true, []string{"Chart.yaml"}},
		"a chart of a later API": {anyChart(pack(t, entry{name: "app/Chart.yaml", data: "apiVersion: v3\nname: app\nversion: 1.0.0"})),
			fetch.ErrInvalid, true, []string{`apiVersion is "v3"`}},
		"credentials needed": {answer(401), fetch.ErrUnauthorized, true, []string{"secretName", "username and password"}},
		"too many requests":  {answer(429), fetch.ErrUnavailable, false, []string{"429"}},
		"an error":           {answer(503), fetch.ErrUnavailable, false, []string{"503"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, test.site)
			_, err := newFetcher(t, fetch.Config{}).Chart(t.Context(), chart(s.URL), fetch.Credentials{})
			fails(t, err, test.class, test.permanent, test.says...)
		})
	}
}

// zeros is an archive of files that consist of zeros. It is made of parts, because compressing much takes long.
func zeros(t *testing.T, files int, length int64) []byte {
	t.Helper()
	zip := func(data []byte) []byte {
		var part bytes.Buffer
		w := gzip.NewWriter(&part)
		_, err := w.Write(data)
		if err := errors.Join(err, w.Close()); err != nil {
			t.Fatal(err)
		}
		return part.Bytes()
	}
	const block = 4 << 20
	zeros := zip(make([]byte, block))
	var archive []byte
	for i := range files {
		var header bytes.Buffer
		err := tar.NewWriter(&header).WriteHeader(&tar.Header{Name: fmt.Sprint("app/", i), Typeflag: tar.TypeReg, Size: length})
		if err != nil {
			t.Fatal(err)
		}
		archive = append(archive, zip(header.Bytes())...)
		archive = append(archive, bytes.Repeat(zeros, int(length/block))...)
	}
	return archive
}

func TestAChartOf100MB(t *testing.T) {
	head := site{"/index.yaml": []byte("entries: {app: [{version: 1.0.0, urls: [big.tgz]}]}")}
	large := func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/big.tgz" {
			head.ServeHTTP(w, r)
			return
		}
		part := []byte(noise(1 << 20))
		for range 100 {
			if _, err := w.Write(part); err != nil {
				return
			}
		}
	}
	told := func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/big.tgz" {
			w.Header().Set("Content-Length", fmt.Sprint(100<<20))
		}
		large(w, r)
	}
	packed := head.with("/big.tgz", zeros(t, 1, 100<<20))
	spread := head.with("/big.tgz", zeros(t, 25, 4<<20))
	for name, test := range map[string]struct {
		site http.Handler
		says []string
	}{
		"without saying so": {http.HandlerFunc(large), []string{"more than 16.0 MiB", "raise Limits.Download"}},
		"saying so":         {http.HandlerFunc(told), []string{"100.0 MiB", "16.0 MiB", "raise Limits.Download", "make it smaller"}},
		"in one file":       {packed, []string{`"app/0" has 100.0 MiB`, "5.0 MiB", "raise Limits.File"}},
		"in many files":     {spread, []string{"more than 64.0 MiB", "raise Limits.Unpacked"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, test.site)
			_, err := newFetcher(t, fetch.Config{}).Chart(t.Context(), chart(s.URL), fetch.Credentials{})
			fails(t, err, fetch.ErrTooLarge, true, test.says...)
		})
	}
}

func TestIndexIsBounded(t *testing.T) {
	s := serve(t, site{"/index.yaml": []byte("entries: {app: [" + strings.Repeat("a,", 1<<10) + "]}")})
	_, err := newFetcher(t, fetch.Config{Limits: fetch.Limits{Index: 4 << 10}}).Chart(t.Context(), chart(s.URL), fetch.Credentials{})
	fails(t, err, fetch.ErrTooLarge, true, "too many values", "raise Limits.Index")

	s = serve(t, repository(map[string][]byte{"app-1.0.0.tgz": chartOf(t, "app", "1.0.0")}))
	f := newFetcher(t, fetch.Config{Limits: fetch.Limits{Index: 20}})
	_, err = f.Chart(t.Context(), chart(s.URL), fetch.Credentials{})
	fails(t, err, fetch.ErrTooLarge, true, "20 bytes", "raise Limits.Index")
}

func TestPinnedChart(t *testing.T) {
	archive := chartOf(t, "app", "1.0.0")
	s := serve(t, repository(map[string][]byte{"app-1.0.0.tgz": archive}))
	f := newFetcher(t, fetch.Config{Trust: -1})

	other := chart(s.URL)
	other.Digest = digest([]byte("other"))
	_, err := f.Chart(t.Context(), other, fetch.Credentials{})
	fails(t, err, fetch.ErrDigest, true, other.Digest, digest(archive), "the template wants")
	if n := s.asked(".tgz"); n != 0 {
		t.Error("the archive was fetched although its digest in the index is another")
	}

	pinned := chart(s.URL)
	pinned.Digest = digest(archive)
	for range 3 {
		if _, err := f.Chart(t.Context(), pinned, fetch.Credentials{}); err != nil {
			t.Fatal(err)
		}
	}
	if n := s.asked(".tgz"); n != 1 {
		t.Errorf("the pinned archive was fetched %d times", n)
	}
	s.Close()
	if _, err := f.Chart(t.Context(), pinned, fetch.Credentials{}); err != nil {
		t.Error("the pinned chart is in the cache, and was asked for:", err)
	}
}

func TestPinnedChartWithoutDigestInTheIndex(t *testing.T) {
	archive := chartOf(t, "app", "1.0.0")
	s := serve(t, site{"/index.yaml": []byte("entries: {app: [{version: 1.0.0, urls: [a.tgz]}]}"), "/a.tgz": archive})
	pinned := chart(s.URL)
	pinned.Digest = digest([]byte("other"))
	_, err := newFetcher(t, fetch.Config{}).Chart(t.Context(), pinned, fetch.Credentials{})
	fails(t, err, fetch.ErrDigest, true, pinned.Digest, digest(archive))
}

func TestIndexAndArchiveAreFetchedAgainOnlyWhenTheyChange(t *testing.T) {
	first, second := chartOf(t, "app", "1.0.0"), chartOf(t, "app", "1.0.0", entry{name: "app/more"})
	s := serve(t, repository(map[string][]byte{"app-1.0.0.tgz": first}))
	f := newFetcher(t, fetch.Config{Trust: -1})
	get := func(want []byte, archives int) {
		t.Helper()
		c, err := f.Chart(t.Context(), chart(s.URL), fetch.Credentials{})
		if err != nil {
			t.Fatal(err)
		}
		if c.Digest != digest(want) || s.asked(".tgz") != archives {
			t.Errorf("got %s after %d requests for the archive: want %s after %d", c.Digest, s.asked(".tgz"), digest(want), archives)
		}
	}
	get(first, 1)
	get(first, 1)
	s.become(repository(map[string][]byte{"app-1.0.0.tgz": second}))
	get(second, 2)
	get(second, 2)
	if n := s.asked("index.yaml"); n != 4 {
		t.Errorf("the index was asked for %d times with nothing trusted: want 4", n)
	}
}
