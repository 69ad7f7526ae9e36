package main

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	"helm.sh/helm/v4/pkg/action"
	chartv2 "helm.sh/helm/v4/pkg/chart"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/chart/v2/util"
	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/yaml"
)

// longestName is how long the name of a subject may be, in bytes: it is that of a release, and of its namespace.
const longestName = 53

// subject is a chart or a kustomization, in an old and perhaps a new version.
type subject struct {
	// name is how the folder names it, and id is the name of its release and of its namespace.
	name, id string
	// old and updated are its versions; updated is nil where there is one only.
	old, updated *version
	// fault is why it can't be tried.
	fault error
}

// version is one version of a subject.
type version struct {
	// path is where it is, and said is its version as people know it.
	path, said string
	// role is "old", "new", or empty where the folder does not say.
	role string
	// chart is what Chart.yaml says, nil for a kustomization.
	chart *chart.Metadata
	// archive is the packed chart, or the files of the kustomization as a compressed tar archive.
	archive []byte
	values  map[string]any
	// namespace is the one that the kustomization says.
	namespace string
}

// String is a version in the table.
func (v *version) String() string { return cmp.Or(v.said, v.role, "?") }

// parts are what the folders of a path tell: a name, a role and a version.
type parts struct{ name, role, version string }

var versionEnd = regexp.MustCompile(`[-_]?v?[0-9]+(\.[0-9]+)+([-+][0-9A-Za-z.+-]+)?$`)

// partsOf reads old/NAME, NAME/new, NAME/1.2.3, NAME-1.2.3, NAME-1.2.3/NAME and the like.
func partsOf(path string) parts {
	var p parts
	var names []string
	for name := range strings.SplitSeq(filepath.ToSlash(path), "/") {
		if lower := strings.ToLower(name); p.role == "" && (lower == "old" || lower == "new") {
			p.role = lower
			continue
		}
		if end := versionEnd.FindString(name); end != "" {
			name = strings.TrimSuffix(name, end)
			p.version = strings.TrimLeft(end, "-_v")
		}
		if name != "" && (len(names) == 0 || names[len(names)-1] != name) {
			names = append(names, name)
		}
	}
	p.name = strings.Join(names, "/")
	return p
}

// find finds the subjects in a folder. The error is for a folder in which there is none.
func find(folder string) ([]*subject, error) {
	if isPackage(folder) {
		return nil, fmt.Errorf("%s is a chart or a kustomization itself: give the folder that it is in", folder)
	}
	folder, err := filepath.EvalSymlinks(folder)
	if err != nil {
		return nil, fmt.Errorf("look for charts: %w", err)
	}
	var packages, others []string
	err = filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case path == folder:
			return nil
		case strings.HasPrefix(entry.Name(), "."):
			if entry.IsDir() {
				return filepath.SkipDir
			}
			return nil
		case entry.IsDir() && isPackage(path):
			packages = append(packages, path)
			return filepath.SkipDir
		case entry.IsDir():
			others = append(others, path)
		case isArchive(path):
			packages = append(packages, path)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("look for charts: %w", err)
	}
	versions := map[string][]*version{}
	faults := map[string][]error{}
	for _, path := range packages {
		relative, err := filepath.Rel(folder, path)
		if err != nil {
			return nil, err
		}
		v, name, err := read(folder, path, partsOf(withoutEnd(relative)))
		if err != nil {
			faults[name] = append(faults[name], fmt.Errorf("%s: %w", relative, err))
			continue
		}
		versions[name] = append(versions[name], v)
	}
	for _, path := range withoutPackages(others, packages) {
		relative, err := filepath.Rel(folder, path)
		if err != nil {
			return nil, err
		}
		faults[relative] = append(faults[relative], errors.New("there is no Chart.yaml, no kustomization.yaml and no .tgz in it"))
	}
	if len(versions)+len(faults) == 0 {
		return nil, fmt.Errorf("there is no chart and no kustomization in %s: put them there as old/NAME and new/NAME, or as NAME-VERSION.tgz", folder)
	}
	names := slices.AppendSeq(slices.Collect(maps.Keys(versions)), maps.Keys(faults))
	slices.Sort(names)
	return arrange(versions, faults, slices.Compact(names)), nil
}

// arrange makes subjects of versions and of what is wrong with others of their names.
func arrange(versions map[string][]*version, faults map[string][]error, names []string) []*subject {
	taken := map[string]string{}
	var subjects []*subject
	for _, name := range names {
		s := &subject{name: name, id: idOf(name), fault: errors.Join(faults[name]...)}
		if other, twice := taken[s.id]; twice && s.fault == nil {
			s.fault = fmt.Errorf("its release would have the name %q, as that of %s: rename one of them", s.id, other)
		}
		taken[s.id] = name
		if s.fault == nil {
			s.old, s.updated, s.fault = pair(versions[name])
		}
		subjects = append(subjects, s)
	}
	return subjects
}

// pair tells which version is the old one.
func pair(versions []*version) (old, updated *version, err error) {
	said := func() string {
		texts := make([]string, len(versions))
		for i, v := range versions {
			texts[i] = filepath.Base(v.path) + " (" + v.String() + ")"
		}
		return strings.Join(texts, ", ")
	}
	if len(versions) > 2 {
		return nil, nil, fmt.Errorf("there are %d versions of it, %s: keep an old and a new one", len(versions), said())
	}
	if len(versions) == 1 {
		return versions[0], nil, nil
	}
	old, updated = versions[0], versions[1]
	swap := old.role == "new" || updated.role == "old"
	if old.role == "" && updated.role == "" {
		first, oldErr := semver.NewVersion(old.said)
		second, newErr := semver.NewVersion(updated.said)
		if oldErr != nil || newErr != nil || first.Equal(second) {
			return nil, nil, fmt.Errorf("nothing says which of %s is the old one: put them into folders old and new, or name them by their versions", said())
		}
		swap = second.LessThan(first)
	}
	if swap {
		old, updated = updated, old
	}
	switch {
	case old.role == "new" || updated.role == "old":
		return nil, nil, fmt.Errorf("%s are both %s: keep an old and a new one", said(), old.role)
	case (old.chart == nil) != (updated.chart == nil):
		return nil, nil, fmt.Errorf("of %s one is a chart and the other one a kustomization", said())
	}
	return old, updated, nil
}

