package fetch_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/fetch"
)

// walk returns the sizes of the files in a folder.
func walk(t *testing.T, folder string) map[string]int64 {
	t.Helper()
	sizes := map[string]int64{}
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		sizes[path] = info.Size()
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return sizes
}

func TestDamagedCache(t *testing.T) {
	damages := map[string]func(path string) error{
		"emptied": func(path string) error { return os.WriteFile(path, nil, 0o600) },
		"changed": func(path string) error {
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			data[len(data)/2] ^= 1
			return os.WriteFile(path, data, 0o600)
		},
		"replaced": func(path string) error {
			return os.WriteFile(path, []byte(`{"blob":"../../x","checked":"2100-01-01T00:00:00Z"}`), 0o600)
		},
		"removed": os.Remove,
	}
	for _, test := range []struct{ part, damage string }{
		{"blobs", "emptied"}, {"blobs", "changed"}, {"blobs", "replaced"}, {"blobs", "removed"},
		{"records", "emptied"}, {"records", "replaced"}, {"records", "removed"},
	} {
		damage := damages[test.damage]
		t.Run(test.part+" "+test.damage, func(t *testing.T) {
			s := serve(t, repository(map[string][]byte{"app-1.0.0.tgz": chartOf(t, "app", "1.0.0")}))
			folder := t.TempDir()
			f := newFetcher(t, fetch.Config{Folder: folder})
			for range 3 {
				if _, err := f.Chart(t.Context(), chart(s.URL), fetch.Credentials{}); err != nil {
					t.Fatal(err)
				}
				damaged := 0
				for path := range walk(t, filepath.Join(folder, test.part)) {
					damaged++
					if err := damage(path); err != nil {
						t.Fatal(err)
					}
				}
				if damaged != 2 {
					t.Errorf("the cache has %d %s: want one for the index and one for the archive", damaged, test.part)
				}
			}
			if n := s.asked(".tgz"); n != 3 {
				t.Errorf("the archive was fetched %d times: want 3, because the cache was damaged after each", n)
			}
		})
	}
}

func TestCacheIsBounded(t *testing.T) {
	archives := site{}
	for i := range 10 {
		archives[fmt.Sprintf("/%d.tgz", i)] = pack(t, entry{name: "a", data: fmt.Sprint(i) + noise(20<<10)})
	}
	s := serve(t, archives)
	folder := t.TempDir()
	// There is room for four archives and their records.
	f := newFetcher(t, fetch.Config{Folder: folder, Bytes: 128 << 10, Limits: fetch.Limits{Download: 64 << 10, Index: 1}})
	get := func(i int) {
		t.Helper()
		if _, err := f.Files(t.Context(), v1alpha1.Artifact{URL: fmt.Sprintf("%s/%d.tgz", s.URL, i)}, fetch.Credentials{}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 10 {
		get(i)
		get(0)
		var total int64
		for _, size := range walk(t, folder) {
			total += size
		}
		if total > 128<<10 {
			t.Errorf("after %d archives the cache has %d bytes", i+1, total)
		}
	}
	if n := s.asked("/0.tgz"); n != 1 {
		t.Errorf("the archive that was used all the time was fetched %d times", n)
	}
	get(9)
	get(1)
	if s.asked("/9.tgz") != 1 || s.asked("/1.tgz") != 2 {
		t.Errorf("the newest was fetched %d times, one of the oldest %d times: want 1 and 2", s.asked("/9.tgz"), s.asked("/1.tgz"))
	}
}

func TestFetchersShareAFolder(t *testing.T) {
	archives := site{}
	for i := range 5 {
		archives[fmt.Sprintf("/%d.tgz", i)] = pack(t, entry{name: "a", data: fmt.Sprint(i) + noise(20<<10)})
	}
	s := serve(t, archives)
	config := fetch.Config{Folder: t.TempDir()}
	var done sync.WaitGroup
	for range 4 {
		f := newFetcher(t, config)
		done.Go(func() {
			for i := range 20 {
				files, err := f.Files(t.Context(), v1alpha1.Artifact{URL: fmt.Sprintf("%s/%d.tgz", s.URL, i%5)}, fetch.Credentials{})
				if err != nil {
					t.Error(err)
					return
				}
				contains(t, files, map[string]string{"a": fmt.Sprint(i%5) + noise(20<<10)})
			}
		})
	}
	done.Wait()
	asked := s.asked("")
	if asked > 20 {
		t.Errorf("four fetchers asked %d times for five archives", asked)
	}
	if _, err := newFetcher(t, config).Files(t.Context(), v1alpha1.Artifact{URL: s.URL + "/0.tgz"}, fetch.Credentials{}); err != nil {
		t.Fatal(err)
	}
	if s.asked("") != asked {
		t.Error("a new fetcher fetched what is in its folder")
	}
	for path := range walk(t, config.Folder) {
		if strings.Contains(path, "partial") {
			t.Errorf("%s was left", path)
		}
	}
}

func TestFoldersOfTheCacheAreForTheirOwner(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "a", "b")
	newFetcher(t, fetch.Config{Folder: folder})
	for _, sub := range []string{".", "blobs", "records", "partial"} {
		info, err := os.Stat(filepath.Join(folder, sub))
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o700 {
			t.Errorf("%s has the mode %v", sub, info.Mode())
		}
	}
}

func TestConfigurationIsChecked(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	if _, err := fetch.New(fetch.Config{}); err != nil {
		t.Error("the zero configuration is refused:", err)
	}
	for says, config := range map[string]fetch.Config{
		"Limits.Files is negative":   {Limits: fetch.Limits{Files: -1}},
		"Limits.Timeout is negative": {Limits: fetch.Limits{Timeout: -1}},
		"Config.Bytes is negative":   {Bytes: -1},
		"can't hold":                 {Bytes: 1 << 20},
	} {
		if _, err := fetch.New(config); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("got %v: want an error that says %q", err, says)
		}
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := fetch.New(fetch.Config{Folder: file}); err == nil || !strings.Contains(err.Error(), "make the cache") {
		t.Errorf("got %v for a folder that is a file", err)
	}
}
