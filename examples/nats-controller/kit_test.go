package gateways_test

import (
	"context"
	"errors"
	"io"
	"maps"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/nats-io/nats.go/jetstream"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gateways "github.com/operatorkit/operatorkit/examples/nats-controller"
	"github.com/operatorkit/operatorkit/examples/nats-controller/internal/selfsigned"
	"github.com/operatorkit/operatorkit/examples/nats-controller/registry"
	"github.com/operatorkit/operatorkit/informer/natsinformer"
	"github.com/operatorkit/operatorkit/operator/logging"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/operator/operatortest/natsserver"
)

// world is what the controller works on: a NATS server, a namespace of Kubernetes and a registry.
type world struct {
	config       gateways.Config
	gateways     *natsinformer.Bucket[*gateways.Gateway]
	certificates *natsinformer.Bucket[*gateways.Certificate]
	routes       *natsinformer.Bucket[*gateways.Route]
	registry     *registry.Client
	kube         client.Client
}

func newWorld(t *testing.T) *world {
	t.Helper()
	kube := operatortest.Start(t)
	_, js := natsserver.Start(t).Connect(t)
	services := httptest.NewServer(registry.NewServer())
	t.Cleanup(services.Close)
	w, err := openWorld(t.Context(), js, services, kube.RESTConfig(), kube.Namespace(t))
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func openWorld(ctx context.Context, js jetstream.JetStream, services *httptest.Server, config *rest.Config, namespace string) (*world, error) {
	logger, err := logging.New(logging.Config{Writer: io.Discard})
	if err != nil {
		return nil, err
	}
	w := &world{
		config: gateways.Config{
			JetStream: js, RESTConfig: config, Namespace: namespace, RegistryURL: services.URL, PollInterval: 100 * time.Millisecond, Logger: logger,
		},
		registry: &registry.Client{URL: services.URL, HTTP: services.Client()},
	}
	var errs [5]error
	errs[0] = gateways.CreateBuckets(ctx, js, 1)
	w.gateways, errs[1] = natsinformer.NewBucket(natsinformer.BucketConfig[*gateways.Gateway]{JetStream: js, Name: gateways.GatewaysBucket})
	w.certificates, errs[2] = natsinformer.NewBucket(natsinformer.BucketConfig[*gateways.Certificate]{JetStream: js, Name: gateways.CertificatesBucket})
	w.routes, errs[3] = natsinformer.NewBucket(natsinformer.BucketConfig[*gateways.Route]{JetStream: js, Name: gateways.RoutesBucket})
	w.kube, errs[4] = client.New(config, client.Options{})
	return w, errors.Join(errs[:]...)
}

// run runs a controller until stop is called, or the test ends.
func (w *world) run(t *testing.T) (stop func()) {
	t.Helper()
	controller, err := gateways.New(w.config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- controller.Start(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the controller ended with: %v", err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// create creates a gateway with one host, and its certificate.
func (w *world) create(t *testing.T, name string) {
	t.Helper()
	certificate, err := selfsigned.New(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.certificates.Create(t.Context(), certificate); err != nil {
		t.Fatal(err)
	}
	if err := w.gateways.Create(t.Context(), newGateway(name)); err != nil {
		t.Fatal(err)
	}
}

func newGateway(name string) *gateways.Gateway {
	return &gateways.Gateway{
		Meta: natsinformer.Meta{Name: name}, Certificate: name, Hosts: []string{name + ".example.com"}, Backend: "10.0.0.1:80",
	}
}

// isKept returns nil when all that a gateway asks for is there.
func (w *world) isKept(ctx context.Context, name string) error {
	g, err := w.gateways.Get(ctx, name)
	if err != nil {
		return err
	}
	certificate, err := w.certificates.Get(ctx, g.Certificate)
	if err != nil {
		return err
	}
	fingerprint, expires, err := certificate.Inspect()
	if err != nil {
		return err
	}
	type state struct {
		Data         map[string]string
		Routes       map[string]string
		Registration *registry.Registration
		Reason       string
	}
	want := state{
		Data: map[string]string{
			gateways.HostsKey: g.Hosts[0], gateways.BackendKey: g.Backend,
			gateways.FingerprintKey: fingerprint, gateways.ExpiresKey: expires.Format(time.RFC3339),
		},
		Routes:       map[string]string{g.Hosts[0]: g.Backend},
		Registration: &registry.Registration{Name: name, Owner: "v1/gateway-controller/gateway-controller/registration/" + name, Address: g.Backend, Hosts: g.Hosts},
		Reason:       gateways.ReasonServing,
	}
	got := state{Routes: map[string]string{}}
	cm := &corev1.ConfigMap{}
	if err := w.kube.Get(ctx, client.ObjectKey{Namespace: w.config.Namespace, Name: name}, cm); err != nil {
		return err
	}
	got.Data = cm.Data
	for _, host := range g.Hosts {
		route, err := w.routes.Get(ctx, host)
		if err != nil {
			return err
		}
		got.Routes[host] = route.Backend
	}
	if got.Registration, err = w.registry.Get(ctx, name); err != nil {
		return err
	}
	for _, c := range g.Conditions {
		got.Reason = c.Reason
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(registry.Registration{}, "Version")); diff != "" {
		return errors.New("(-want +got):\n" + diff)
	}
	return nil
}

// left are the things that are there because of a gateway.
func (w *world) left(ctx context.Context, name string) (left []string, err error) {
	_, gateway := w.gateways.Get(ctx, name)
	_, route := w.routes.Get(ctx, name+".example.com")
	configMap := w.kube.Get(ctx, client.ObjectKey{Namespace: w.config.Namespace, Name: name}, &corev1.ConfigMap{})
	found := map[string]error{"gateway": gateway, "route": route, "ConfigMap": configMap}
	for _, thing := range slices.Sorted(maps.Keys(found)) {
		if found[thing] == nil {
			left = append(left, thing)
		} else if !apierrors.IsNotFound(found[thing]) {
			return nil, found[thing]
		}
	}
	registered, err := w.registry.Get(ctx, name)
	if registered != nil {
		left = append(left, "registration")
	}
	return left, err
}

// leftIs is a condition: nothing but these things is left of a gateway.
func (w *world) leftIs(ctx context.Context, name string, want ...string) error {
	got, err := w.left(ctx, name)
	if err != nil {
		return err
	}
	if diff := cmp.Diff(want, got); diff != "" {
		return errors.New("left of " + name + " (-want +got):\n" + diff)
	}
	return nil
}
