package informer_test

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/operator/operatortest"
)

// lag is between a client and an API server that does not stream lists. While it is on, every list is answered with what the first one
// was answered.
type lag struct {
	mu     sync.Mutex
	on     bool
	header http.Header
	first  []byte
	next   http.RoundTripper
}

func (l *lag) install(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.ContentType, config.AcceptContentTypes = "application/json", "application/json"
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		l.next = next
		return l
	})
	return config
}

func (l *lag) set(on bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.on = on
}

func (l *lag) RoundTrip(r *http.Request) (*http.Response, error) {
	query := r.URL.Query()
	if !strings.HasSuffix(r.URL.Path, "/configmaps") || r.Method != http.MethodGet || query.Get("watch") != "" && !query.Has("sendInitialEvents") {
		return l.next.RoundTrip(r)
	}
	if query.Has("sendInitialEvents") {
		query.Set("resourceVersionMatch", "nonsense") // which the server refuses
		r = r.Clone(r.Context())
		r.URL.RawQuery = query.Encode()
		return l.next.RoundTrip(r)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.on {
		return &http.Response{
			Status: "200 OK", StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: l.header,
			Body: io.NopCloser(bytes.NewReader(l.first)), ContentLength: int64(len(l.first)), Request: r,
		}, nil
	}
	response, err := l.next.RoundTrip(r)
	if err != nil || l.first != nil {
		return response, err
	}
	defer func() { _ = response.Body.Close() }()
	if l.first, err = io.ReadAll(response.Body); err != nil {
		return nil, err
	}
	l.header = response.Header.Clone()
	l.header.Del("Content-Encoding")
	response.Body = io.NopCloser(bytes.NewReader(l.first))
	return response, nil
}

func TestR11AListThatIsOlderThanWhatWasSeenIsAnOutageAndNoState(t *testing.T) {
	instance, namespace := namespaceOf(t)
	c := operatortest.NewClient(t, instance.RESTConfig(), nil)
	changed, gone := named(namespace, "changed"), named(namespace, "gone")
	create(t, c, changed)
	create(t, c, gone)
	lag := &lag{}
	f := follow(t, configMapConfig(t, operatortest.NewClient(t, lag.install(instance.RESTConfig()), nil), namespace))
	f.await(informer.Added, "changed")
	label(t, c, changed, "newer")
	f.await(informer.Updated, "changed")
	remove(t, c, gone)
	f.await(informer.Deleted, "gone")
	create(t, c, named(namespace, "new"))
	f.await(informer.Added, "new")
	f.stop()
	f.forget()

	lag.set(true)
	f.start()
	operatortest.Eventually(t, "the list is refused", func() bool {
		err := f.Status().LastError
		return err != nil && strings.Contains(err.Error(), "seen before")
	})
	if got := f.seen(); len(got) > 0 {
		t.Errorf("events %v of a list that is older than what was seen", got)
	}
	obj, exists, err := f.Get(client.ObjectKeyFromObject(changed))
	if err != nil || !exists || obj.(client.Object).GetLabels()["test"] != "newer" {
		t.Errorf("the store has %v, %t, %v, want the newest state", obj, exists, err)
	}

	lag.set(false)
	create(t, c, named(namespace, "later"))
	f.await(informer.Added, "later")
	if err := f.Status().LastError; err != nil {
		t.Errorf("the outage does not end: %v", err)
	}
}

func TestOnlyNumbersAreOlder(t *testing.T) {
	for _, test := range []struct {
		version, than string
		want          bool
	}{
		{"9", "10", true},
		{"10", "9", false},
		{"10", "10", false},
		{"", "10", false},
		{"10", "", false},
		{"0", "10", false},
		{"abc", "abd", false},
		{"99999999999999999999999", "100000000000000000000000", true},
	} {
		if got := informer.IsOlder(test.version, test.than); got != test.want {
			t.Errorf("%q is older than %q: %t, want %t", test.version, test.than, got, test.want)
		}
	}
}
