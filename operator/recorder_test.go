package operator_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/giantswarm/micrologger"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/operatorkit/operatorkit/operator"
)

// guardedWriter counts writes after it was closed.
type guardedWriter struct{ closed, late atomic.Int64 }

func (w *guardedWriter) Write(p []byte) (int, error) {
	if w.closed.Load() != 0 {
		w.late.Add(1)
	}
	return len(p), nil
}

func TestNothingIsLoggedOfEventsOnceTheirRecorderIsClosed(t *testing.T) {
	asked := make(chan struct{}, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // only then the server notices that the client goes
		asked <- struct{}{}
		<-r.Context().Done()
	}))
	writer := &guardedWriter{}
	logger, err := micrologger.New(micrologger.Config{IOWriter: writer})
	if err != nil {
		t.Fatal(err)
	}
	d, err := operator.NewDependencies(operator.DependenciesConfig{
		Name: "test", RESTConfig: &rest.Config{Host: server.URL}, Scheme: scheme.Scheme, Logger: logger,
	})
	if err != nil {
		t.Fatal(err)
	}
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "home"}}
	d.Recorder.Event(cm, corev1.EventTypeNormal, "Said", "hello")
	<-asked
	d.Close()
	writer.closed.Store(1)
	server.Close()
	d.Recorder.Event(cm, corev1.EventTypeNormal, "Said", "too late")
	if n := writer.late.Load(); n > 0 {
		t.Errorf("%d messages were logged after the end", n)
	}
}

func TestEventsAreCutToWhatTheAPIHolds(t *testing.T) {
	events := make(chan corev1.Event, 10)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var e corev1.Event
		if _, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, &e); err == nil {
			events <- e
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"kind":"Event","apiVersion":"v1","metadata":{"name":"x"}}`)
	}))
	defer server.Close()
	d, err := operator.NewDependencies(operator.DependenciesConfig{
		Name: "test", RESTConfig: &rest.Config{Host: server.URL}, Scheme: scheme.Scheme, Logger: logTo(t, io.Discard),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	long := strings.Repeat("ä", 1000)
	cm := configMap("default", "home")
	d.Recorder.Event(cm, corev1.EventTypeNormal, "One", long)
	d.Recorder.Eventf(cm, corev1.EventTypeNormal, "Two", "%s", long)
	d.Recorder.AnnotatedEventf(cm, map[string]string{"a": "b"}, corev1.EventTypeNormal, "Three", "%s", long)
	d.Recorder.For("another").Event(cm, corev1.EventTypeNormal, "Four", long)
	for range 4 {
		e := <-events
		if n := len(e.Message); n > 1024 || !strings.HasSuffix(e.Message, "…") || strings.ContainsRune(e.Message, '\uFFFD') {
			t.Errorf("%s: %d bytes, ending with %q", e.Reason, n, e.Message[len(e.Message)-6:])
		}
	}
}
