package framework_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"testing"

	"github.com/giantswarm/micrologger"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer"
)

var errBoom = errors.New("boom")

// logTo returns a logger that writes to w.
func logTo(t testing.TB, w io.Writer) micrologger.Logger {
	t.Helper()
	logger, err := micrologger.New(micrologger.Config{IOWriter: w})
	if err != nil {
		t.Fatal(err)
	}
	return logger
}

func quiet(t testing.TB) micrologger.Logger { return logTo(t, io.Discard) }

// resource is a plain resource made of functions.
type resource struct {
	name    string
	created func(ctx context.Context, obj any) error
	deleted func(ctx context.Context, obj any) error
}

func (r *resource) Name() string { return r.name }

func (r *resource) EnsureCreated(ctx context.Context, obj any) error {
	if r.created == nil {
		return nil
	}
	return r.created(ctx, obj)
}

func (r *resource) EnsureDeleted(ctx context.Context, obj any) error {
	if r.deleted == nil {
		return nil
	}
	return r.deleted(ctx, obj)
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

func configMap(name string, data ...string) *corev1.ConfigMap {
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("uid-" + name)}}
	for i := 0; i+1 < len(data); i += 2 {
		if cm.Data == nil {
			cm.Data = map[string]string{}
		}
		cm.Data[data[i]] = data[i+1]
	}
	return cm
}

func keyOf(name string) informer.Key { return informer.Key{Namespace: "default", Name: name} }

func routerOf(t testing.TB, sets ...framework.ResourceSetConfig) *framework.ResourceRouter {
	t.Helper()
	config := framework.ResourceRouterConfig{Logger: quiet(t)}
	for _, c := range sets {
		if c.Handles == nil {
			c.Handles = framework.HandlesType[any]
		}
		set, err := framework.NewResourceSet(c)
		if err != nil {
			t.Fatal(err)
		}
		config.ResourceSets = append(config.ResourceSets, set)
	}
	router, err := framework.NewResourceRouter(config)
	if err != nil {
		t.Fatal(err)
	}
	return router
}

// newFramework makes a framework of one set with the given resources, unless config has a router already.
func newFramework(t testing.TB, config framework.Config, resources ...framework.Resource) *framework.Framework {
	t.Helper()
	if config.Logger == nil {
		config.Logger = quiet(t)
	}
	if config.ResourceRouter == nil {
		config.ResourceRouter = routerOf(t, framework.ResourceSetConfig{Resources: resources})
	}
	f, err := framework.New(config)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// running runs f until the returned function is called, which waits for the end. That happens at the end of the test
// at the latest.
func running(t testing.TB, f *framework.Framework) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- f.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	t.Cleanup(stop)
	return stop
}
