package inspector_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/giantswarm/micrologger"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/operator/inspector"
	"github.com/operatorkit/operatorkit/operator/operatortest"
)

// kind is the name of the framework under test.
const kind = "sites.example.com"

// failsKey is the key in the data of a site whose value is the error of its reconciliation.
const failsKey = "fails"

func quiet(t testing.TB) micrologger.Logger {
	t.Helper()
	logger, err := micrologger.New(micrologger.Config{IOWriter: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	return logger
}

// pages are what sites become: a ConfigMap with the same data for each, kept in memory.
type pages struct {
	mu      sync.Mutex
	written map[string]*corev1.ConfigMap
}

func (*pages) Name() string { return "pages" }

func (p *pages) GetCurrentState(_ context.Context, site *corev1.ConfigMap) (*corev1.ConfigMap, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.written[site.Name], nil
}

func (p *pages) GetDesiredState(_ context.Context, site *corev1.ConfigMap) (*corev1.ConfigMap, error) {
	if text := site.Data[failsKey]; text != "" {
		return nil, errors.New(text)
	}
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: site.Namespace, Name: site.Name + "-page"}, Data: site.Data,
	}, nil
}

func (p *pages) NewUpdatePatch(_ context.Context, _, current, desired *corev1.ConfigMap) (*framework.TypedPatch[*corev1.ConfigMap], error) {
	patch := framework.NewTypedPatch[*corev1.ConfigMap]()
	switch {
	case current == nil:
		patch.SetCreateChange(desired)
	case fmt.Sprint(current.Data) != fmt.Sprint(desired.Data):
		patch.SetUpdateChange(desired)
	}
	return patch, nil
}

func (p *pages) NewDeletePatch(_ context.Context, _, current, _ *corev1.ConfigMap) (*framework.TypedPatch[*corev1.ConfigMap], error) {
	patch := framework.NewTypedPatch[*corev1.ConfigMap]()
	if current != nil {
		patch.SetDeleteChange(current)
	}
	return patch, nil
}

func (p *pages) write(site, page *corev1.ConfigMap) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.written[site.Name] = page
	return nil
}

func (p *pages) ApplyCreateChange(_ context.Context, site, page *corev1.ConfigMap) error {
	return p.write(site, page)
}

func (p *pages) ApplyUpdateChange(_ context.Context, site, page *corev1.ConfigMap) error {
	return p.write(site, page)
}

func (p *pages) ApplyDeleteChange(_ context.Context, site, _ *corev1.ConfigMap) error {
	return p.write(site, nil)
}

// site is a primary object. data are pairs of keys and values.
func site(name string, data ...string) *corev1.ConfigMap {
	cm := &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "example.com/v1", Kind: "Site"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("uid-" + name)}, Data: map[string]string{},
	}
	for i := 0; i+1 < len(data); i += 2 {
		cm.Data[data[i]] = data[i+1]
	}
	return cm
}

// world is an operator with an inspector, in one process.
type world struct {
	t         testing.TB
	sites     *informer.Push
	framework *framework.Framework
	inspector *inspector.Inspector
	// url is where it is served, and client asks there.
	url    string
	client *http.Client
}

// start runs an operator with these sites. Further resources run after the pages.
func start(t testing.TB, config inspector.Config, sites []*corev1.ConfigMap, resources ...framework.Resource) *world {
	t.Helper()
	if config.Name == "" {
		config.Name = "site-operator"
	}
	if config.Logger == nil {
		config.Logger = quiet(t)
	}
	source := informer.NewPush(kind)
	for _, s := range sites {
		if err := source.Update(s); err != nil {
			t.Fatal(err)
		}
	}
	crud := crudOf(t, config.Logger, &pages{written: map[string]*corev1.ConfigMap{}})
	return startFramework(t, config, framework.Config{Source: source, Resources: append([]framework.Resource{crud}, resources...)})
}

// startFramework runs an operator with a framework, whose source is an informer.Push if sites are to change.
func startFramework(t testing.TB, config inspector.Config, of framework.Config) *world {
	t.Helper()
	i, err := inspector.New(config)
	if err != nil {
		t.Fatal(err)
	}
	of.Name, of.Logger, of.Observer = cmp.Or(of.Name, kind), config.Logger, i
	of.BackOffFactory = func() backoff.BackOff { return backoff.NewConstantBackOff(time.Hour) }
	f, err := framework.New(of)
	if err != nil {
		t.Fatal(err)
	}
	i.Watch(f)
	server := httptest.NewServer(i)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { i.Run(ctx) })
	running.Go(func() {
		if err := f.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		cancel()
		running.Wait()
		server.CloseClientConnections()
		server.Close()
		i.Close()
	})
	sites, _ := of.Source.(*informer.Push)
	return &world{t: t, sites: sites, framework: f, inspector: i, url: server.URL, client: server.Client()}
}

func (w *world) put(s *corev1.ConfigMap) {
	w.t.Helper()
	if err := w.sites.Update(s); err != nil {
		w.t.Fatal(err)
	}
}

// get asks for a path below /inspector/, which must be answered with the status.
func (w *world) get(path string, status int) string {
	w.t.Helper()
	answer, err := w.client.Get(w.url + "/inspector/" + path)
	return w.text(answer, err, status)
}

// post sends a form to a path below /inspector/.
func (w *world) post(path string, form url.Values, status int) string {
	w.t.Helper()
	answer, err := w.client.PostForm(w.url+"/inspector/"+path, form)
	return w.text(answer, err, status)
}

func (w *world) text(answer *http.Response, err error, status int) string {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	if answer.StatusCode != status {
		w.t.Fatalf("%s %s answers %s, want %d:\n%s", answer.Request.Method, answer.Request.URL, answer.Status, status, text)
	}
	return string(text)
}

// read asks the JSON interface.
func read[T any](w *world, path string) T {
	w.t.Helper()
	var value T
	if err := json.Unmarshal([]byte(w.get("api/v1/"+path, http.StatusOK)), &value); err != nil {
		w.t.Fatal(err)
	}
	return value
}

// reconciled waits until so many reconciliations have ended since the start.
func (w *world) reconciled(count uint64) {
	w.t.Helper()
	operatortest.Eventually(w.t, fmt.Sprintf("%d reconciliations have ended", count), func() bool {
		// They are counted before they are remembered, by workers that are busy until then.
		return read[inspector.Overview](w, "overview").Frameworks[0].Reconciled >= count && w.framework.Status().Active == 0
	})
}

// queryOf names a site in a query.
func queryOf(name string) url.Values {
	return url.Values{"framework": {kind}, "namespace": {"default"}, "name": {name}}
}

func objectPath(name string) string { return "object?" + queryOf(name).Encode() }

// drawnPath is that of a page that waits for its graph however busy the machine is.
func drawnPath(name string) string { return objectPath(name) + "&wait=true" }

// lacks fails the test when one of the texts is in a page.
func lacks(t testing.TB, page string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if strings.Contains(page, text) {
			t.Errorf("the page has %q:\n%s", text, page)
		}
	}
}

// has fails the test when one of the texts is not in a page.
func has(t testing.TB, page string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(page, text) {
			t.Errorf("the page lacks %q:\n%s", text, page)
		}
	}
}

// plain is a plain resource made of a function.
type plain struct {
	name string
	do   func(ctx context.Context, site *corev1.ConfigMap) error
}

func (p *plain) Name() string { return p.name }

func (p *plain) EnsureCreated(ctx context.Context, obj any) error {
	return p.do(ctx, obj.(*corev1.ConfigMap))
}

func (p *plain) EnsureDeleted(context.Context, any) error { return nil }
