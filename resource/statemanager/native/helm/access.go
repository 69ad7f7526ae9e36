package helm

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
)

// access is how one call of the carrier reaches its cluster. Helm's interfaces carry no context, so that its requests would
// go on after the end of the call: those of access end with it, and with them whatever Helm has begun.
type access struct {
	cluster carrier.Cluster

	client client.WithWatch
	mapper meta.RESTMapper
	config *rest.Config
	http   *http.Client

	discovery func() (discovery.CachedDiscoveryInterface, error)
}

func newAccess(ctx context.Context, cluster carrier.Cluster) (*access, error) {
	config := rest.CopyConfig(cluster.RESTConfig())
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return bound{ctx, next} })
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("make an HTTP client for the cluster: %w", err)
	}
	a := &access{cluster: cluster, client: cluster.Client(), mapper: cluster.RESTMapper(), config: config, http: httpClient}
	a.discovery = sync.OnceValues(func() (discovery.CachedDiscoveryInterface, error) {
		found, err := discovery.NewDiscoveryClientForConfigAndClient(config, httpClient)
		if err != nil {
			return nil, fmt.Errorf("make a discovery client for the cluster: %w", err)
		}
		return memory.NewMemCacheClient(found), nil
	})
	return a, nil
}

// ToRESTConfig implements action.RESTClientGetter.
func (a *access) ToRESTConfig() (*rest.Config, error) { return rest.CopyConfig(a.config), nil }

// ToDiscoveryClient implements action.RESTClientGetter.
func (a *access) ToDiscoveryClient() (discovery.CachedDiscoveryInterface, error) {
	return a.discovery()
}

// ToRESTMapper implements action.RESTClientGetter.
func (a *access) ToRESTMapper() (meta.RESTMapper, error) { return a.mapper, nil }

// secrets is a client of the Secrets of a namespace.
func (a *access) secrets(namespace string) (corev1client.SecretInterface, error) {
	core, err := corev1client.NewForConfigAndClient(a.config, a.http)
	if err != nil {
		return nil, fmt.Errorf("make a client for releases: %w", err)
	}
	return core.Secrets(namespace), nil
}

// bound ends requests with a context that they don't know.
type bound struct {
	ctx  context.Context
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (b bound) RoundTrip(request *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(request.Context())
	stop := context.AfterFunc(b.ctx, func() { cancel(context.Cause(b.ctx)) })
	end := func() {
		stop()
		cancel(nil)
	}
	response, err := b.next.RoundTrip(request.WithContext(ctx))
	if err != nil {
		end()
		return nil, err
	}
	response.Body = &endingBody{ReadCloser: response.Body, end: end}
	return response, nil
}

// endingBody frees what its request has held when it is closed.
type endingBody struct {
	io.ReadCloser
	end func()
}

// Close implements io.Closer.
func (b *endingBody) Close() error {
	defer b.end()
	return b.ReadCloser.Close()
}
