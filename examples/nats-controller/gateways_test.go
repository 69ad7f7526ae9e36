package gateways_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go/jetstream"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gateways "github.com/operatorkit/operatorkit/examples/nats-controller"
	"github.com/operatorkit/operatorkit/examples/nats-controller/internal/selfsigned"
	"github.com/operatorkit/operatorkit/examples/nats-controller/registry"
	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/operator/natscontroller"
	"github.com/operatorkit/operatorkit/operator/operatortest"
)

func TestWhatIsChangedByHandIsPutRight(t *testing.T) {
	w := newWorld(t)
	w.run(t)
	w.create(t, "shop")
	operatortest.Eventually(t, "shop is kept", func() error { return w.isKept(t.Context(), "shop") })

	configMap := func() *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.config.Namespace, Name: "shop"}}
	}
	for _, tt := range []struct {
		name   string
		change func(ctx context.Context) error
	}{
		{"a route is edited", func(ctx context.Context) error {
			route, err := w.routes.Get(ctx, "shop.example.com")
			if err != nil {
				return err
			}
			route.Backend = "6.6.6.6:80"
			return w.routes.Update(ctx, route)
		}},
		{"a route is deleted", func(ctx context.Context) error {
			route, err := w.routes.Get(ctx, "shop.example.com")
			if err != nil {
				return err
			}
			return w.routes.Delete(ctx, route)
		}},
		{"a ConfigMap is edited", func(ctx context.Context) error {
			edit := []byte(`{"data":{"backend":"6.6.6.6:80"}}`)
			return w.kube.Patch(ctx, configMap(), client.RawPatch("application/merge-patch+json", edit))
		}},
		{"a ConfigMap is deleted", func(ctx context.Context) error { return w.kube.Delete(ctx, configMap()) }},
		{"a registration is edited", func(ctx context.Context) error {
			registration, err := w.registry.Get(ctx, "shop")
			if err != nil {
				return err
			}
			registration.Address = "6.6.6.6:80"
			return w.registry.Put(ctx, registration)
		}},
		{"a registration is deleted", func(ctx context.Context) error {
			registration, err := w.registry.Get(ctx, "shop")
			if err != nil {
				return err
			}
			return w.registry.Delete(ctx, registration)
		}},
		{"a certificate is rotated", func(ctx context.Context) error {
			certificate, err := w.certificates.Get(ctx, "shop")
			if err == nil {
				err = selfsigned.Renew(certificate)
			}
			if err != nil {
				return err
			}
			return w.certificates.Update(ctx, certificate)
		}},
		{"a gateway moves", func(ctx context.Context) error {
			gateway, err := w.gateways.Get(ctx, "shop")
			if err != nil {
				return err
			}
			gateway.Backend = "10.0.0.2:80"
			return w.gateways.Update(ctx, gateway)
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if err := tt.change(t.Context()); err != nil {
				t.Fatal(err)
			}
			operatortest.Eventually(t, "shop is kept", func() error { return w.isKept(t.Context(), "shop") })
		})
	}
}

func TestGatewayWithoutItsCertificateSaysSoAndServesAllElse(t *testing.T) {
	w := newWorld(t)
	w.run(t)
	w.create(t, "shop")
	operatortest.Eventually(t, "shop is kept", func() error { return w.isKept(t.Context(), "shop") })
	certificate, err := w.certificates.Get(t.Context(), "shop")
	if err != nil {
		t.Fatal(err)
	}
	if err := w.certificates.Delete(t.Context(), certificate); err != nil {
		t.Fatal(err)
	}
	const want = "False NoCertificate: certificate shop does not exist"
	operatortest.Eventually(t, "the condition", func() error {
		g, err := w.gateways.Get(t.Context(), "shop")
		if err != nil {
			return err
		}
		c := g.Conditions[0]
		if got := fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message); got != want {
			return fmt.Errorf("got %q, want %q", got, want)
		}
		return nil
	})
	operatortest.Eventually(t, "the event", func() error { return w.said(t.Context(), "shop", "Warning "+gateways.ReasonNoCertificate) })
	// The loss may be noticed between the ConfigMap and the condition, so that the ConfigMap comes next.
	operatortest.Eventually(t, "the ConfigMap has all else", func() error {
		cm := &corev1.ConfigMap{}
		if err := w.kube.Get(t.Context(), client.ObjectKey{Namespace: w.config.Namespace, Name: "shop"}, cm); err != nil {
			return err
		}
		if _, there := cm.Data[gateways.FingerprintKey]; there || cm.Data[gateways.BackendKey] == "" {
			return fmt.Errorf("it has the data %v", cm.Data)
		}
		return nil
	})
}

// said returns nil if there is an event of that type and reason about a gateway.
func (w *world) said(ctx context.Context, gateway, what string) error {
	kv, err := w.config.JetStream.KeyValue(ctx, gateways.EventsBucket)
	if err != nil {
		return err
	}
	watcher, err := kv.Watch(ctx, gateway+".*", jetstream.IgnoreDeletes())
	if err != nil {
		return err
	}
	defer func() { _ = watcher.Stop() }()
	for entry := range watcher.Updates() {
		if entry == nil {
			break
		}
		var event natscontroller.Event
		if err := json.Unmarshal(entry.Value(), &event); err != nil {
			return err
		}
		if event.Type+" "+event.Reason == what {
			return nil
		}
	}
	return errors.New("there is no event " + what)
}

