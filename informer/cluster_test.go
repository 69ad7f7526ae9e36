package informer_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/giantswarm/micrologger"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/operator/operatortest"
)

// patience is how long a test waits for what must happen. Only a hang takes this long.
const patience = time.Minute

// logBuffer is where a test's logger writes to.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// newLogger returns a logger and its buffer. The log is shown when the test fails.
func newLogger(t *testing.T) (micrologger.Logger, *logBuffer) {
	t.Helper()
	buffer := &logBuffer{}
	logger, err := micrologger.New(micrologger.Config{IOWriter: buffer})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log("log:\n" + buffer.String())
		}
	})
	return logger, buffer
}

// configMapConfig is a source of ConfigMaps of one namespace.
func configMapConfig(t *testing.T, c client.WithWatch, namespaces ...string) informer.KubernetesConfig {
	logger, _ := newLogger(t)
	return informer.KubernetesConfig{Client: c, Object: &corev1.ConfigMap{}, Namespaces: namespaces, Logger: logger}
}

// follower is a running source and the events it has given.
type follower struct {
	*informer.Kubernetes
	t      *testing.T
	mu     sync.Mutex
	events []informer.Event
	more   chan struct{}
	stop   func()
}

// follow subscribes to a new source and runs it until the test ends or stop is called.
func follow(t *testing.T, config informer.KubernetesConfig) *follower {
	t.Helper()
	source, err := informer.NewKubernetes(config)
	if err != nil {
		t.Fatal(err)
	}
	return followSource(t, source)
}

// followSource is follow for a source that does not run yet.
func followSource(t *testing.T, source *informer.Kubernetes) *follower {
	t.Helper()
	f := &follower{Kubernetes: source, t: t, more: make(chan struct{}, 1)}
	source.Subscribe(func(e informer.Event) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.events = append(f.events, e)
		select {
		case f.more <- struct{}{}:
		default:
		}
	})
	f.start()
	f.sync()
	return f
}

func (f *follower) start() {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := f.Run(ctx); err != nil {
			f.t.Errorf("Run: %v", err)
		}
	}()
	f.stop = sync.OnceFunc(func() {
		cancel()
		<-done
	})
	f.t.Cleanup(f.stop)
}

func (f *follower) sync() {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), patience)
	defer cancel()
	if err := f.WaitForSync(ctx); err != nil {
		f.t.Fatalf("sync: %v, status %+v", err, f.Status())
	}
}

// await returns the first event after those it has returned before that is of the type and name.
func (f *follower) await(eventType informer.EventType, name string) informer.Event {
	f.t.Helper()
	timeout := time.After(patience)
	for {
		f.mu.Lock()
		for i, e := range f.events {
			if e.Type == eventType && e.Key.Name == name {
				f.events = f.events[i+1:]
				f.mu.Unlock()
				return e
			}
		}
		f.mu.Unlock()
		select {
		case <-f.more:
		case <-timeout:
			f.t.Fatalf("no event %s %s came; status %+v, events %v", eventType, name, f.Status(), f.seen())
		}
	}
}

// seen returns the events that await has not returned or passed by.
func (f *follower) seen() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	lines := []string{}
	for _, e := range f.events {
		lines = append(lines, fmt.Sprintf("%s %s backlog=%t", e.Type, e.Key.Name, e.Backlog))
	}
	return lines
}

// forget drops the events so far.
func (f *follower) forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.events = nil
}

func create(t *testing.T, c client.Client, obj client.Object) {
	t.Helper()
	if err := c.Create(t.Context(), obj); err != nil {
		t.Fatal(err)
	}
}

// label sets a label, and so changes the object.
func label(t *testing.T, c client.Client, obj *corev1.ConfigMap, value string) {
	t.Helper()
	patch := fmt.Sprintf(`{"metadata":{"labels":{"test":%q}}}`, value)
	if err := c.Patch(t.Context(), obj, client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, c client.Client, obj client.Object) {
	t.Helper()
	if err := c.Delete(t.Context(), obj); err != nil {
		t.Fatal(err)
	}
}

func named(namespace, name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Data:       map[string]string{"key": "value of " + name},
	}
}

// forms are the three forms in which a source can store ConfigMaps.
func forms() map[string]client.Object {
	untyped := &unstructured.Unstructured{}
	untyped.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	partial := &metav1.PartialObjectMetadata{}
	partial.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	return map[string]client.Object{"typed": &corev1.ConfigMap{}, "unstructured": untyped, "metadata only": partial}
}

// wire is the network between a client and the API server, which can be cut.
type wire struct {
	mu    sync.Mutex
	cut   bool
	conns []net.Conn
}

func (w *wire) install(t *testing.T, config *rest.Config) *rest.Config {
	t.Cleanup(func() { w.set(true) })
	config = rest.CopyConfig(config)
	config.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.cut {
			return nil, errors.New("the wire is cut")
		}
		conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
		if err == nil {
			w.conns = append(w.conns, conn)
		}
		return conn, err
	}
	return config
}

// set cuts the wire, with all connections on it, or restores it.
func (w *wire) set(cut bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = cut
	for _, conn := range w.conns {
		_ = conn.Close()
	}
	w.conns = nil
}

// requestLog records the requests of a client, and may spoil some so that the server refuses them.
type requestLog struct {
	mu       sync.Mutex
	requests []string
	refuse   func(*http.Request) bool
	next     http.RoundTripper
}

func (l *requestLog) install(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		l.next = next
		return l
	})
	return config
}

func (l *requestLog) RoundTrip(r *http.Request) (*http.Response, error) {
	if !strings.HasSuffix(r.URL.Path, "/configmaps") {
		return l.next.RoundTrip(r)
	}
	kind := "list"
	switch {
	case r.URL.Query().Get("watch") == "" && r.URL.Query().Get("resourceVersion") == "0":
		kind = "list of any version"
	case r.URL.Query().Get("sendInitialEvents") == "true":
		kind = "watch-list"
	case r.URL.Query().Get("watch") != "":
		kind = "watch"
	}
	l.mu.Lock()
	l.requests = append(l.requests, kind)
	l.mu.Unlock()
	if l.refuse != nil && l.refuse(r) {
		query := r.URL.Query()
		query.Set("resourceVersionMatch", "nonsense")
		r = r.Clone(r.Context())
		r.URL.RawQuery = query.Encode()
	}
	return l.next.RoundTrip(r)
}

func (l *requestLog) kinds() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]string{}, l.requests...)
}

// namespaceOf starts the API server if need be and returns a namespace of the test's own.
func namespaceOf(t *testing.T) (*operatortest.Instance, string) {
	t.Helper()
	instance := operatortest.Start(t)
	return instance, instance.Namespace(t)
}
