package fetch

import (
	"bytes"
	"fmt"
	"path"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/chart/loader/archive"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"

	"github.com/operatorkit/operatorkit/internal/panics"
	"github.com/operatorkit/operatorkit/resource/internal/yamlsize"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/artifact"
)

// utf8Mark is what some editors begin a file with; Helm does not want it either.
var utf8Mark = []byte{0xEF, 0xBB, 0xBF}

// unpackChart reads the archive of a chart. Helm's own reader is not used on archives: it has no limits on the number of
// entries and on charts in charts.
func unpackChart(content []byte, limits Limits) (*artifact.Chart, error) {
	files, err := limits.unpacking().chart(content)
	if err != nil {
		return nil, err
	}
	c, err := load(files)
	if err != nil {
		return nil, err
	}
	if v := c.Metadata.APIVersion; v != chart.APIVersionV1 && v != chart.APIVersionV2 {
		return nil, permanent(ErrInvalid, "use a chart of apiVersion v2", "its apiVersion is %q", v)
	}
	return &artifact.Chart{Chart: c}, nil
}

// load gives files to Helm. Nothing that Helm does with them may end the operator.
func load(files []*archive.BufferedFile) (c *chart.Chart, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = noChart(fmt.Errorf("reading it: %s", panics.Describe(r)))
		}
	}()
	c, err = loader.LoadFiles(files)
	if err != nil {
		return nil, noChart(err)
	}
	return c, nil
}

func noChart(err error) error {
	return permanent(ErrInvalid, "look at it with `helm lint` and publish it again", "it is no chart that can be used (%s)", plain(wanted{}, err))
}

// chart returns the files of a chart, without the folder that all of them are in, and with the archives of the charts that
// it depends on unpacked.
func (u *unpacking) chart(content []byte) ([]*archive.BufferedFile, error) {
	files, err := u.read(bytes.NewReader(content))
	if err != nil {
		return nil, err
	}
	var all []*archive.BufferedFile
	tree := newTree()
	for _, f := range files {
		top, name, ok := strings.Cut(f.name, "/")
		if !ok {
			return nil, permanent(ErrInvalid, "pack it with `helm package`", "it is no chart: it has the file %q outside of a folder", top)
		}
		if err := tree.add(name); err != nil {
			return nil, err
		}
		if isParsed(name) {
			if u.nodes -= nodes(f.data); u.nodes < 0 {
				return nil, tooLarge("Limits.Unpacked", "shorten its values.yaml", "%s has too many values", name)
			}
			if _, err := yamlsize.Of(f.data, largestParsed); err != nil {
				return nil, permanent(ErrTooLarge, "use fewer aliases, or shorten it",
					"%s is too large: it has more than %d bytes, with aliases as what they stand for", name, largestParsed)
			}
		}
		if !isDependency(name) {
			all = append(all, &archive.BufferedFile{Name: name, ModTime: f.time, Data: bytes.TrimPrefix(f.data, utf8Mark)})
			continue
		}
		inner, err := u.chart(f.data)
		if err != nil {
			return nil, within(name, err)
		}
		for _, i := range inner {
			// A folder with the ending .tgz would be taken for an archive.
			i.Name = name + ".unpacked/" + i.Name
			all = append(all, i)
		}
	}
	if !slices.ContainsFunc(all, func(f *archive.BufferedFile) bool { return f.Name == "Chart.yaml" }) {
		return nil, permanent(ErrInvalid, "pack it with `helm package`", "it is no chart: it has no Chart.yaml")
	}
	return all, nil
}

// largestParsed is how large a file that Helm parses may be with the aliases of its YAML as what they stand for, in bytes.
const largestParsed = 16 << 20

// within says in which archive of an archive something is wrong.
func within(name string, err error) error {
	e, ok := err.(*Error) //nolint:errorlint // The reader of archives returns only these, and never wrapped.
	if !ok {
		return err
	}
	said := *e
	said.Reason = fmt.Sprintf("in %s: %s", name, e.Reason)
	return &said
}

// isDependency tells whether Helm would open a file as the archive of a chart: charts/b.tgz, also in charts/a.
func isDependency(name string) bool {
	parts := strings.Split(name, "/")
	if len(parts)%2 != 0 || path.Ext(name) != ".tgz" {
		return false
	}
	for i := 0; i < len(parts); i += 2 {
		if parts[i] != "charts" {
			return false
		}
	}
	return true
}

// isParsed tells whether Helm parses a file when it loads a chart.
func isParsed(name string) bool {
	switch path.Base(name) {
	case "Chart.yaml", "Chart.lock", "values.yaml", "requirements.yaml", "requirements.lock":
		return true
	}
	return false
}

// isChart compares a chart with what the template names: a repository says where a chart is, but does not make it one.
func isChart(c *artifact.Chart, from v1alpha1.HelmChart) error {
	if c.Metadata.Name != path.Base(from.Chart) {
		return permanent(ErrInvalid, "mend the repository", "what is there is the chart %q", c.Metadata.Name)
	}
	if !sameVersion(c.Metadata.Version, from.Version) {
		return permanent(ErrInvalid, "mend the repository, or the version in the template", "what is there has the version %q", c.Metadata.Version)
	}
	return nil
}
