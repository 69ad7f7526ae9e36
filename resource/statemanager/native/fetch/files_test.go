package fetch_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/artifact"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/fetch"
)

func unzip(t testing.TB, archive []byte) []byte {
	t.Helper()
	r, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return plain
}

// contains compares files with what they should be.
func contains(t testing.TB, files *artifact.Files, want map[string]string) {
	t.Helper()
	got := map[string]string{}
	err := fs.WalkDir(files.FS, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(files.FS, path)
		got[path] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the files differ (-want +got):\n%s", diff)
	}
}

func TestFilesOfAWebServer(t *testing.T) {
	archive := pack(t,
		entry{name: "pax_global_header", kind: tar.TypeXGlobalHeader},
		entry{name: "./", kind: tar.TypeDir},
		entry{name: "./a/", kind: tar.TypeDir},
		entry{name: "./a/b.yaml", data: "b"},
		entry{name: `c\d.yaml`, data: "d"},
	)
	s := serve(t, site{"/x.tar.gz": archive, "/x.tar": unzip(t, archive)})
	f := newFetcher(t, fetch.Config{})
	for _, name := range []string{"/x.tar.gz", "/x.tar"} {
		files, err := f.Files(t.Context(), v1alpha1.Artifact{URL: s.URL + name}, fetch.Credentials{})
		if err != nil {
			t.Fatal(err)
		}
		contains(t, files, map[string]string{"a/b.yaml": "b", "c/d.yaml": "d"})
		if err := fstest.TestFS(files.FS, "a/b.yaml", "c/d.yaml"); err != nil {
			t.Error(err)
		}
		data, err := fs.ReadFile(files.FS, "a/b.yaml")
		if err != nil {
			t.Fatal(err)
		}
		data[0] = 'x'
		contains(t, files, map[string]string{"a/b.yaml": "b", "c/d.yaml": "d"})
	}
	pinned := v1alpha1.Artifact{URL: s.URL + "/x.tar.gz", Digest: digest(archive)}
	files, err := f.Files(t.Context(), pinned, fetch.Credentials{})
	if err != nil || files.Digest != pinned.Digest {
		t.Fatalf("got %v, %v", files, err)
	}
	pinned.Digest = digest(nil)
	_, err = f.Files(t.Context(), pinned, fetch.Credentials{})
	fails(t, err, fetch.ErrDigest, true, digest(nil), digest(archive))
}

