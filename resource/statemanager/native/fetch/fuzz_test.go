package fetch_test

import (
	"archive/tar"
	"errors"
	"io/fs"
	"net/url"
	"strings"
	"testing"

	"github.com/operatorkit/operatorkit/resource/statemanager/native/fetch"
)

// small are limits that a fuzzer reaches.
var small = fetch.Config{Folder: "none", Limits: fetch.Limits{Unpacked: 64 << 10, File: 8 << 10, Files: 16, Path: 64, Index: 64 << 10}}

func FuzzArchive(f *testing.F) {
	f.Add(pack(f, entry{name: "a/b", data: "c"}))
	f.Add(unzip(f, pack(f, entry{name: "a/b", data: "c"}, entry{name: "../x"}, entry{name: "y", kind: tar.TypeSymlink, link: "/"})))
	f.Add(chartOf(f, "app", "1.0.0", entry{name: "app/charts/in.tgz", data: string(chartOf(f, "in", "1.0.0"))}))
	f.Add(unzip(f, chartOf(f, "app", "1.0.0", entry{name: "app/values.schema.json", data: "{}"}, entry{name: "app/requirements.yaml", data: "a: 1"})))
	f.Fuzz(func(t *testing.T, data []byte) {
		files, _, _, err := fetch.Unpack(data, small)
		explained(t, err)
		total := 0
		for name, content := range files {
			if !fs.ValidPath(name) || name == "." || len(name) > small.Limits.Path || strings.Contains(name, `\`) {
				t.Errorf("the file %q came out", name)
			}
			if len(content) > int(small.Limits.File) {
				t.Errorf("a file of %d bytes came out", len(content))
			}
			total += len(content)
		}
		if total > int(small.Limits.Unpacked) || len(files) > small.Limits.Files {
			t.Errorf("%d files with %d bytes came out", len(files), total)
		}
		c, err := fetch.UnpackChart(data, small)
		explained(t, err)
		if err == nil && (c.Metadata == nil || c.Name() == "") {
			t.Error("a chart without a name came out")
		}
	})
}

func FuzzIndex(f *testing.F) {
	f.Add([]byte("entries:\n  app:\n  - version: 1.0.0\n    urls: [a.tgz]\n"), "https://charts.example.com")
	f.Add([]byte(`{"entries":{"app":[{"version":"v1.0.0","urls":["http://user:secret@127.0.0.1/%2e%2e"]}]}}`), "http://x/?y")
	f.Add([]byte("entries: {app: [null, {version: 1}, {}]}"), "oci://x")
	f.Add([]byte("a: &a [x,x,x]\nb: &b [*a,*a,*a]\nentries: {app: [{version: 1.0.0, urls: *b}]}"), "")
	f.Add([]byte("entries: {a: [], \"b\\n\": [], app: [{version: 0.1.0}]}"), "")
	f.Fuzz(func(t *testing.T, data []byte, repository string) {
		address, err := fetch.Find(data, chart(repository), small)
		explained(t, err)
		if err != nil {
			return
		}
		u, err := url.Parse(address)
		if err != nil || u.User != nil || u.Host == "" {
			t.Errorf("the address %q came out: %v", address, err)
		}
	})
}

// explained checks that an error is one for people.
func explained(t *testing.T, err error) {
	t.Helper()
	var e *fetch.Error
	if err != nil && (!errors.As(err, &e) || strings.ContainsAny(err.Error(), "\n\r\x00") || len(err.Error()) > 1000) {
		t.Errorf("the error is %T %v", err, err)
	}
}
