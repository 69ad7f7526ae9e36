package helm_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"helm.sh/helm/v4/pkg/chart/loader/archive"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/artifact"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/helm"
)

// kit is a namespace of a real API server with a carrier.
type kit struct {
	t         testing.TB
	carrier   *helm.Carrier
	cluster   *cluster
	user      client.Client
	faults    *operatortest.Faults
	requests  *atomic.Int64
	namespace string
}

func newKit(t testing.TB, config helm.Config) *kit {
	t.Helper()
	server := operatortest.Start(t)
	k := &kit{t: t, faults: operatortest.NewFaults(), requests: &atomic.Int64{}, namespace: server.Namespace(t)}
	var err error
	if k.carrier, err = helm.New(config); err != nil {
		t.Fatal(err)
	}
	k.user = operatortest.NewClient(t, server.RESTConfig(), nil)
	cfg := k.faults.Wrap(server.RESTConfig())
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return counting{next, k.requests} })
	if k.cluster, err = newCluster(cfg); err != nil {
		t.Fatal(err)
	}
	return k
}

// counting counts requests.
type counting struct {
	next http.RoundTripper
	n    *atomic.Int64
}

func (c counting) RoundTrip(r *http.Request) (*http.Response, error) {
	c.n.Add(1)
	return c.next.RoundTrip(r)
}

// cluster is a carrier.Cluster.
type cluster struct {
	client client.WithWatch
	config *rest.Config
	mapper *mapper
}

func newCluster(cfg *rest.Config) (*cluster, error) {
	m := &mapper{config: cfg}
	m.Reset()
	c, err := client.NewWithWatch(cfg, client.Options{Scheme: scheme.Scheme, Mapper: m})
	return &cluster{client: c, config: cfg, mapper: m}, err
}

func (c *cluster) Client() client.WithWatch    { return c.client }
func (c *cluster) RESTConfig() *rest.Config    { return rest.CopyConfig(c.config) }
func (c *cluster) RESTMapper() meta.RESTMapper { return c.mapper }

// mapper is a RESTMapper that can be made to forget.
type mapper struct {
	meta.RESTMapper
	config *rest.Config
	mu     sync.Mutex
}

func (m *mapper) Reset() {
	httpClient, err := rest.HTTPClientFor(m.config)
	if err != nil {
		panic(err)
	}
	fresh, err := apiutil.NewDynamicRESTMapper(m.config, httpClient)
	if err != nil {
		panic(err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.RESTMapper = fresh
}

func (m *mapper) RESTMapping(gk schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.RESTMapper.RESTMapping(gk, versions...)
}

// files are those of a chart, by name.
type files map[string]string

// with returns the files and more.
func (f files) with(name, content string) files {
	f = maps.Clone(f)
	f[name] = content
	return f
}

// chartOf is a chart with these templates, and whatever else has a name with a folder.
func chartOf(name, version string, templates files) files {
	all := files{"Chart.yaml": fmt.Sprintf("apiVersion: v2\nname: %s\nversion: %s\n", name, version)}
	for file, content := range templates {
		if !strings.Contains(file, "/") && file != "values.yaml" && file != "values.schema.json" && file != "Chart.yaml" {
			file = "templates/" + file
		}
		all[file] = content
	}
	return all
}

// source is a carrier.Source of a chart.
type source struct {
	files files
	calls *atomic.Int64
	err   error
}

func (s source) Chart(context.Context) (*artifact.Chart, error) {
	if s.calls != nil {
		s.calls.Add(1)
	}
	if s.err != nil {
		return nil, s.err
	}
	var buffered []*archive.BufferedFile
	for _, name := range slices.Sorted(maps.Keys(s.files)) {
		buffered = append(buffered, &archive.BufferedFile{Name: name, Data: []byte(s.files[name])})
	}
	c, err := loader.LoadFiles(buffered)
	if err != nil {
		return nil, err
	}
	return &artifact.Chart{Chart: c}, nil
}

func (s source) Files(context.Context) (*artifact.Files, string, error) {
	return nil, "", fmt.Errorf("it is a chart")
}

// fingerprintOf is what the state manager makes of what a service is made from.
func fingerprintOf(t testing.TB, service *carrier.Service) string {
	t.Helper()
	s, ok := service.Source.(source)
	if !ok {
		return service.Fingerprint
	}
	said, err := statemanager.Fingerprint(s.files, service.Values, service.Entry)
	if err != nil {
		t.Fatal(err)
	}
	return said
}

// service is a service in the kit's namespace.
func (k *kit) service(chart files, change ...func(*carrier.Service)) *carrier.Service {
	k.t.Helper()
	return serviceIn(k.t, k.namespace, chart, change...)
}

func serviceIn(t testing.TB, namespace string, chart files, change ...func(*carrier.Service)) *carrier.Service {
	t.Helper()
	service := &carrier.Service{
		Key:    client.ObjectKey{Namespace: namespace, Name: "web"},
		Owner:  carrier.Owner{Namespace: namespace, Name: "shop", UID: types.UID("uid-of-shop")},
		Entry:  &v1alpha1.ServiceWithValues{Name: "web", Namespace: namespace, Template: "web-1", Version: "1.0.0"},
		Source: source{files: chart}, Values: map[string]any{}, Secret: map[string]any{},
		Template: &v1alpha1.ServiceTemplate{ObjectMeta: metav1.ObjectMeta{Name: "web-1"}},
		Config:   statemanager.Config{SyncMode: v1alpha1.SyncModeContinuous},
	}
	for _, c := range change {
		c(service)
	}
	if service.Entry != nil {
		service.Fingerprint = fingerprintOf(t, service)
	}
	return service
}

func options(o v1alpha1.ServiceHelmOptions) func(*carrier.Service) {
	return func(s *carrier.Service) { s.Entry.HelmOptions = &o }
}

func values(v map[string]any) func(*carrier.Service) {
	return func(s *carrier.Service) { s.Values = v }
}

func mode(m v1alpha1.SyncMode) func(*carrier.Service) {
	return func(s *carrier.Service) { s.Config.SyncMode = m }
}

func named(name string) func(*carrier.Service) {
	return func(s *carrier.Service) { s.Key.Name, s.Entry.Name = name, name }
}

func owner(name string) func(*carrier.Service) {
	return func(s *carrier.Service) {
		s.Owner = carrier.Owner{Namespace: s.Owner.Namespace, Name: name, UID: types.UID("uid-of-" + name)}
	}
}

// gone is a service that is to be taken away.
func gone(s *carrier.Service) { s.Entry, s.Template, s.Source = nil, nil, nil }

func pointer[T any](v T) *T { return &v }

// compute computes and wants no error.
func (k *kit) compute(service *carrier.Service) *carrier.Result {
	k.t.Helper()
	result, err := k.carrier.Compute(k.t.Context(), k.cluster, k.cluster.client, service)
	if err != nil {
		k.t.Fatalf("compute: %v", err)
	}
	return result
}

// fails computes and wants an error that says all this.
func (k *kit) fails(service *carrier.Service, parts ...string) {
	k.t.Helper()
	_ = k.failure(service, parts...)
}

// failure is fails and returns the error.
func (k *kit) failure(service *carrier.Service, parts ...string) error {
	k.t.Helper()
	_, err := k.carrier.Compute(k.t.Context(), k.cluster, k.cluster.client, service)
	says(k.t, err, parts...)
	return err
}

func says(t testing.TB, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Fatal("there is no error")
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the error does not say %q: %v", part, err)
		}
	}
}

