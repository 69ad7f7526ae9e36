package manifest_test

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/artifact"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/manifest"
)

// kit is a namespace of a real API server with a carrier.
type kit struct {
	t         *testing.T
	carrier   *manifest.Carrier
	cluster   *cluster
	user      client.Client
	faults    *operatortest.Faults
	requests  *atomic.Int64
	namespace string
}

func newKit(t *testing.T) *kit {
	t.Helper()
	return newKitWith(t, manifest.Config{DefinitionTimeout: 5 * time.Minute}) // a busy API server takes its time
}

func newKitWith(t *testing.T, config manifest.Config) *kit {
	t.Helper()
	server := operatortest.Start(t)
	k := &kit{t: t, faults: operatortest.NewFaults(), requests: &atomic.Int64{}, namespace: server.Namespace(t)}
	var err error
	if k.carrier, err = manifest.New(config); err != nil {
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
func (c *cluster) RESTConfig() *rest.Config    { return c.config }
func (c *cluster) RESTMapper() meta.RESTMapper { return c.mapper }

// mapper is a RESTMapper that can be made to forget.
type mapper struct {
	meta.RESTMapper
	config *rest.Config
	mu     sync.Mutex
}

func (m *mapper) Reset() {
	m.mu.Lock()
	defer m.mu.Unlock()
	client, err := rest.HTTPClientFor(m.config)
	if err != nil {
		panic(err)
	}
	if m.RESTMapper, err = apiutil.NewDynamicRESTMapper(m.config, client); err != nil {
		panic(err)
	}
}

func (m *mapper) RESTMapping(gk schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.RESTMapper.RESTMapping(gk, versions...)
}

// files are the files of a template.
type files map[string]string

// source is a carrier.Source of files.
type source struct {
	files  files
	folder string
	err    error
	calls  int
}

func (s *source) Chart(context.Context) (*artifact.Chart, error) {
	return nil, fmt.Errorf("it is no chart")
}

func (s *source) Files(context.Context) (*artifact.Files, string, error) {
	s.calls++
	if s.err != nil {
		return nil, "", s.err
	}
	content := fstest.MapFS{}
	for name, text := range s.files {
		content[name] = &fstest.MapFile{Data: []byte(text), Mode: 0o644}
	}
	return &artifact.Files{FS: content, Digest: "sha256:0"}, s.folder, nil
}

// option changes a service.
type option func(*carrier.Service)

// service returns the service web of plain manifests. Its fingerprint is that of all it is made of.
func (k *kit) service(content files, options ...option) *carrier.Service {
	k.t.Helper()
	s := &carrier.Service{
		Key:   client.ObjectKey{Namespace: k.namespace, Name: "web"},
		Owner: carrier.Owner{Namespace: "platform", Name: "prod", UID: "1"},
		Entry: &v1alpha1.ServiceWithValues{Name: "web", Namespace: k.namespace, Template: "web-1", Version: "1.0.0"},
		Template: &v1alpha1.ServiceTemplate{Spec: v1alpha1.ServiceTemplateSpec{
			Resources: &v1alpha1.FileSource{LocalSource: &v1alpha1.LocalSource{Kind: "ConfigMap", Name: "files"}},
		}},
		Source: &source{files: content, folder: "."},
		Config: statemanager.Config{SyncMode: v1alpha1.SyncModeContinuous},
	}
	s.Template.Name = "web-1"
	for _, o := range options {
		o(s)
	}
	var err error
	s.Fingerprint, err = statemanager.Fingerprint(content, s.Values, s.Template.Spec)
	if err != nil {
		k.t.Fatal(err)
	}
	return s
}

func kustomize(folder string) option {
	return func(s *carrier.Service) {
		s.Template.Spec = v1alpha1.ServiceTemplateSpec{Kustomize: s.Template.Spec.Resources}
		s.Source.(*source).folder = folder
	}
}

func mode(m v1alpha1.SyncMode) option {
	return func(s *carrier.Service) { s.Config.SyncMode = m }
}

func stopOnConflict(s *carrier.Service) { s.Config.StopOnConflict = true }

func ownedBy(name string, uid types.UID) option {
	return func(s *carrier.Service) { s.Owner.Name, s.Owner.UID = name, uid }
}

func named(name string) option {
	return func(s *carrier.Service) { s.Key.Name, s.Entry.Name = name, name }
}

func values(text string) option {
	return func(s *carrier.Service) {
		if err := sigsyaml.Unmarshal([]byte(text), &s.Values); err != nil {
			panic(err)
		}
	}
}

func secretValues(text string) option {
	return func(s *carrier.Service) {
		if err := sigsyaml.Unmarshal([]byte(text), &s.Secret); err != nil {
			panic(err)
		}
	}
}

// gone is the same service, to be taken away.
func gone(s *carrier.Service) *carrier.Service {
	return &carrier.Service{Key: s.Key, Owner: s.Owner, Config: s.Config}
}

// compute computes, and expects no error.
func (k *kit) compute(s *carrier.Service) *carrier.Result {
	k.t.Helper()
	result, err := k.carrier.Compute(k.t.Context(), k.cluster, k.cluster.client, s)
	if err != nil {
		k.t.Fatalf("compute: %v", err)
	}
	return result
}

// refused computes, and expects an error.
func (k *kit) refused(s *carrier.Service) error {
	k.t.Helper()
	before := k.faults.Count()
	_, err := k.carrier.Compute(k.t.Context(), k.cluster, k.cluster.client, s)
	if err == nil {
		k.t.Fatal("it computes, and is expected not to")
	}
	if n := k.faults.Count() - before; n > 0 {
		k.t.Errorf("computing wrote %d times", n)
	}
	return err
}

// carryOut carries a result out, and expects no error.
func (k *kit) carryOut(s *carrier.Service, r *carrier.Result) {
	k.t.Helper()
	if err := k.carrier.CarryOut(k.t.Context(), k.cluster, s, r); err != nil {
		k.t.Fatalf("carry out: %v", err)
	}
}

// settle computes and carries out until there is nothing to do, and returns the last result.
func (k *kit) settle(s *carrier.Service) *carrier.Result {
	k.t.Helper()
	for range 10 {
		result := k.compute(s)
		if len(result.Changes) == 0 {
			return result
		}
		k.carryOut(s, result)
	}
	k.t.Fatal("there is still something to do after ten rounds")
	return nil
}

// told are changes in few words.
func told(changes []plan.Change) []string {
	words := []string{}
	for _, c := range changes {
		words = append(words, fmt.Sprintf("%s %s %s", c.Action, c.Object.Kind, c.Object.Name))
	}
	return words
}

func (k *kit) wants(changes []plan.Change, want ...string) {
	k.t.Helper()
	if diff := cmp.Diff(append([]string{}, want...), told(changes)); diff != "" {
		k.t.Errorf("changes (-want +got):\n%s", diff)
	}
}

func (k *kit) wantsPhase(r *carrier.Result, phase v1alpha1.ServicePhase) {
	k.t.Helper()
	if r.Health.Phase != phase {
		k.t.Errorf("the service is %s (%s), and should be %s", r.Health.Phase, r.Health.Message, phase)
	}
}

func (k *kit) configMap(name string) *corev1.ConfigMap {
	k.t.Helper()
	return fetchAs(k, name, &corev1.ConfigMap{})
}

// fetchAs reads an object of the namespace.
func fetchAs[T client.Object](k *kit, name string, obj T) T {
	k.t.Helper()
	if err := k.user.Get(k.t.Context(), client.ObjectKey{Namespace: k.namespace, Name: name}, obj); err != nil {
		k.t.Fatal(err)
	}
	return obj
}

// exists tells whether an object of the namespace is there.
func (k *kit) exists(name string, obj client.Object) bool {
	k.t.Helper()
	err := k.user.Get(k.t.Context(), client.ObjectKey{Namespace: k.namespace, Name: name}, obj)
	if client.IgnoreNotFound(err) != nil {
		k.t.Fatal(err)
	}
	return err == nil
}

func (k *kit) create(obj client.Object) {
	k.t.Helper()
	if err := k.user.Create(k.t.Context(), obj, client.FieldOwner("kubectl")); err != nil {
		k.t.Fatal(err)
	}
}

// patch changes an object as a person would.
func (k *kit) patch(obj client.Object, patch string) {
	k.t.Helper()
	err := k.user.Patch(k.t.Context(), obj, client.RawPatch(types.MergePatchType, []byte(patch)), client.FieldOwner("kubectl-edit"))
	if err != nil {
		k.t.Fatal(err)
	}
}

// configMap is the manifest of a config map.
func configMap(name, data string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: %s\ndata:\n  text: %q\n", name, data)
}

type schemaGVK = schema.GroupVersionKind

func keyOf(namespace, name string) client.ObjectKey {
	return client.ObjectKey{Namespace: namespace, Name: name}
}

// canceling is a source during which the context ends.
type canceling struct {
	carrier.Source
	cancel func()
}

func (c *canceling) Files(ctx context.Context) (*artifact.Files, string, error) {
	defer c.cancel()
	return c.Source.Files(ctx)
}
