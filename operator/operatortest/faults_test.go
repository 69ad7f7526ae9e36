package operatortest_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/operatorkit/operatorkit/operator/operatortest"
)

// wire is an HTTP server that records what arrives, and a client that reaches it
// through faults.
type wire struct {
	*httptest.Server
	client *http.Client

	mu      sync.Mutex
	arrived []string
}

func newWire(t *testing.T, faults *operatortest.Faults, handle http.HandlerFunc) *wire {
	t.Helper()
	w := &wire{}
	w.Server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return
		}
		w.mu.Lock()
		w.arrived = append(w.arrived, req.Method+" "+req.URL.Path+" "+string(body))
		w.mu.Unlock()
		handle(rw, req)
	}))
	below := &http.Transport{}
	w.client = &http.Client{Transport: faults.Transport(below)}
	t.Cleanup(func() {
		below.CloseIdleConnections()
		w.Close()
	})
	return w
}

func ok(http.ResponseWriter, *http.Request) {}

func (w *wire) send(ctx context.Context, method, path, contentType string, body []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, w.URL+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", contentType)
	resp, err := w.client.Do(req)
	if err != nil {
		return nil, err
	}
	return resp, resp.Body.Close()
}

func (w *wire) post(path string) error {
	_, err := w.send(context.Background(), http.MethodPost, path, "application/json", []byte(`{}`))
	return err
}

func (w *wire) requests() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string(nil), w.arrived...)
}

func asProtobuf(t *testing.T, object runtime.Object) []byte {
	t.Helper()
	var body bytes.Buffer
	encoder := protobuf.NewSerializer(clientgoscheme.Scheme, clientgoscheme.Scheme)
	if err := encoder.Encode(object, &body); err != nil {
		t.Fatal(err)
	}
	return body.Bytes()
}

