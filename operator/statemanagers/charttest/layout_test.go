package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// folderOf writes files into a folder, and returns it. A chart is "chart NAME VERSION", which is a folder or, with the ending .tgz, an archive.
func folderOf(t *testing.T, files map[string]string) string {
	t.Helper()
	folder := t.TempDir()
	for name, content := range files {
		path := filepath.Join(folder, name)
		said, isChart := strings.CutPrefix(content, "chart ")
		switch {
		case !isChart:
			writeFile(t, path, content)
		case isArchive(path):
			inner := filepath.Join(t.TempDir(), "chart")
			writeFile(t, filepath.Join(inner, "Chart.yaml"), chartfile(said))
			packed, _, err := packChart(inner)
			if err != nil {
				t.Fatal(err)
			}
			writeFile(t, path, string(packed))
		default:
			writeFile(t, filepath.Join(path, "Chart.yaml"), chartfile(said))
		}
	}
	return folder
}

func chartfile(said string) string {
	name, version, _ := strings.Cut(said, " ")
	return "apiVersion: v2\nname: " + name + "\nversion: " + version + "\n"
}

func writeFile(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// told are the subjects of a folder, a line each.
func told(t *testing.T, folder string) []string {
	t.Helper()
	subjects, err := find(folder)
	if err != nil {
		return []string{strings.ReplaceAll(err.Error(), folder, "DIR")}
	}
	var lines []string
	for _, s := range subjects {
		line := s.name + " " + versionsOf(s)
		if s.fault != nil {
			line = s.name + ": " + strings.ReplaceAll(s.fault.Error(), folder, "DIR")
		}
		lines = append(lines, line)
	}
	return lines
}

const kustomization = "resources: []\n"

func TestVersionsAreFoundHoweverAFolderHasThem(t *testing.T) {
	for name, tt := range map[string]struct {
		files map[string]string
		want  []string
	}{
		"old and new first":   {map[string]string{"old/web": "chart web 1.0.0", "new/web": "chart web 1.1.0"}, []string{"web 1.0.0 → 1.1.0"}},
		"old and new last":    {map[string]string{"web/old": "chart web 1.1.0", "web/new": "chart web 1.0.0"}, []string{"web 1.1.0 → 1.0.0"}},
		"names with versions": {map[string]string{"web-1.10.0": "chart web 1.10.0", "web-1.9.0": "chart web 1.9.0"}, []string{"web 1.9.0 → 1.10.0"}},
		"archives": {
			map[string]string{"web-1.0.0.tgz": "chart web 1.0.0", "web-2.0.0-rc.1.tgz": "chart web 2.0.0-rc.1"},
			[]string{"web 1.0.0 → 2.0.0-rc.1"},
		},
		"an archive and a folder": {map[string]string{"old/web-1.0.0.tgz": "chart web 1.0.0", "new/web": "chart web 1.1.0"}, []string{"web 1.0.0 → 1.1.0"}},
		"folders of versions": {
			map[string]string{"team/web/1.0.0": "chart web 1.0.0", "team/web/v1.1.0": "chart web 1.1.0"},
			[]string{"team/web 1.0.0 → 1.1.0"},
		},
		"as helm pull unpacks": {
			map[string]string{"web-1.0.0/web": "chart web 1.0.0", "web-1.1.0/web": "chart web 1.1.0"},
			[]string{"web 1.0.0 → 1.1.0"},
		},
		"kustomizations": {
			map[string]string{"old/site/kustomization.yaml": kustomization, "new/site/Kustomization": kustomization}, []string{"site old → new"},
		},
		"kustomizations with versions": {
			map[string]string{"site-1.0/kustomization.yml": kustomization, "site-0.9/kustomization.yaml": kustomization}, []string{"site 0.9 → 1.0"},
		},
		"one version, and charts in a chart": {map[string]string{"web": "chart web 1.0.0", "web/charts/db": "chart db 1.0.0"}, []string{"web 1.0.0"}},
		"several of them": {
			map[string]string{"old/web": "chart web 1.0.0", "new/web": "chart web 1.1.0", "db": "chart db 3.0.0"}, []string{"db 3.0.0", "web 1.0.0 → 1.1.0"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, told(t, folderOf(t, tt.files))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestWhatIsNotUnderstoodIsSaid(t *testing.T) {
	for name, tt := range map[string]struct {
		files map[string]string
		want  []string
	}{
		"nothing": {
			nil,
			[]string{"there is no chart and no kustomization in DIR: put them there as old/NAME and new/NAME, or as NAME-VERSION.tgz"},
		},
		"a chart itself": {
			map[string]string{"Chart.yaml": chartfile("web 1.0.0")},
			[]string{"DIR is a chart or a kustomization itself: give the folder that it is in"},
		},
		"other folders": {
			map[string]string{"web": "chart web 1.0.0", "notes/deep/readme.md": "x"},
			[]string{"notes: there is no Chart.yaml, no kustomization.yaml and no .tgz in it", "web 1.0.0"},
		},
		"a broken chart": {map[string]string{"web/Chart.yaml": "name: ["}, []string{"web: web: it is no chart that Helm can load"}},
		"no archive":     {map[string]string{"web-1.0.0.tgz": "x"}, []string{"web: web-1.0.0.tgz: it is no chart that Helm can load"}},
		"dependencies": {
			map[string]string{"web/Chart.yaml": chartfile("web 1.0.0") + "dependencies: [{name: db, version: 1.0.0, repository: https://example.com}]\n"},
			[]string{"web: web: charts it depends on are found in Chart.yaml, but missing in charts/ directory: db: run `helm dependency build` in it"},
		},
		"three versions": {
			map[string]string{"web-1.0.0": "chart web 1.0.0", "web-1.1.0": "chart web 1.1.0", "web-1.2.0": "chart web 1.2.0"},
			[]string{"web: there are 3 versions of it, web-1.0.0 (1.0.0), web-1.1.0 (1.1.0), web-1.2.0 (1.2.0): keep an old and a new one"},
		},
		"no order": {
			map[string]string{"a/web-1.0.0": "chart web 1.0.0", "a/web": "chart web 1.0.0"},
			[]string{"a/web: nothing says which of web (1.0.0), web-1.0.0 (1.0.0) is the old one: put them into folders old and new, or name them by their versions"},
		},
		"two old ones": {
			map[string]string{"old/web": "chart web 1.0.0", "web/old": "chart web 1.1.0"},
			[]string{"web: web (1.0.0), old (1.1.0) are both old: keep an old and a new one"},
		},
		"two kinds": {
			map[string]string{"old/web": "chart web 1.0.0", "new/web/kustomization.yaml": kustomization},
			[]string{"web: of web (new), web (1.0.0) one is a chart and the other one a kustomization"},
		},
		"values for none": {
			map[string]string{"old/site/kustomization.yaml": kustomization, "site.values.yaml": "a: b"},
			[]string{"site: old/site: DIR/site.values.yaml is there, and a kustomization has no values: take the file away"},
		},
		"broken values": {map[string]string{"web": "chart web 1.0.0", "web.values.yaml": "a: [b"}, []string{"web: web: DIR/web.values.yaml: "}},
		"one name": {
			map[string]string{"web.a": "chart web 1.0.0", "web-a": "chart web 1.0.0"}, []string{"web-a 1.0.0", "web.a: its release would have the name \"web-a\", as that of web-a: rename one of them"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := told(t, folderOf(t, tt.files))
			if len(got) != len(tt.want) {
				t.Fatalf("it says %q, and should say %q", got, tt.want)
			}
			for i := range got {
				if !strings.HasPrefix(got[i], tt.want[i]) {
					t.Errorf("it says %q, and should say %q", got[i], tt.want[i])
				}
			}
		})
	}
}

func TestValuesBesideAChartAreItsValues(t *testing.T) {
	folder := folderOf(t, map[string]string{
		"old/web": "chart web 1.0.0", "new/web": "chart web 1.1.0", "old/web/values.yaml": "own: true\n",
		"web.values.yaml": "a: both\nb: {c: both, d: both}\n", "new/web.values.yaml": "b: {c: new}\n",
		"db/1.0.0": "chart db 1.0.0", "db/values.yaml": "e: f\n", "app": "chart app 1.0.0", "app/values.yaml": "own: true\n",
	})
	subjects, err := find(folder)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]any{}
	for _, s := range subjects {
		if s.fault != nil {
			t.Fatal(s.fault)
		}
		got[s.name] = s.old.values
		if s.updated != nil {
			got[s.name+" new"] = s.updated.values
		}
	}
	want := map[string]any{
		"web":     map[string]any{"a": "both", "b": map[string]any{"c": "both", "d": "both"}},
		"web new": map[string]any{"a": "both", "b": map[string]any{"c": "new", "d": "both"}},
		"db":      map[string]any{"e": "f"},
		"app":     map[string]any{},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
