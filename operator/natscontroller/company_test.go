package natscontroller_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go/jetstream"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer/natsinformer"
	"github.com/operatorkit/operatorkit/operator/natscontroller"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/operator/operatortest/natsserver"
)

func TestNoSecondaryIsCollectedWherePrimariesCannotBeRead(t *testing.T) {
	for name, open := range map[string]func(t *testing.T, js jetstream.JetStream){
		"a mirror of the bucket": func(t *testing.T, js jetstream.JetStream) { natsserver.NewMirror(t, js, "gateways", "others") },
		"a stream that sources the bucket under its subjects": func(t *testing.T, js jetstream.JetStream) {
			_, err := js.CreateStream(t.Context(), jetstream.StreamConfig{
				Name: "KV_others", Subjects: []string{"$KV.others.>"}, MaxMsgsPerSubject: 5, AllowRollup: true,
				Sources: []*jetstream.StreamSource{{Name: "KV_gateways"}},
			})
			if err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.createGateway("a")
			w.createRoute("a", kind, "a")
			open(t, w.js)
			config := w.config()
			config.Primary = newSource(w, newBucket[*Gateway](t, w.js, "others", nil))
			c := w.controller(config)
			running := run(t, c.Start)
			operatortest.Eventually(t, "the source says why it is not synced", func() error {
				if status := config.Primary.Status(); status.Synced || status.LastError == nil {
					return fmt.Errorf("status %+v", status)
				}
				return nil
			})
			if garbage, err := c.PlanGarbage(t.Context()); err == nil {
				t.Errorf("garbage is planned: %v", garbage)
			}
			if err := running.stop(); err != nil {
				t.Fatal(err)
			}
			if got := w.keys("routes"); !slices.Equal(got, []string{"a"}) {
				t.Errorf("the routes are %q", got)
			}
		})
	}
}

func TestAnEventOnAnEntityWithALongKeyIsWritten(t *testing.T) {
	w := newWorld(t)
	key := strings.Repeat("k", 4010)
	w.createGateway(key)
	gateway, err := w.gateways.Get(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	c := newClassic(w, w.config())
	running := run(t, c.Start)
	operatortest.Eventually(t, "the controller works", func() bool { return c.calls.contains("sync " + key) })
	c.Event(gateway, corev1.EventTypeNormal, natscontroller.ReasonResourceSynced, "it is long")
	operatortest.Eventually(t, "the event", func() error {
		if events := w.allEvents(); len(events) != 1 || events[0].Object.Key != key {
			return fmt.Errorf("%d events", len(events))
		}
		return nil
	})
	if err := running.stop(); err != nil {
		t.Fatal(err)
	}
	if w.js.Conn().IsClosed() {
		t.Error("the connection is closed")
	}
}

func TestAFullBucketOfSecondariesIsToldByReadinessAndOvercomeOnceThereIsRoom(t *testing.T) {
	w, log := newWorld(t), &journal{}
	w.createGateway("a")
	config := w.config()
	config.Resources = []framework.Resource{&mirroring{writer: "c", routes: w.routes}}
	config.ListenAddress, config.Logger = "127.0.0.1:0", logTo(t, log)
	drain := natsserver.Fill(t, w.js, "routes")
	running := run(t, w.controller(config).Start)
	answers := readiness(t, log)
	answers("/readyz", http.StatusServiceUnavailable, "the bucket is full: raise its MaxBytes")
	drain()
	answers("/readyz", http.StatusOK, "")
	w.touch("a")
	operatortest.Eventually(t, "the route", func() error {
		if diff := cmp.Diff([]string{"a"}, w.keys("routes")); diff != "" {
			return fmt.Errorf("the routes (-want +got):\n%s", diff)
		}
		return nil
	})
	if err := running.stop(); err != nil {
		t.Fatal(err)
	}
}

func TestAKeyThatASecondaryCannotHaveFailsItsPrimaryAlone(t *testing.T) {
	w := newWorld(t)
	key := strings.Repeat("k", 3000)
	w.createGateway(key)
	w.createGateway("a")
	config := w.config()
	config.Resources = []framework.Resource{&lengthening{w.routes}}
	running := run(t, w.controller(config).Start)
	operatortest.Eventually(t, "the route of the other one", func() bool { return slices.Equal(w.keys("routes"), []string{"a.suffix"}) })
	operatortest.Eventually(t, "the error", func() bool { return w.log.contains("too large: the key has") })
	if err := running.stop(); err != nil {
		t.Fatal(err)
	}
}

// lengthening makes a route of a longer name for each gateway.
type lengthening struct {
	routes *natsinformer.Bucket[*Route]
}

func (*lengthening) Name() string { return "lengthening" }

func (l *lengthening) EnsureCreated(ctx context.Context, obj any) error {
	name := obj.(*Gateway).Name + ".suffix"
	if len(name) > 100 {
		name += strings.Repeat("s", 1100)
	}
	if _, err := l.routes.Get(ctx, name); !apierrors.IsNotFound(err) {
		return err
	}
	return l.routes.Create(ctx, &Route{Meta: natsinformer.Meta{Name: name, OwnerKind: kind, OwnerKey: obj.(*Gateway).Name}})
}

func (*lengthening) EnsureDeleted(context.Context, any) error { return nil }