func TestNothingIsLeftOfADeletedGateway(t *testing.T) {
	w := newWorld(t)
	stop := w.run(t)
	for _, name := range []string{"requested", "deleted", "purged"} {
		w.create(t, name)
		operatortest.Eventually(t, name+" is kept", func() error { return w.isKept(t.Context(), name) })
	}
	remove := func(name string, how func(context.Context, *gateways.Gateway) error) {
		t.Helper()
		g, err := w.gateways.Get(t.Context(), name)
		if err == nil {
			err = how(t.Context(), g)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	remove("requested", func(ctx context.Context, g *gateways.Gateway) error { return w.gateways.RequestDeletion(ctx, g.Name) })
	operatortest.Eventually(t, "it is gone", func() error { return w.leftIs(t.Context(), "requested") })
	remove("deleted", w.gateways.Delete)
	operatortest.Eventually(t, "it is gone", func() error { return w.leftIs(t.Context(), "deleted") })

	stop()
	remove("purged", w.gateways.Purge)
	foreign := &registry.Registration{Name: "foreign", Owner: "somebody", Hosts: []string{}}
	if err := w.registry.Put(t.Context(), foreign); err != nil {
		t.Fatal(err)
	}
	w.run(t)
	operatortest.Eventually(t, "orphans are collected", func() error { return w.leftIs(t.Context(), "purged") })
	if err := w.leftIs(t.Context(), "foreign", "registration"); err != nil {
		t.Error(err)
	}
}

func TestR17ARegistrationThatHasChangedIsNeitherOverwrittenNorRemoved(t *testing.T) {
	server := httptest.NewServer(registry.NewServer())
	defer server.Close()
	c := &registry.Client{URL: server.URL, HTTP: server.Client()}
	first := &registry.Registration{Name: "shop", Owner: "a", Hosts: []string{}}
	if err := c.Put(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	next := *first
	next.Address = "10.0.0.2:80"
	if err := c.Put(t.Context(), &next); err != nil {
		t.Fatal(err)
	}
	late := *first
	created := registry.Registration{Name: "shop"}
	for what, err := range map[string]error{
		"update": c.Put(t.Context(), &late), "creation": c.Put(t.Context(), &created), "deletion": c.Delete(t.Context(), first),
	} {
		if !errors.Is(err, registry.ErrConflict) {
			t.Errorf("a late %s: %v", what, err)
		}
	}
	now, err := c.Get(t.Context(), "shop")
	if diff := cmp.Diff(&next, now); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestR16RegistrationOfSomebodyElseIsNotTouched(t *testing.T) {
	w := newWorld(t)
	foreign := &registry.Registration{Name: "shop", Owner: "somebody", Address: "1.2.3.4:80", Hosts: []string{}}
	if err := w.registry.Put(t.Context(), foreign); err != nil {
		t.Fatal(err)
	}
	w.run(t)
	w.create(t, "shop")
	operatortest.Eventually(t, "an event says so", func() error { return w.said(t.Context(), "shop", "Warning "+framework.ReasonReconciliationFailed) })
	if err := w.gateways.RequestDeletion(t.Context(), "shop"); err != nil {
		t.Fatal(err)
	}
	operatortest.Eventually(t, "the gateway can go", func() error { return w.leftIs(t.Context(), "shop", "registration") })
}

func TestPreviewSaysWhatWouldBeDoneAndDoesNothing(t *testing.T) {
	w := newWorld(t)
	stop := w.run(t)
	for _, name := range []string{"shop", "blog"} {
		w.create(t, name)
		operatortest.Eventually(t, name+" is kept", func() error { return w.isKept(t.Context(), name) })
	}
	stop()
	shop, err := w.gateways.Get(t.Context(), "shop")
	if err != nil {
		t.Fatal(err)
	}
	shop.Backend = "10.0.0.2:80"
	if err := w.gateways.Update(t.Context(), shop); err != nil {
		t.Fatal(err)
	}
	blog, err := w.gateways.Get(t.Context(), "blog")
	if err != nil {
		t.Fatal(err)
	}
	if err := w.gateways.Purge(t.Context(), blog); err != nil {
		t.Fatal(err)
	}

	controller, err := gateways.New(w.config)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := controller.Preview(t.Context(), &out, plan.TextOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`~ data.backend: "10.0.0.1:80" -> "10.0.0.2:80"`, "~ Entry routes/shop.example.com", "~ Registration shop", "3 to update",
		"3 to collect as garbage", "remove blog.example.com from bucket routes", "remove blog from the registry: its owner, v1/gateway-controller/gateway-controller/registration/blog, does not exist",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the preview lacks %s:\n%s", want, &out)
		}
	}
	if err := w.leftIs(t.Context(), "blog", "ConfigMap", "route", "registration"); err != nil {
		t.Error(err)
	}
	route, err := w.routes.Get(t.Context(), "shop.example.com")
	if err != nil || route.Backend != "10.0.0.1:80" {
		t.Errorf("the route was changed: %v, %v", route, err)
	}
}

func TestControllerWithALeaseInNATSWorksOnceItHoldsIt(t *testing.T) {
	w := newWorld(t)
	w.config.LeaderElection = true
	w.run(t)
	w.create(t, "shop")
	operatortest.Eventually(t, "shop is kept", func() error { return w.isKept(t.Context(), "shop") })
}