func TestHostileArchives(t *testing.T) {
	many := make([]entry, 11)
	for i := range many {
		many[i] = entry{name: fmt.Sprint(i)}
	}
	folders := make([]entry, 11)
	for i := range folders {
		folders[i] = entry{name: fmt.Sprint(i, "/"), kind: tar.TypeDir}
	}
	zeros := strings.Repeat("\x00", 60<<10)
	good := pack(t, entry{name: "a", data: noise(5000)})
	limits := fetch.Limits{Unpacked: 100 << 10, File: 64 << 10, Files: 10, Path: 40}
	for name, test := range map[string]struct {
		archive []byte
		class   error
		says    string
	}{
		"a path that leads out":           {pack(t, entry{name: "a/../../etc/passwd"}), fetch.ErrInvalid, `unsafe path "a/../../etc/passwd"`},
		"a path that leads out and in":    {pack(t, entry{name: "a/../b"}), fetch.ErrInvalid, "unsafe path"},
		"a folder that leads out":         {pack(t, entry{name: "../", kind: tar.TypeDir}), fetch.ErrInvalid, "unsafe path"},
		"a path out in Windows' notation": {pack(t, entry{name: `a\..\..\b`}), fetch.ErrInvalid, "unsafe path"},
		"an absolute path":                {pack(t, entry{name: "/etc/passwd"}), fetch.ErrInvalid, "unsafe path"},
		"an absolute path in Windows":     {pack(t, entry{name: `\etc\passwd`}), fetch.ErrInvalid, "unsafe path"},
		"a file without a name":           {pack(t, entry{name: "."}), fetch.ErrInvalid, "without a name"},
		"a name that is no text":          {pack(t, entry{name: "a\xffb"}), fetch.ErrInvalid, "impossible path"},
		"a symbolic link out":             {pack(t, entry{name: "a", kind: tar.TypeSymlink, link: "/etc/passwd"}), fetch.ErrInvalid, `"a" is a link`},
		"a symbolic link within":          {pack(t, entry{name: "a"}, entry{name: "b", kind: tar.TypeSymlink, link: "a"}), fetch.ErrInvalid, "--dereference"},
		"a hard link":                     {pack(t, entry{name: "a"}, entry{name: "b", kind: tar.TypeLink, link: "a"}), fetch.ErrInvalid, `"b" is a link`},
		"a device":                        {pack(t, entry{name: "a", kind: tar.TypeChar}), fetch.ErrInvalid, "no regular file"},
		"a pipe":                          {pack(t, entry{name: "a", kind: tar.TypeFifo}), fetch.ErrInvalid, "no regular file"},
		"two files with one name":         {pack(t, entry{name: "a", data: "1"}, entry{name: "./a", data: "2"}), fetch.ErrInvalid, `"a" twice`},
		"a file in a file":                {pack(t, entry{name: "a"}, entry{name: "a/b/c"}), fetch.ErrInvalid, `"a" as a file and as a folder`},
		"a file over a folder":            {pack(t, entry{name: "a/b/c"}, entry{name: "a/b"}), fetch.ErrInvalid, `"a/b" twice`},
		"a large file":                    {pack(t, entry{name: "a", data: noise(70 << 10)}), fetch.ErrTooLarge, `"a" has 70.0 KiB, and 64.0 KiB`},
		"a bomb":                          {pack(t, entry{name: "a", data: zeros}, entry{name: "b", data: zeros}), fetch.ErrTooLarge, "more than 100.0 KiB"},
		"a bomb after its end":            {bombAfter(t, 1<<20), fetch.ErrTooLarge, "more than 100.0 KiB"},
		"holes":                           {sparse(t, 3, 60<<10), fetch.ErrTooLarge, "more than 100.0 KiB"},
		"many files":                      {pack(t, many...), fetch.ErrTooLarge, "more than 10 entries"},
		"many folders":                    {pack(t, folders...), fetch.ErrTooLarge, "more than 10 entries"},
		"a long path":                     {pack(t, entry{name: strings.Repeat("a", 41)}), fetch.ErrTooLarge, "a path of 41 bytes"},
		"half of an archive":              {good[:len(good)/2], fetch.ErrInvalid, "unexpected EOF"},
		"an archive without its checksum": {good[:len(good)-4], fetch.ErrInvalid, "unexpected EOF"},
		"a changed archive":               {changed(good), fetch.ErrInvalid, "no tar archive that can be read"},
		"text":                            {[]byte(strings.Repeat("hello\n", 200)), fetch.ErrInvalid, "no tar archive"},
		"what begins like gzip":           {[]byte("\x1f\x8bhello"), fetch.ErrInvalid, "no tar archive"},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, site{"/a.tgz": test.archive})
			_, err := newFetcher(t, fetch.Config{Limits: limits}).Files(t.Context(), v1alpha1.Artifact{URL: s.URL + "/a.tgz"}, fetch.Credentials{})
			fails(t, err, test.class, true, test.says, "fetch files of "+s.URL+"/a.tgz")
		})
	}
}

// changed is an archive with another checksum at its end.
func changed(archive []byte) []byte {
	archive = bytes.Clone(archive)
	archive[len(archive)-5] ^= 1
	return archive
}

// bombAfter is an archive with zeros after its last entry.
func bombAfter(t *testing.T, n int) []byte {
	t.Helper()
	var buffer bytes.Buffer
	w := gzip.NewWriter(&buffer)
	_, err := w.Write(append(unzip(t, pack(t, entry{name: "a"})), make([]byte, n)...))
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return buffer.Bytes()
}

