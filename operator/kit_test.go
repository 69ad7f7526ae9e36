package operator_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/giantswarm/micrologger"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/logging"
	"github.com/operatorkit/operatorkit/operator/operatortest"
)

func TestMain(m *testing.M) { operatortest.VerifyTestMain(m) }

func logTo(t testing.TB, w io.Writer) micrologger.Logger {
	t.Helper()
	logger, err := logging.New(logging.Config{Writer: w, Format: logging.FormatText, Level: logging.LevelDebug})
	if err != nil {
		t.Fatal(err)
	}
	return logger
}

func quiet(t testing.TB) micrologger.Logger { return logTo(t, io.Discard) }

// resource is a plain resource made of a function.
type resource struct {
	created func(ctx context.Context, obj any) error
}

func (r *resource) Name() string { return "resource" }

func (r *resource) EnsureCreated(ctx context.Context, obj any) error {
	if r.created == nil {
		return nil
	}
	return r.created(ctx, obj)
}

func (r *resource) EnsureDeleted(context.Context, any) error { return nil }

func routerOf(t testing.TB, resources ...framework.Resource) *framework.ResourceRouter {
	t.Helper()
	set, err := framework.NewResourceSet(framework.ResourceSetConfig{Handles: framework.HandlesType[any], Resources: resources})
	if err != nil {
		t.Fatal(err)
	}
	router, err := framework.NewResourceRouter(framework.ResourceRouterConfig{
		Logger: quiet(t), ResourceSets: []*framework.ResourceSet{set},
	})
	if err != nil {
		t.Fatal(err)
	}
	return router
}

// newFramework makes a framework of one resource.
func newFramework(t testing.TB, name string, source informer.Source, created func(ctx context.Context, obj any) error) *framework.Framework {
	t.Helper()
	return newObservedFramework(t, name, source, created, nil)
}

// newObservedFramework is newFramework for a framework with an observer.
func newObservedFramework(
	t testing.TB, name string, source informer.Source, created func(ctx context.Context, obj any) error, observer framework.Observer,
) *framework.Framework {
	t.Helper()
	f, err := framework.New(framework.Config{
		Name: name, Source: source, Logger: quiet(t), ResourceRouter: routerOf(t, &resource{created}), DisableFinalizer: true, Observer: observer,
	})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// newOperator makes an operator, with what a config needs and lacks.
func newOperator(t testing.TB, config operator.Config) *operator.Operator {
	t.Helper()
	if config.Name == "" {
		config.Name = "test"
	}
	if config.Logger == nil {
		config.Logger = quiet(t)
	}
	o, err := operator.New(config)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// running is an operator that runs.
type running struct {
	t      testing.TB
	cancel context.CancelFunc
	ended  chan struct{}
	err    error
}

// run runs the operator until stop is called, or the test ends.
func run(t testing.TB, o *operator.Operator) *running {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{t: t, cancel: cancel, ended: make(chan struct{})}
	go func() {
		defer close(r.ended)
		r.err = o.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-r.ended
	})
	return r
}

// stop ends the operator and returns what Run returned.
func (r *running) stop() error {
	r.t.Helper()
	r.cancel()
	return r.wait()
}

// wait waits until Run returns by itself.
func (r *running) wait() error {
	r.t.Helper()
	select {
	case <-r.ended:
	case <-time.After(time.Minute):
		r.t.Fatal("the operator does not end")
	}
	return r.err
}

// waitFor waits for a channel to be closed, or for the test to end.
func waitFor(t testing.TB, closed <-chan struct{}) {
	select {
	case <-closed:
	case <-t.Context().Done():
	}
}

// get asks the operator's listener.
func get(t testing.TB, o *operator.Operator, path string) (status int, body string) {
	t.Helper()
	operatortest.Eventually(t, "a listener", func() bool { return o.Addr() != nil })
	c := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := c.Get(fmt.Sprintf("http://%s%s", o.Addr(), path))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(data)
}

// journal is a list of what happened, in order.
type journal struct {
	mu      sync.Mutex
	entries []string
}

func (j *journal) add(entry string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.entries = append(j.entries, entry)
}

func (j *journal) all() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.entries)
}

// Write makes a journal of a log.
func (j *journal) Write(p []byte) (int, error) {
	j.add(string(p))
	return len(p), nil
}

func (j *journal) contains(text string) bool {
	return slices.ContainsFunc(j.all(), func(entry string) bool { return strings.Contains(entry, text) })
}

func configMap(namespace, name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

// pushed returns a source that holds one object, without any API server.
func pushed(t testing.TB, name string) *informer.Push {
	t.Helper()
	source := informer.NewPush(name)
	if err := source.Update(configMap("default", "a")); err != nil {
		t.Fatal(err)
	}
	return source
}

// configMaps returns a new source of a namespace's ConfigMaps.
func configMaps(t testing.TB, c client.WithWatch, namespace string) *informer.Kubernetes {
	t.Helper()
	source, err := informer.NewKubernetes(informer.KubernetesConfig{
		Client: c, Object: &corev1.ConfigMap{}, Namespaces: []string{namespace}, Logger: quiet(t),
	})
	if err != nil {
		t.Fatal(err)
	}
	return source
}
