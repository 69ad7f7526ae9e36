package helm

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"path"
	"slices"
	"strings"

	chartcommon "helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	"helm.sh/helm/v4/pkg/engine"
	release "helm.sh/helm/v4/pkg/release/v1"
	releaseutil "helm.sh/helm/v4/pkg/release/v1/util"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/resource/internal/yamlsize"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
)

// rendering is what a chart comes to on a cluster.
type rendering struct {
	chart        *chart.Chart
	capabilities *chartcommon.Capabilities
	// files are what the templates came to, without the notes.
	files     map[string]string
	hooks     []*release.Hook
	manifests []releaseutil.Manifest
	notes     string
	// remarks are what there is to say about the chart.
	remarks []string
	// definitions are those in crds/, objects those of the manifests, in the order in which they are applied, without the labels of
	// the service.
	definitions carrier.Definitions
	objects     []*unstructured.Unstructured
	// applied are the definitions that are applied before the release is made, and defining is what that changes.
	applied  carrier.Definitions
	defining []plan.Change
}

// render fetches the chart and renders it for a revision. Revision 1 is an installation.
func (j *job) render(ctx context.Context, revision int, install bool) (*rendering, error) {
	fetched, err := j.service.Source.Chart(ctx)
	if err != nil {
		return nil, err // it says which chart, and from where
	}
	whole := fetched.Chart
	if err := checkDependencies(whole); err != nil {
		return nil, err
	}
	if err := j.checkGlobals(whole, j.service.Values); err != nil {
		return nil, err
	}
	if !j.options.skipSchema {
		if err := checkSchema(whole); err != nil {
			return nil, err
		}
	}
	capabilities, err := j.capabilities(ctx)
	if err != nil {
		return nil, err
	}
	if wants := whole.Metadata.KubeVersion; wants != "" && !chartutil.IsCompatibleRange(wants, capabilities.KubeVersion.String()) {
		return nil, fmt.Errorf("the chart is for Kubernetes %s and the cluster has %s: use another version of the chart", wants, capabilities.KubeVersion.Version)
	}
	r := &rendering{chart: whole, capabilities: capabilities}
	err = j.bounded(ctx, func(ctx context.Context) error {
		return r.execute(ctx, j, chartcommon.ReleaseOptions{
			Name: j.service.Key.Name, Namespace: j.service.Key.Namespace, Revision: revision, IsInstall: install, IsUpgrade: !install,
		})
	})
	if err != nil {
		return nil, err
	}
	return r, r.read(j)
}

// execute runs the templates.
func (r *rendering) execute(ctx context.Context, j *job, release chartcommon.ReleaseOptions) error {
	values := j.service.Values
	if values == nil {
		values = map[string]any{}
	}
	if err := chartutil.ProcessDependencies(r.chart, values); err != nil {
		return fmt.Errorf("process the dependencies of the chart: %w", err)
	}
	if err := j.readDefinitions(r); err != nil {
		return err
	}
	if err := j.planDefinitions(ctx, r); err != nil {
		return err
	}
	r.offer()
	toRender, err := util.ToRenderValuesWithSchemaValidation(r.chart, values, release, r.capabilities, j.options.skipSchema)
	if err != nil {
		return framework.Permanent(fmt.Errorf("values: %w", err))
	}
	config := j.cluster.RESTConfig()
	helm := engine.New(config)
	helm.CustomTemplateFuncs = functions(ctx)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return bound{ctx, next} })
	helm.CustomTemplateFuncs["lookup"] = r.lookup(j.mapper, engine.NewLookupFunction(config))
	files, err := helm.RenderWithContext(ctx, r.chart, toRender)
	if err != nil {
		return fmt.Errorf("render the chart: %w", err)
	}
	r.files, r.notes = files, takeNotes(r.chart, files)
	if err := weigh(files); err != nil {
		return framework.Permanent(err)
	}
	if err := r.patch(ctx, j); err != nil {
		return err
	}
	r.leaveOut()
	if r.hooks, r.manifests, err = releaseutil.SortManifests(files, nil, releaseutil.InstallOrder); err != nil {
		return framework.Permanent(fmt.Errorf("what the chart renders: %w", err))
	}
	return nil
}

// takeNotes takes the notes of a chart, and those of its dependencies, out of what was rendered.
func takeNotes(c *chart.Chart, files map[string]string) string {
	notes := ""
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if !strings.HasSuffix(name, "NOTES.txt") {
			continue
		}
		if name == path.Join(c.Name(), "templates", "NOTES.txt") {
			notes = files[name]
		}
		delete(files, name)
	}
	return notes
}

// read makes objects of the definitions and the manifests.
func (r *rendering) read(j *job) error {
	text := r.manifest()
	for _, h := range r.hooks {
		if _, err := checked(h.Manifest); err != nil {
			return err
		}
	}
	all, err := checked(text)
	if err != nil {
		return err
	}
	if r.objects, err = j.placed(text, r.definitions, false); err != nil {
		return err
	}
	for _, u := range r.objects {
		if isNameless(u) {
			return framework.Permanent(fmt.Errorf("the chart renders a %s without a name", u.GetKind()))
		}
	}
	if rendered := len(all); rendered > len(r.objects) {
		r.remarks = append(r.remarks, fmt.Sprintf("of %d objects that the chart renders %d are there more than once: the last one counts",
			rendered, rendered-len(r.objects)))
	}
	return nil
}

// manifest is that of the release, as Helm writes it.
func (r *rendering) manifest() string {
	var text strings.Builder
	for _, m := range r.manifests {
		fmt.Fprintf(&text, "---\n# Source: %s\n%s\n", m.Name, m.Content)
	}
	return text.String()
}

