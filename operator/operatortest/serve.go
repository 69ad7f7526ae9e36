package operatortest

import (
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"testing"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
)

// Kubeconfig serves, on loopback and until the test ends, a way through f to the API server of cfg, and returns a kubeconfig
// file for it: for operators that are processes of their own. Who uses the file has the rights of cfg.
func (f *Faults) Kubeconfig(t testing.TB, cfg *rest.Config) string {
	t.Helper()
	return serve(t, f.Wrap(cfg))
}

// serve is a way to the API server of cfg, until the test ends.
func serve(t testing.TB, cfg *rest.Config) string {
	t.Helper()
	transport, err := rest.TransportFor(cfg)
	if err != nil {
		t.Fatalf("operatortest: make a transport: %v", err)
	}
	target, _, err := rest.DefaultServerUrlFor(cfg)
	if err != nil {
		t.Fatalf("operatortest: read the address of the API server: %v", err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("operatortest: listen: %v", err)
	}
	quiet := log.New(io.Discard, "", 0)
	server := &http.Server{ErrorLog: quiet, Handler: &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: target.Scheme, Host: target.Host}) },
		Transport:     transport,
		FlushInterval: -1, // watches
		ErrorLog:      quiet,
	}}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		_ = server.Close()
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("operatortest: serve the way to the API server: %v", err)
		}
		utilnet.CloseIdleConnectionsFor(transport)
	})
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := writeKubeconfig(file, "http://"+listener.Addr().String(), "", nil, ""); err != nil {
		t.Fatalf("operatortest: %v", err)
	}
	return file
}
