package target_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/giantswarm/micrologger"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager/target"
)

// bubble is Clusters in a bubble of testing/synctest: hours pass in no time, and no network is there. The clusters are
// functions.
type bubble struct {
	t           *testing.T
	clusters    *target.Clusters
	deployments *informer.Push
	secrets     *informer.Push
	registry    *prometheus.Registry
	log         *logBuffer

	mu      sync.Mutex
	servers map[string]server
	// probes are when each cluster was probed, since the beginning.
	probes map[string][]time.Duration
	begun  time.Time
	sent   map[string]int
}

// server answers the requests to a cluster.
type server func(*http.Request) (*http.Response, error)

func respond(code int, body string) (*http.Response, error) {
	return &http.Response{
		StatusCode: code, ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)), ContentLength: -1,
	}, nil
}

var errDead = errors.New("connection refused")

func healthy(*http.Request) (*http.Response, error) { return respond(200, `{"gitVersion":"v1.37.2"}`) }

func dead(*http.Request) (*http.Response, error) { return nil, errDead }

// silent never answers.
func silent(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

func answering(code int) server {
	return func(*http.Request) (*http.Response, error) { return respond(code, "{}") }
}

// inBubble runs a test in a bubble, with the defaults of the configuration but for change.
func inBubble(t *testing.T, change func(*target.Config), test func(t *testing.T, b *bubble)) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t, change)
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- b.clusters.Run(ctx) }()
		defer func() {
			cancel()
			if err := <-done; err != nil {
				t.Errorf("Run: %v", err)
			}
		}()
		if err := b.clusters.Notices().WaitForSync(ctx); err != nil {
			t.Fatal(err)
		}
		test(t, b)
	})
}

func newBubble(t *testing.T, change func(*target.Config)) *bubble {
	t.Helper()
	b := &bubble{
		t: t, deployments: informer.NewPush("deployments"), secrets: informer.NewPush("secrets"), registry: prometheus.NewRegistry(),
		log: &logBuffer{}, servers: map[string]server{}, probes: map[string][]time.Duration{}, sent: map[string]int{}, begun: time.Now(),
	}
	logger, err := micrologger.New(micrologger.Config{IOWriter: b.log})
	if err != nil {
		t.Fatal(err)
	}
	config := target.Config{
		Deployments: b.deployments, Secrets: b.secrets, Management: &rest.Config{Host: "https://management.example.com"},
		Logger: logger, Registerer: b.registry, WrapTransport: b.wrap,
	}
	if change != nil {
		change(&config)
	}
	if b.clusters, err = target.New(config); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *bubble) wrap(cluster target.Key, _ http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		b.mu.Lock()
		if r.URL.Path == "/version" {
			b.probes[cluster.Name] = append(b.probes[cluster.Name], time.Since(b.begun))
		} else {
			b.sent[cluster.Name]++
		}
		serve := b.servers[cluster.Name]
		b.mu.Unlock()
		return serve(r)
	})
}

// serve has a cluster answer like this from now on.
func (b *bubble) serve(name string, s server) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.servers[name] = s
}

// cluster makes a cluster that answers like this, acquires it, and lets it settle.
func (b *bubble) cluster(name string, s server) *target.Cluster {
	b.t.Helper()
	b.serve(name, s)
	b.deploy(name)
	b.secret(name, "https://"+name+".example.com")
	c, err := b.clusters.Acquire(bubbleKey(name), user)
	if err != nil {
		b.t.Fatal(err)
	}
	synctest.Wait()
	return c
}

func bubbleKey(name string) target.Key { return target.Key{Namespace: "platform", Name: name} }

func (b *bubble) deploy(name string) {
	b.t.Helper()
	if err := b.deployments.Update(deployment(name)); err != nil {
		b.t.Fatal(err)
	}
}

func deployment(name string) *v1alpha1.ClusterDeployment {
	return &v1alpha1.ClusterDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "platform", Name: name}}
}

// secret puts a kubeconfig for the server into the Secret of a cluster.
func (b *bubble) secret(name, serverURL string) {
	b.t.Helper()
	b.secretOf(name, kubeconfigOf(b.t, &rest.Config{Host: serverURL, BearerToken: "token-of-" + name}))
}

func (b *bubble) secretOf(name string, kubeconfig []byte) {
	b.t.Helper()
	err := b.secrets.Update(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "platform", Name: name + target.DefaultSecretSuffix},
		Data:       map[string][]byte{target.DefaultSecretKey: kubeconfig},
	})
	if err != nil {
		b.t.Fatal(err)
	}
}

// request sends a request to a cluster like any client and returns the status of the answer.
func (b *bubble) request(ctx context.Context, c *target.Cluster, path string) (int, error) {
	b.t.Helper()
	httpClient, err := rest.HTTPClientFor(c.RESTConfig())
	if err != nil {
		b.t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.RESTConfig().Host+path, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	resp, err := httpClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer func() { _ = resp.Body.Close() }()
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, err
}

func (b *bubble) probed(name string) []time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]time.Duration{}, b.probes[name]...)
}

func (b *bubble) requests(name string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.sent[name]
}

func (b *bubble) expect(c *target.Cluster, state target.State) {
	b.t.Helper()
	synctest.Wait()
	if h := c.Health(); h.State != state {
		b.t.Fatalf("%s is %+v, want %s", c.Key(), h, state)
	}
}