// readDefinitions reads those of crds/, unless they are to be skipped. Dependencies that are switched off are not in the chart any more.
func (j *job) readDefinitions(r *rendering) error {
	if j.options.skipCRDs {
		return nil
	}
	left := largestManifest
	for _, file := range r.chart.CRDObjects() {
		n, err := yamlsize.Of(file.File.Data, left)
		if err != nil {
			return framework.Permanent(fmt.Errorf("crds/ of the chart: %w", errTooLarge))
		}
		left -= n
		objects, err := checked(string(file.File.Data))
		if err != nil {
			return framework.Permanent(fmt.Errorf("%s: %w", file.Filename, err))
		}
		r.definitions = append(r.definitions, carrier.DefinitionsIn(objects)...)
	}
	return nil
}

// bounded waits for a place, and runs f until its end or the deadline of renderings. After the deadline f is left alone, and keeps its place: the same chart with the
// same values is not rendered a second time until it has ended.
func (j *job) bounded(ctx context.Context, f func(context.Context) error) error {
	fingerprint := j.service.Fingerprint
	if j.renderings.isEndless(fingerprint) {
		return j.endless()
	}
	timeout := j.config.RenderTimeout
	// Waiting has a deadline of its own: a chart is not to blame for those before it.
	waiting, stop := context.WithTimeout(ctx, timeout)
	giveBack, err := j.renderings.take(waiting, j.service.Owner.Namespace)
	stop()
	if err != nil {
		return fmt.Errorf("wait for other charts that are being rendered: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	// Whoever comes first, the end of f or the deadline, makes over to the other what is left to do.
	done, over := make(chan error), make(chan bool, 1)
	go func() {
		defer giveBack()
		err := rendered(ctx, f)
		select {
		case done <- err:
		case late := <-over:
			if late {
				j.renderings.ended(fingerprint)
			}
		}
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
			over <- false
			return ctx.Err()
		}
		j.renderings.late(fingerprint)
		over <- true
		return j.endless()
	}
}

// rendered runs f. A panic is an error.
func rendered(ctx context.Context, f func(context.Context) error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = framework.Permanent(errors.New("the chart can't be rendered: a template panicked"))
		}
	}()
	return f(ctx)
}

// endless is the error for a chart that is not rendered in time.
func (j *job) endless() error {
	return framework.Permanent(fmt.Errorf("the templates of the chart did not end within %s: look for a loop in them", j.config.RenderTimeout))
}

// capabilities asks the cluster what it can do.
func (j *job) capabilities(ctx context.Context) (*chartcommon.Capabilities, error) {
	found, err := discovery.NewDiscoveryClientForConfig(j.cluster.RESTConfig())
	if err != nil {
		return nil, fmt.Errorf("make a discovery client for the cluster: %w", err)
	}
	version, err := found.ServerVersionWithContext(ctx)
	if err != nil {
		return nil, fmt.Errorf("ask the cluster for its version: %w", err)
	}
	groups, resources, err := found.ServerGroupsAndResourcesWithContext(ctx)
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) {
		return nil, fmt.Errorf("ask the cluster for its kinds: %w", err)
	}
	// As Helm has them: the versions of groups, and the kinds in each.
	var apis chartcommon.VersionSet
	for _, group := range groups {
		for _, v := range group.Versions {
			apis = append(apis, v.GroupVersion)
		}
	}
	for _, list := range resources {
		for _, r := range list.APIResources {
			apis = append(apis, path.Join(list.GroupVersion, r.Kind))
		}
	}
	slices.Sort(apis)
	return &chartcommon.Capabilities{
		APIVersions: slices.Compact(apis), HelmVersion: chartcommon.DefaultCapabilities.HelmVersion,
		KubeVersion: chartcommon.KubeVersion{Version: version.GitVersion, Major: version.Major, Minor: version.Minor},
	}, nil
}

// checkDependencies wants the charts that a chart depends on to be in it.
func checkDependencies(c *chart.Chart) error {
	var missing []string
	for _, d := range c.Metadata.Dependencies {
		if !slices.ContainsFunc(c.Dependencies(), func(sub *chart.Chart) bool { return sub.Name() == d.Name }) {
			missing = append(missing, d.Name)
		}
	}
	if len(missing) > 0 {
		return framework.Permanent(fmt.Errorf("charts it depends on are found in Chart.yaml, but missing in charts/ directory: %s: "+
			"pack it with `helm package --dependency-update`", strings.Join(missing, ", ")))
	}
	return nil
}

// checkGlobals refuses global values of which a chart has a table and the values something else, or the other way round: Helm
// would ignore them, and print them into the log of the process.
func (j *job) checkGlobals(c *chart.Chart, values map[string]any) error {
	globals, _ := values[chartcommon.GlobalKey].(map[string]any)
	for _, sub := range c.Dependencies() {
		of, _ := values[sub.Name()].(map[string]any)
		defaults, _ := c.Values[sub.Name()].(map[string]any)
		for _, own := range []map[string]any{of, defaults} {
			inner, _ := own[chartcommon.GlobalKey].(map[string]any)
			for name, value := range inner {
				outer, ok := globals[name]
				_, isTable := value.(map[string]any)
				_, wantsTable := outer.(map[string]any)
				if ok && isTable != wantsTable {
					return framework.Permanent(fmt.Errorf("values: global.%s is a table in one place and none in %s.global", name, sub.Name()))
				}
			}
		}
		merged := maps.Clone(of)
		if merged == nil {
			merged = map[string]any{}
		}
		if globals != nil {
			merged[chartcommon.GlobalKey] = globals
		}
		if err := j.checkGlobals(sub, merged); err != nil {
			return err
		}
	}
	return nil
}