// carryOut carries out and wants no error.
func (k *kit) carryOut(service *carrier.Service, result *carrier.Result) {
	k.t.Helper()
	if err := k.carrier.CarryOut(k.t.Context(), k.cluster, service, result); err != nil {
		k.t.Fatalf("carry out: %v", err)
	}
}

// settle computes and carries out until there is nothing to do, and returns the last result.
func (k *kit) settle(service *carrier.Service) *carrier.Result {
	k.t.Helper()
	for range 10 {
		result := k.compute(service)
		if len(result.Changes) == 0 {
			return result
		}
		k.carryOut(service, result)
	}
	k.t.Fatalf("there is always something to do: %s", text(k.compute(service).Changes))
	return nil
}

// settled is settle for a removal or a health that takes its time.
func (k *kit) eventually(service *carrier.Service, what string, is func(*carrier.Result) bool) *carrier.Result {
	k.t.Helper()
	var last *carrier.Result
	operatortest.Eventually(k.t, what, func() error {
		result, err := k.carrier.Compute(k.t.Context(), k.cluster, k.cluster.client, service)
		if err != nil {
			return err
		}
		if len(result.Changes) > 0 {
			if err := k.carrier.CarryOut(k.t.Context(), k.cluster, service, result); err != nil {
				return err
			}
			return fmt.Errorf("there was something to do: %s", text(result.Changes))
		}
		last = result
		if !is(result) {
			return fmt.Errorf("it is %+v", result.Health)
		}
		return nil
	})
	return last
}

// text shows changes.
func text(changes []plan.Change) string {
	var b strings.Builder
	_ = plan.WriteChangesText(&b, changes, plan.TextOptions{MaxValue: -1, MaxLines: -1})
	return b.String()
}

// summary is what changes, in a line each.
func summary(changes []plan.Change) []string {
	var lines []string
	for _, c := range changes {
		lines = append(lines, string(c.Action)+" "+c.Object.Kind+" "+c.Object.Name)
	}
	return lines
}

func equal[T any](t testing.TB, what string, got, want T) {
	t.Helper()
	g, _ := json.Marshal(got)
	w, _ := json.Marshal(want)
	if string(g) != string(w) {
		t.Errorf("%s:\n got %s\nwant %s", what, g, w)
	}
}
