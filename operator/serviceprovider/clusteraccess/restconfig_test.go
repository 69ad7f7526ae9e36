package clusteraccess_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/websocket"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/clusteraccess"
)

// upgrader makes WebSockets, as those libraries do it that upgrade connections: it dials by itself, with the TLS settings of a
// configuration, and the configuration's wrappers only adorn the request.
type upgrader struct {
	tls    *tls.Config
	socket *websocket.Conn
}

// RoundTrip implements http.RoundTripper.
func (u *upgrader) RoundTrip(r *http.Request) (*http.Response, error) {
	address := *r.URL
	address.Scheme = "wss"
	config, err := websocket.NewConfig(address.String(), "https://"+r.URL.Host)
	if err != nil {
		return nil, err
	}
	config.TlsConfig, config.Header = u.tls, r.Header
	if u.socket, err = config.DialContext(r.Context()); err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: http.StatusSwitchingProtocols, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
}

// watchBySocket returns the name in the first event of a watch by a WebSocket, which is made of a configuration.
func watchBySocket(ctx context.Context, config *rest.Config, namespace, resource string) (string, error) {
	settings, err := rest.TLSConfigFor(config)
	if err != nil {
		return "", err
	}
	up := &upgrader{tls: settings}
	wrapped, err := rest.HTTPWrappersForConfig(config, up)
	if err != nil {
		return "", err
	}
	address := fmt.Sprintf("%s/api/v1/namespaces/%s/%s?watch=true", config.Host, namespace, resource)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return "", err
	}
	response, err := wrapped.RoundTrip(request)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	defer func() { _ = up.socket.Close() }()
	var event struct {
		Type   string
		Object metav1.PartialObjectMetadata
	}
	if err := json.NewDecoder(up.socket).Decode(&event); err != nil {
		return "", err
	}
	return event.Object.Name, nil
}

func TestWhatOthersMakeOfARESTConfigWorksAndGoesOnAfterARenewal(t *testing.T) {
	w := newWorld(t)
	w.tenants()
	namespace := w.remoteNamespace()
	made := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "made"}}
	if err := w.admin.Create(t.Context(), made); err != nil {
		t.Fatal(err)
	}
	p := w.newProvider(func(c *clusteraccess.ProviderConfig) {
		c.MCP, c.Workload = clusteraccess.Permissions(inNamespace(namespace, "get", "list", "watch")), nil
	})
	w.start()
	request := object("db")
	ar, before := w.asked(p, request)
	c := w.mcp(p, request)
	config := c.RESTConfig()
	if config.Host != w.remote.RESTConfig().Host || len(config.CAData) == 0 {
		t.Errorf("the configuration leads to %q with a CA of %d bytes, want %s, with its CA", config.Host, len(config.CAData), w.remote.RESTConfig().Host)
	}
	if config.BearerToken != "" || config.BearerTokenFile != "" {
		t.Error("the configuration holds a token, which would run out in it")
	}
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	found, err := discovery.NewDiscoveryClientForConfigAndClient(config, httpClient)
	if err != nil {
		t.Fatal(err)
	}
	objects, err := dynamic.NewForConfigAndClient(config, httpClient)
	if err != nil {
		t.Fatal(err)
	}
	typed, err := client.New(config, client.Options{Scheme: w.scheme})
	if err != nil {
		t.Fatal(err)
	}
	everything := func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		if _, err := found.ServerVersion(); err != nil {
			return fmt.Errorf("discovery: %w", err)
		}
		if _, err := objects.Resource(corev1.SchemeGroupVersion.WithResource("configmaps")).Namespace(namespace).Get(ctx, made.Name, metav1.GetOptions{}); err != nil {
			return fmt.Errorf("dynamic: %w", err)
		}
		if err := typed.Get(ctx, client.ObjectKeyFromObject(made), &corev1.ConfigMap{}); err != nil {
			return fmt.Errorf("controller-runtime: %w", err)
		}
		// Events of other objects may come first: kube-root-ca.crt.
		if name, err := watchBySocket(ctx, config, namespace, "configmaps"); err != nil || name == "" {
			return fmt.Errorf("watch by a WebSocket: %q, %w", name, err)
		}
		return nil
	}
	operatortest.Eventually(t, "everything works", everything)
	refusals := func() {
		t.Helper()
		_, err := objects.Resource(corev1.SchemeGroupVersion.WithResource("secrets")).Namespace(namespace).List(t.Context(), metav1.ListOptions{})
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "system:serviceaccount:"+ar.Status.ServiceAccount.Namespace+":"+ar.Status.ServiceAccount.Name) {
			t.Errorf("listing Secrets: err = %v, want 403 that names the service account", err)
		}
		if _, err := watchBySocket(t.Context(), config, namespace, "secrets"); err == nil {
			t.Error("a WebSocket may do what its credentials may not")
		}
	}
	refusals()

	_, old := w.credentials(ar)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ar.Status.ServiceAccount.Namespace, Name: ar.Status.ServiceAccount.Name}}
	if err := w.admin.Delete(t.Context(), account); err != nil {
		t.Fatal(err)
	}
	w.renewed(ar, before)
	w.refused(old)
	operatortest.Eventually(t, "everything that was made before works again", everything)
	refusals()

	w.done("access is taken away", p.ReconcileDelete, request)
	operatortest.Eventually(t, "nothing works any more", func() error {
		_, err := watchBySocket(t.Context(), config, namespace, "configmaps")
		if _, alive := found.ServerVersion(); err == nil || alive == nil {
			return errors.New("it still does")
		}
		return nil
	})
}
