package informer_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/operator/operatortest"
)

var (
	numericVersion = regexp.MustCompile(`"resourceVersion":"(\d+)"`)
	opaqueVersion  = regexp.MustCompile(`"resourceVersion":"rv-(\d+)"`)
)

// opaque is between a client and an API server. It turns resource versions into texts that are not
// numbers.
type opaque struct{ next http.RoundTripper }

func opaquely(config *rest.Config) *rest.Config {
	config.ContentType, config.AcceptContentTypes = "application/json", "application/json"
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return opaque{next} })
	return config
}

func (o opaque) WrappedRoundTripper() http.RoundTripper { return o.next }

func (o opaque) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	query := r.URL.Query()
	if version, ok := strings.CutPrefix(query.Get("resourceVersion"), "rv-"); ok {
		query.Set("resourceVersion", version)
		r.URL.RawQuery = query.Encode()
	}
	if r.Body != nil {
		content, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		content = opaqueVersion.ReplaceAll(content, []byte(`"resourceVersion":"$1"`))
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(content)), int64(len(content))
	}
	response, err := o.next.RoundTrip(r)
	if err == nil {
		response.Body = &opaqueBody{ReadCloser: response.Body, lines: bufio.NewReader(response.Body)}
		response.ContentLength = -1
		response.Header.Del("Content-Length")
	}
	return response, err
}

// opaqueBody is an answer, line by line: a watch has an event in each.
type opaqueBody struct {
	io.ReadCloser

	lines *bufio.Reader
	line  []byte
	err   error
}

func (b *opaqueBody) Read(p []byte) (int, error) {
	if len(b.line) == 0 && b.err == nil {
		b.line, b.err = b.lines.ReadBytes('\n')
		b.line = numericVersion.ReplaceAll(b.line, []byte(`"resourceVersion":"rv-$1"`))
	}
	if len(b.line) == 0 {
		return 0, b.err
	}
	n := copy(p, b.line)
	b.line = b.line[n:]
	return n, nil
}

// opaqueWorld is a writing source with a watch that may be held, and with versions that are not
// numbers.
type opaqueWorld struct {
	*follower
	lag          *operatortest.Lag
	log          *logBuffer
	user, writer client.Client
	author       *informer.Author

	mu    sync.Mutex
	woken int
}

func newOpaqueWorld(t *testing.T, writes *informer.Writes) (w *opaqueWorld, namespace string) {
	t.Helper()
	instance, namespace := namespaceOf(t)
	w = &opaqueWorld{lag: operatortest.NewLag(), user: operatortest.NewClient(t, instance.RESTConfig(), nil),
		author: &informer.Author{Framework: "f", Key: informer.Key{Name: "primary"}}}
	config := configMapConfig(t, writes.Client(operatortest.NewClient(t, opaquely(w.lag.Wrap(instance.RESTConfig())), nil)), namespace)
	config.Logger, w.log = newLogger(t)
	w.follower = follow(t, config)
	w.Subscribe(func(e informer.Event) {
		e.Wake("f", w.author.Key, func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.woken++
		})
	})
	writing := opaquely(instance.RESTConfig())
	writing.Wrap(writes.Transport)
	w.writer = operatortest.NewClient(t, writing, nil)
	return w, namespace
}

func (w *opaqueWorld) context() context.Context {
	return context.WithValue(w.t.Context(), informer.AuthorKey, w.author)
}

// has tells in which state the source has an object.
func (w *opaqueWorld) has(key informer.Key) string {
	stored, exists, err := w.Get(key)
	if err != nil || !exists {
		return fmt.Sprint(exists, err)
	}
	obj := stored.(*corev1.ConfigMap)
	return fmt.Sprintf("%t %s", strings.HasPrefix(obj.ResourceVersion, "rv-"), obj.Labels["test"])
}

func TestR11AWriteWhoseVersionIsNoNumberWaitsForTheWatch(t *testing.T) {
	w, namespace := newOpaqueWorld(t, &informer.Writes{Wait: time.Minute})
	key := informer.Key{Namespace: namespace, Name: "x"}
	before := named(namespace, "x")
	create(t, w.user, before)
	w.await(informer.Added, "x")
	w.mu.Lock()
	w.woken = 0
	w.mu.Unlock()

	w.lag.Hold(nil)
	written := make(chan string)
	go func() {
		err := w.writer.Patch(w.context(), named(namespace, "x"), client.RawPatch("application/merge-patch+json",
			fmt.Appendf(nil, `{"metadata":{"resourceVersion":"rv-%s","labels":{"test":"new"}}}`, before.ResourceVersion)))
		written <- fmt.Sprint(err, " ", w.has(key))
	}()
	operatortest.Eventually(t, "the server has it", func() bool {
		obj := &corev1.ConfigMap{}
		return w.user.Get(t.Context(), key, obj) == nil && obj.Labels["test"] == "new"
	})
	w.lag.Release()
	if got, want := <-written, "<nil> true new"; got != want {
		t.Errorf("after the write %q is read, want %q", got, want)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.woken > 0 {
		t.Errorf("who wrote was woken %d times", w.woken)
	}
}

func TestR11AWriteThatTheWatchDoesNotShowGoesOnAndIsTold(t *testing.T) {
	w, namespace := newOpaqueWorld(t, &informer.Writes{Wait: time.Millisecond})
	w.lag.Hold(nil)
	if err := w.writer.Create(w.context(), named(namespace, "x")); err != nil {
		t.Fatal(err)
	}
	if got := w.has(informer.Key{Namespace: namespace, Name: "x"}); got != "false <nil>" {
		t.Errorf("the source has %q, although its watch is held", got)
	}
	if want := namespace + "/x was written and the watch has not shown it after 1ms"; !strings.Contains(w.log.String(), want) {
		t.Errorf("the log lacks %q:\n%s", want, w.log)
	}
	w.lag.Release()
	w.await(informer.Added, "x")
	operatortest.Eventually(t, "who wrote is woken, since nobody can tell any more who it was", func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.woken == 1
	})
}