// sparse is an archive of files that consist of a hole. The writer does not make these, but does not mind other keys.
func sparse(t *testing.T, files, length int) []byte {
	t.Helper()
	var buffer bytes.Buffer
	w := tar.NewWriter(&buffer)
	for i := range files {
		err := w.WriteHeader(&tar.Header{Name: fmt.Sprint(i), Typeflag: tar.TypeReg, Format: tar.FormatPAX, PAXRecords: map[string]string{
			"GNU.sXarse.numblocks": "1", "GNU.sXarse.map": fmt.Sprintf("%d,0", length), "GNU.sXarse.size": fmt.Sprint(length),
		}})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return bytes.ReplaceAll(buffer.Bytes(), []byte("sXarse"), []byte("sparse"))
}

func TestChartsInCharts(t *testing.T) {
	inner := chartOf(t, "inner", "1.0.0")
	middle := chartOf(t, "middle", "1.0.0", entry{name: "middle/charts/inner-1.0.0.tgz", data: string(inner)})
	c, err := fetch.UnpackChart(chartOf(t, "app", "1.0.0",
		entry{name: "app/charts/middle-1.0.0.tgz", data: string(middle)},
		entry{name: "app/charts/flat/Chart.yaml", data: "apiVersion: v2\nname: flat\nversion: 1.0.0"},
		entry{name: "app/charts/flat/charts/inner-1.0.0.tgz", data: string(inner)},
		entry{name: "app/charts/_off.tgz", data: string(inner)},
		entry{name: "app/files/data.tgz", data: "no archive, and no chart"},
		entry{name: "app/README.md", data: "\xEF\xBB\xBFhello"},
	), fetch.Config{})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, d := range c.Dependencies() {
		names = append(names, d.Name())
		if d.Dependencies()[0].Name() != "inner" || len(d.Dependencies()[0].Templates) != 1 {
			t.Errorf("%s has the chart %s", d.Name(), d.Dependencies()[0].Name())
		}
	}
	if diff := cmp.Diff([]string{"flat", "middle"}, slices.Sorted(slices.Values(names))); diff != "" {
		t.Error(diff)
	}
	for _, f := range c.Files {
		if f.Name == "README.md" && string(f.Data) != "hello" {
			t.Errorf("the file begins with a byte order mark: %q", f.Data)
		}
	}
}

func TestChartsInChartsCountTowardsTheLimits(t *testing.T) {
	bomb := string(chartOf(t, "bomb", "1.0.0", entry{name: "bomb/a", data: strings.Repeat("a", 60<<10)}))
	nested := chartOf(t, "app", "1.0.0",
		entry{name: "app/charts/one.tgz", data: bomb}, entry{name: "app/charts/two/charts/two.tgz", data: bomb})
	_, err := fetch.UnpackChart(nested, fetch.Config{Limits: fetch.Limits{Unpacked: 100 << 10}})
	fails(t, err, fetch.ErrTooLarge, true, "in charts/two/charts/two.tgz: it unpacks to more than 100.0 KiB")
	_, err = fetch.UnpackChart(nested, fetch.Config{Limits: fetch.Limits{Files: 10}})
	fails(t, err, fetch.ErrTooLarge, true, "more than 10 entries")
	_, err = fetch.UnpackChart(chartOf(t, "app", "1.0.0",
		entry{name: "app/charts/one.tgz", data: string(pack(t, entry{name: "one/../../x"}))}), fetch.Config{})
	fails(t, err, fetch.ErrInvalid, true, "in charts/one.tgz: it has the unsafe path")
}

func TestValuesOfAChartAreBounded(t *testing.T) {
	many := strings.Repeat("a,", 5<<10)
	for _, name := range []string{"app/values.yaml", "app/charts/in/Chart.lock"} {
		archive := pack(t, entry{name: "app/Chart.yaml", data: "name: app"}, entry{name: name, data: "x: [" + many + "a]"})
		_, err := fetch.UnpackChart(archive, fetch.Config{Limits: fetch.Limits{Unpacked: 256 << 10}})
		fails(t, err, fetch.ErrTooLarge, true, strings.TrimPrefix(name, "app/")+" has too many values")

		aliases := "a: &a " + strings.Repeat("x", 100<<10) + "\nb: [" + strings.Repeat("*a,", 1000) + "]\n"
		archive = pack(t, entry{name: "app/Chart.yaml", data: "name: app"}, entry{name: name, data: aliases})
		_, err = fetch.UnpackChart(archive, fetch.Config{})
		fails(t, err, fetch.ErrTooLarge, true, strings.TrimPrefix(name, "app/")+" is too large",
			"with aliases as what they stand for: use fewer aliases, or shorten it")
	}
}

func TestFilesOfObjects(t *testing.T) {
	meta := metav1.ObjectMeta{Namespace: "shop", Name: "files"}
	configMap := &corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"a.yaml": "a"}, BinaryData: map[string][]byte{"b": {0, 1}}}
	files, err := fetch.FilesOfConfigMap(configMap)
	if err != nil {
		t.Fatal(err)
	}
	contains(t, files, map[string]string{"a.yaml": "a", "b": "\x00\x01"})
	if len(configMap.BinaryData) != 1 {
		t.Error("the ConfigMap was changed")
	}

	secret := &corev1.Secret{ObjectMeta: meta, Data: map[string][]byte{"a.yaml": []byte("a"), "b": {0, 1}}}
	same, err := fetch.FilesOfSecret(secret)
	if err != nil {
		t.Fatal(err)
	}
	if same.Digest != files.Digest {
		t.Error("the same files have different digests")
	}
	seen := map[string]bool{}
	for _, data := range []map[string][]byte{{"a": []byte("bc")}, {"ab": []byte("c")}, {"a": []byte("b"), "c": nil}, {"a": nil, "b": []byte("c")}} {
		files, err := fetch.FilesOfSecret(&corev1.Secret{ObjectMeta: meta, Data: data})
		if err != nil {
			t.Fatal(err)
		}
		seen[files.Digest] = true
	}
	if len(seen) != 4 {
		t.Errorf("four sets of files have %d digests: %v", len(seen), slices.Collect(maps.Keys(seen)))
	}

	_, err = fetch.FilesOfConfigMap(&corev1.ConfigMap{ObjectMeta: meta})
	fails(t, err, fetch.ErrInvalid, true, "ConfigMap shop/files", "no entries")
	_, err = fetch.FilesOfSecret(&corev1.Secret{ObjectMeta: meta, Data: map[string][]byte{"..": nil}})
	fails(t, err, fetch.ErrInvalid, true, `Secret shop/files`, `".."`)
}