func TestWritesAreRequestsThatChangeAStoredObject(t *testing.T) {
	configMap := &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
	}
	generated := configMap.DeepCopy()
	generated.Name, generated.GenerateName = "", "web-"
	dryRun := &metav1.DeleteOptions{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"},
		DryRun:   []string{"All"},
	}
	asCBOR, err := direct.Marshal(map[string]any{"metadata": map[string]any{"name": "web"}})
	if err != nil {
		t.Fatal(err)
	}

	const json = "application/json"
	for _, test := range []struct {
		request     string
		contentType string
		body        []byte
		want        string // empty when the request is not a write
	}{
		{"POST /api/v1/namespaces/shop/configmaps", json, []byte(`{"metadata":{"name":"web"}}`), "write 1: POST configmaps shop/web"},
		{"POST /api/v1/namespaces/shop/configmaps", json, []byte(`{"metadata":{"generateName":"web-"}}`), "write 1: POST configmaps shop/web-*"},
		{"POST /api/v1/namespaces/shop/configmaps", runtime.ContentTypeProtobuf, asProtobuf(t, configMap), "write 1: POST configmaps shop/web"},
		{"POST /api/v1/namespaces/shop/configmaps", runtime.ContentTypeProtobuf, asProtobuf(t, generated), "write 1: POST configmaps shop/web-*"},
		{"POST /api/v1/namespaces/shop/configmaps", runtime.ContentTypeCBOR, asCBOR, "write 1: POST configmaps shop/web"},
		{"POST /api/v1/namespaces/shop/configmaps", json, []byte(`nonsense`), "write 1: POST configmaps shop"},
		{"POST /api/v1/namespaces", json, []byte(`{"metadata":{"name":"shop"}}`), "write 1: POST namespaces shop"},
		{"POST /api/v1/namespaces/shop/pods/web-0/eviction", json, nil, "write 1: POST pods/eviction shop/web-0"},
		{"PUT /apis/apps/v1/namespaces/shop/deployments/web/status", json, nil, "write 1: PUT deployments.apps/status shop/web"},
		{"PUT /api/v1/namespaces/shop/finalize", json, nil, "write 1: PUT namespaces/finalize shop"},
		{"PUT /behind/a/proxy/api/v1/nodes/one", json, nil, "write 1: PUT nodes one"},
		{"PATCH /api/v1/namespaces/shop/configmaps/web", "application/apply-patch+yaml", []byte("data:\n  a: b\n"), "write 1: PATCH configmaps shop/web"},
		{"DELETE /api/v1/namespaces/shop/configmaps/web", json, nil, "write 1: DELETE configmaps shop/web"},
		{"DELETE /api/v1/namespaces/shop/configmaps", json, nil, "write 1: DELETE configmaps shop"},
		{"POST /apis/example.com/v1/namespaces/shop/tests", json, []byte(`{"metadata":{"name":"a"},"dryRun":["All"]}`), "write 1: POST tests.example.com shop/a"},

		{"GET /api/v1/namespaces/shop/configmaps/web", json, nil, ""},
		{"GET /api/v1/namespaces/shop/configmaps?watch=true", json, nil, ""},
		{"GET /version", json, nil, ""},
		{"POST /api/v1/namespaces/shop/configmaps?dryRun=All", json, []byte(`{"metadata":{"name":"web"}}`), ""},
		{"DELETE /api/v1/namespaces/shop/configmaps/web?dryRun=All", json, nil, ""},
		{"DELETE /api/v1/namespaces/shop/configmaps/web", json, []byte(`{"kind":"DeleteOptions","dryRun":["All"]}`), ""},
		{"DELETE /api/v1/namespaces/shop/configmaps/web", runtime.ContentTypeProtobuf, asProtobuf(t, dryRun), ""},
		{"POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews", json, []byte(`{}`), ""},
		{"POST /apis/authentication.k8s.io/v1/tokenreviews", json, []byte(`{}`), ""},
		{"POST /api/v1/namespaces/shop/serviceaccounts/default/token", json, []byte(`{}`), ""},
		{"POST /api/v1/namespaces/shop/pods/web-0/exec", json, nil, "write 1: POST pods/exec shop/web-0"},
		{"PUT /apis/coordination.k8s.io/v1/namespaces/shop/leases/leader", json, nil, ""},
		{"POST /api/v1/namespaces/shop/events", json, nil, ""},
		{"PATCH /apis/events.k8s.io/v1/namespaces/shop/events/e", json, nil, ""},
	} {
		t.Run(fmt.Sprintf("%s %s %q", test.request, test.contentType, test.want), func(t *testing.T) {
			faults := operatortest.NewFaults()
			wire := newWire(t, faults, ok)
			method, path, _ := strings.Cut(test.request, " ")
			if _, err := wire.send(t.Context(), method, path, test.contentType, test.body); err != nil {
				t.Fatal(err)
			}

			var got string
			for _, write := range faults.Writes() {
				got += write.String()
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("recorded write (-want +got):\n%s", diff)
			}
			wantArrived := []string{method + " " + strings.Split(path, "?")[0] + " " + string(test.body)}
			if diff := cmp.Diff(wantArrived, wire.requests()); diff != "" {
				t.Errorf("what arrived (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRulesSeeWhatARequestIsFor(t *testing.T) {
	faults := operatortest.NewFaults()
	var seen []operatortest.Request
	faults.On(func(r operatortest.Request) bool {
		seen = append(seen, r)
		return false
	}, operatortest.FailBefore())
	wire := newWire(t, faults, ok)
	for _, request := range []string{
		"GET /apis/apps/v1/deployments?watch=1",
		"GET /apis/apps/v1/namespaces/shop/deployments",
		"PATCH /apis/apps/v1/namespaces/shop/deployments/web/scale?dryRun=All",
		"DELETE /api/v1/namespaces/shop/pods",
	} {
		method, path, _ := strings.Cut(request, " ")
		if _, err := wire.send(t.Context(), method, path, "application/merge-patch+json; charset=utf-8", nil); err != nil {
			t.Fatal(err)
		}
	}

	deployments := operatortest.Request{
		Method: "GET", Verb: "watch", Group: "apps", Version: "v1", Resource: "deployments", ContentType: "application/merge-patch+json",
	}
	list := deployments
	list.Verb, list.Namespace = "list", "shop"
	patch := list
	patch.Method, patch.Verb, patch.Name, patch.Subresource, patch.DryRun = "PATCH", "patch", "web", "scale", true
	want := []operatortest.Request{deployments, list, patch, {
		N: 1, Method: "DELETE", Verb: "deletecollection", Version: "v1", Resource: "pods", Namespace: "shop", ContentType: "application/merge-patch+json",
	}}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Errorf("requests seen by a rule (-want +got):\n%s", diff)
	}
}

func TestUncountedReplacesTheDefault(t *testing.T) {
	faults := operatortest.NewFaults(operatortest.Uncounted(func(r operatortest.Request) bool { return r.Resource == "pods" }))
	wire := newWire(t, faults, ok)
	for _, path := range []string{"/api/v1/namespaces/a/pods", "/api/v1/namespaces/a/events"} {
		if err := wire.post(path); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff("[write 1: POST events a]", fmt.Sprint(faults.Writes())); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
}

func TestBodiesAreKeptOnRequestAndNeverThoseOfSecrets(t *testing.T) {
	for _, test := range []struct {
		name    string
		options []operatortest.FaultsOption
		want    []string
	}{
		{"default", nil, []string{"", ""}},
		{"kept", []operatortest.FaultsOption{operatortest.KeepBodies()}, []string{`{}`, ""}},
	} {
		t.Run(test.name, func(t *testing.T) {
			faults := operatortest.NewFaults(test.options...)
			wire := newWire(t, faults, ok)
			for _, path := range []string{"/api/v1/namespaces/a/configmaps", "/api/v1/namespaces/a/secrets"} {
				if err := wire.post(path); err != nil {
					t.Fatal(err)
				}
			}
			var got []string
			for _, write := range faults.Writes() {
				got = append(got, string(write.Body))
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("bodies (-want +got):\n%s", diff)
			}
		})
	}
}

func TestConcurrentWritesAreCountedOnceEach(t *testing.T) {
	const writers, each = 16, 25
	faults := operatortest.NewFaults()
	lost := faults.At(writers*each/2, operatortest.FailBefore())
	wire := newWire(t, faults, ok)

	var group sync.WaitGroup
	for writer := range writers {
		group.Go(func() {
			for i := range each {
				err := wire.post(fmt.Sprintf("/api/v1/namespaces/a/pods/%d-%d/eviction", writer, i))
				if err != nil && !errors.Is(err, operatortest.ErrInjected) {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()

	if got := faults.Count(); got != writers*each {
		t.Errorf("counted %d writes, want %d", got, writers*each)
	}
	if got := len(wire.requests()); got != writers*each-1 {
		t.Errorf("%d writes arrived, want all but one of %d", got, writers*each)
	}
	if got := lost.Hits(); got != 1 {
		t.Errorf("the rule for one write was applied %d times", got)
	}
	names := map[string]bool{}
	for i, write := range faults.Writes() {
		names[write.Name] = true
		if write.N != i+1 {
			t.Errorf("write %d has the number %d", i+1, write.N)
		}
	}
	if len(names) != writers*each {
		t.Errorf("recorded %d different writes, want %d", len(names), writers*each)
	}
}

func TestTheFirstRuleThatFitsIsAppliedUntilItsLimit(t *testing.T) {
	any := func(operatortest.Request) bool { return true }
	faults := operatortest.NewFaults()
	faults.On(any, operatortest.FailBefore()).Times(2)
	after := faults.On(any, operatortest.FailAfter())
	wire := newWire(t, faults, ok)

	kind := func(err error) string {
		switch {
		case err == nil:
			return "passed"
		case utilnet.IsConnectionRefused(err):
			return "refused"
		case utilnet.IsConnectionReset(err):
			return "reset"
		}
		return err.Error()
	}
	var got []string
	for range 3 {
		got = append(got, kind(wire.post("/api/v1/namespaces")))
	}
	after.Remove()
	got = append(got, kind(wire.post("/api/v1/namespaces")))
	if diff := cmp.Diff([]string{"refused", "refused", "reset", "passed"}, got); diff != "" {
		t.Errorf("what became of the requests (-want +got):\n%s", diff)
	}
}

func TestDelayedRequestsWaitUntilReleasedOrTheirContextEnds(t *testing.T) {
	released := make(chan struct{})
	faults := operatortest.NewFaults()
	rule := faults.On(operatortest.Events, operatortest.DelayUntil(released))
	wire := newWire(t, faults, ok)

	ctx, cancel := context.WithCancelCause(t.Context())
	sent := make(chan error, 2)
	go func() {
		_, err := wire.send(ctx, http.MethodPost, "/api/v1/namespaces/a/events", "application/json", nil)
		sent <- err
	}()
	operatortest.Eventually(t, "the first request is delayed", func() bool { return rule.Hits() == 1 })
	cancel(nil)
	if err := <-sent; !errors.Is(err, context.Canceled) {
		t.Errorf("a delayed request whose context ended: got %v, want context canceled", err)
	}

	go func() { sent <- wire.post("/api/v1/namespaces/b/events") }()
	operatortest.Eventually(t, "the second request is delayed", func() bool { return rule.Hits() == 2 })
	if got := wire.requests(); len(got) != 0 {
		t.Errorf("arrived before the release: %q", got)
	}
	close(released)
	if err := <-sent; err != nil {
		t.Errorf("a released request: %v", err)
	}
	if diff := cmp.Diff([]string{"POST /api/v1/namespaces/b/events {}"}, wire.requests()); diff != "" {
		t.Errorf("what arrived (-want +got):\n%s", diff)
	}
}

func TestACutBreaksWhatIsUnderWayUntilRestored(t *testing.T) {
	faults := operatortest.NewFaults()
	wire := newWire(t, faults, func(rw http.ResponseWriter, req *http.Request) {
		if req.URL.Query().Get("watch") == "true" {
			_, _ = rw.Write([]byte("first event"))
			rw.(http.Flusher).Flush()
			<-req.Context().Done()
		}
	})
	watch, err := wire.client.Get(wire.URL + "/api/v1/pods?watch=true")
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Body.Close()
	if _, err := io.ReadFull(watch.Body, make([]byte, len("first event"))); err != nil {
		t.Fatalf("read the watch before the cut: %v", err)
	}

	faults.Cut()
	if _, err := io.ReadAll(watch.Body); !utilnet.IsConnectionReset(err) || !errors.Is(err, operatortest.ErrInjected) {
		t.Errorf("the watch under way: got %v, want a reset connection", err)
	}
	if err := wire.post("/api/v1/namespaces/a/pods"); !utilnet.IsConnectionRefused(err) {
		t.Errorf("a write while cut: got %v, want a refused connection", err)
	}

	faults.Restore()
	if err := wire.post("/api/v1/namespaces/b/pods"); err != nil {
		t.Errorf("a write after the cut: %v", err)
	}
	if diff := cmp.Diff("[write 1: POST pods b]", fmt.Sprint(faults.Writes())); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
}
