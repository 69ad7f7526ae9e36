package platform

import (
	"cmp"
	"context"
	"embed"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/Masterminds/semver/v3"
	"helm.sh/helm/v4/pkg/chart/loader/archive"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/chart/v2/util"
	"helm.sh/helm/v4/pkg/registry"
)

//go:embed charts
var charts embed.FS

// chartVersion is one version of a chart. The folder of a version has the files that differ from the version before it.
type chartVersion struct {
	chart   string
	version *semver.Version
}

// chartVersions returns all versions of all charts, the older ones of a chart first.
func chartVersions() ([]chartVersion, error) {
	folders, err := fs.Glob(charts, "charts/*/*")
	if err != nil {
		return nil, err
	}
	versions := make([]chartVersion, len(folders))
	for i, folder := range folders {
		version, err := semver.StrictNewVersion(path.Base(folder))
		if err != nil {
			return nil, fmt.Errorf("folder %s: %w", folder, err)
		}
		versions[i] = chartVersion{path.Base(path.Dir(folder)), version}
	}
	slices.SortFunc(versions, func(a, b chartVersion) int {
		return cmp.Or(cmp.Compare(a.chart, b.chart), a.version.Compare(b.version))
	})
	return versions, nil
}

// PublishCharts pushes all versions of all charts to an OCI registry without TLS, as "helm push" does, and returns how many.
// The host is its address, without a scheme.
func PublishCharts(ctx context.Context, host string) (int, error) {
	versions, err := chartVersions()
	if err != nil {
		return 0, fmt.Errorf("read the charts: %w", err)
	}
	folder, err := os.MkdirTemp("", "charts-")
	if err != nil {
		return 0, fmt.Errorf("make a folder for the charts: %w", err)
	}
	defer func() { _ = os.RemoveAll(folder) }()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	client, err := registry.NewClient(registry.ClientOptPlainHTTP(), registry.ClientOptHTTPClient(&http.Client{Transport: transport}),
		registry.ClientOptCredentialsFile(filepath.Join(folder, "config.json")))
	if err != nil {
		return 0, fmt.Errorf("make a client of the registry: %w", err)
	}
	for i, v := range versions {
		if ctx.Err() != nil {
			return 0, ctx.Err()
		}
		packed, err := v.pack(versions[:i], folder)
		if err == nil {
			_, err = client.Push(packed, fmt.Sprintf("%s/%s:%s", host, v.chart, v.version))
		}
		if err != nil {
			return 0, fmt.Errorf("publish chart %s %s: %w", v.chart, v.version, err)
		}
	}
	return len(versions), nil
}

// pack makes the archive of a version, as "helm package" does. The earlier ones are those before it in the list of all.
func (v chartVersion) pack(earlier []chartVersion, folder string) ([]byte, error) {
	files := map[string][]byte{}
	for _, layer := range append(slices.Clone(earlier), v) {
		if layer.chart != v.chart {
			continue
		}
		if err := layer.read(files); err != nil {
			return nil, err
		}
	}
	var loaded []*archive.BufferedFile
	for name, data := range files {
		loaded = append(loaded, &archive.BufferedFile{Name: name, Data: data})
	}
	chart, err := loader.LoadFiles(loaded)
	if err != nil {
		return nil, err
	}
	file, err := util.Save(chart, folder)
	if err != nil {
		return nil, err
	}
	return os.ReadFile(file)
}

// read adds the files of the version's folder.
func (v chartVersion) read(files map[string][]byte) error {
	folder, err := fs.Sub(charts, path.Join("charts", v.chart, v.version.String()))
	if err != nil {
		return err
	}
	return fs.WalkDir(folder, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		files[name], err = fs.ReadFile(folder, name)
		return err
	})
}