// idOf makes the name of a release of that of a subject.
func idOf(name string) string {
	id := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		case r >= 'A' && r <= 'Z':
			return r - 'A' + 'a'
		}
		return '-'
	}, name)
	return strings.Trim(id[:min(len(id), longestName)], "-")
}

// read reads a version, and tells the name of its subject.
func read(folder, path string, p parts) (*version, string, error) {
	v := &version{path: path, role: p.role, said: p.version}
	name := p.name
	var err error
	if isKustomization(path) {
		v.archive, v.namespace, err = packKustomization(path)
	} else {
		v.archive, v.chart, err = packChart(path)
	}
	if v.chart != nil {
		v.said, name = v.chart.Version, cmp.Or(name, v.chart.Name)
	}
	if name == "" {
		name = filepath.Base(folder)
	}
	if err != nil {
		return nil, name, err
	}
	v.values, err = valuesFor(folder, name, path, v.chart == nil)
	return v, name, err
}

// valuesFor reads the values files of a version, each over the one before.
func valuesFor(folder, name, path string, kustomization bool) (map[string]any, error) {
	var files []string
	for _, file := range []string{
		filepath.Join(folder, name+".values.yaml"), filepath.Join(folder, name, "values.yaml"), withoutEnd(path) + ".values.yaml",
	} {
		if !slices.Contains(files, file) && filepath.Dir(file) != path {
			files = append(files, file)
		}
	}
	values := map[string]any{}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if kustomization {
			return nil, fmt.Errorf("%s is there, and a kustomization has no values: take the file away", file)
		}
		given, err := loader.LoadValues(bytes.NewReader(content))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		values = loader.MergeMaps(values, given)
	}
	return values, nil
}

// packChart packs the chart of a folder as `helm package` does; an archive is taken as it is.
func packChart(path string) ([]byte, *chart.Metadata, error) {
	c, err := loader.Load(path)
	if err != nil {
		return nil, nil, fmt.Errorf("it is no chart that Helm can load: %w", err)
	}
	wanted := make([]chartv2.Dependency, 0, len(c.Metadata.Dependencies))
	for _, d := range c.Metadata.Dependencies {
		wanted = append(wanted, d)
	}
	if err := action.CheckDependencies(c, wanted); err != nil {
		return nil, c.Metadata, fmt.Errorf("charts it depends on are %w: run `helm dependency build` in it", err)
	}
	if isArchive(path) {
		content, err := os.ReadFile(path)
		return content, c.Metadata, err
	}
	folder, err := os.MkdirTemp("", "charttest-")
	if err != nil {
		return nil, c.Metadata, err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	packed, err := util.Save(c, folder)
	if err != nil {
		return nil, c.Metadata, fmt.Errorf("it can't be packed: %w", err)
	}
	content, err := os.ReadFile(packed)
	return content, c.Metadata, err
}

// packKustomization returns the files of a kustomization as a compressed tar archive, and the namespace that it says.
func packKustomization(folder string) ([]byte, string, error) {
	var said struct {
		Namespace string `json:"namespace"`
	}
	for _, name := range konfig.RecognizedKustomizationFileNames() {
		content, err := os.ReadFile(filepath.Join(folder, name))
		if err == nil {
			err = yaml.Unmarshal(content, &said)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, "", fmt.Errorf("%s: %w", name, err)
		}
	}
	var buffer bytes.Buffer
	zipped := gzip.NewWriter(&buffer)
	archive := tar.NewWriter(zipped)
	if err := archive.AddFS(os.DirFS(folder)); err != nil {
		return nil, "", fmt.Errorf("it can't be packed: %w", err)
	}
	err := errors.Join(archive.Close(), zipped.Close())
	return buffer.Bytes(), said.Namespace, err
}

// namespace is where a subject goes: where its kustomization says, or else into one of its own.
func (s *subject) namespace() string { return cmp.Or(s.old.namespace, s.id) }

// withoutPackages returns the folders in which, and in whose folders, there is no package; of those within each other the outermost.
func withoutPackages(folders, packages []string) []string {
	var empty []string
	for _, folder := range folders {
		below := func(path string) bool { return strings.HasPrefix(path, folder+string(filepath.Separator)) }
		within := func(outer string) bool { return strings.HasPrefix(folder, outer+string(filepath.Separator)) }
		if !slices.ContainsFunc(packages, below) && !slices.ContainsFunc(empty, within) {
			empty = append(empty, folder)
		}
	}
	return empty
}

func isPackage(folder string) bool {
	_, err := os.Stat(filepath.Join(folder, "Chart.yaml"))
	return err == nil || isKustomization(folder)
}

func isKustomization(folder string) bool {
	return slices.ContainsFunc(konfig.RecognizedKustomizationFileNames(), func(name string) bool {
		_, err := os.Stat(filepath.Join(folder, name))
		return err == nil
	})
}

// archiveEnds are how names of archives end.
var archiveEnds = []string{".tgz", ".tar.gz"}

func isArchive(path string) bool { return withoutEnd(path) != path }

func withoutEnd(path string) string {
	for _, end := range archiveEnds {
		path = strings.TrimSuffix(path, end)
	}
	return path
}
