package operatortest

import (
	"net/http"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// NewClient returns a client for the time of a test: it keeps silent about the API server's warnings, and its connections end with the
// test. Without a scheme it knows the kinds that client-go knows.
func NewClient(t testing.TB, config *rest.Config, scheme *runtime.Scheme) client.WithWatch {
	t.Helper()
	connections, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { utilnet.CloseIdleConnectionsFor(connections.Transport) })
	c, err := newUser(config, connections, scheme)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// newUser returns a client that tells the test's author nothing of its own accord.
func newUser(config *rest.Config, connections *http.Client, scheme *runtime.Scheme) (client.WithWatch, error) {
	config = rest.CopyConfig(config)
	config.WarningHandler, config.WarningHandlerWithContext = rest.NoWarnings{}, nil
	return client.NewWithWatch(config, client.Options{
		Scheme:     scheme,
		HTTPClient: connections,
		Log:        klog.Background(), // the default complains when nobody has set a logger
	})
}
