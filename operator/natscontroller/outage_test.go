package natscontroller_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer/natsinformer"
	"github.com/operatorkit/operatorkit/operator/natscontroller"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/operator/operatortest/natsserver"
)

// mirror runs a controller that mirrors gateways into routes, through a connection of its own.
func (w *world) mirror(js jetstream.JetStream) *running {
	w.t.Helper()
	own := openWorld(w.t, js, nil)
	config := own.config()
	config.Resources = []framework.Resource{&mirroring{writer: "c", routes: own.routes}}
	return run(w.t, own.controller(config).Start)
}

// retried does a write until it succeeds, and tells what came of it.
func retried(t *testing.T, what string, do func(ctx context.Context) error) {
	t.Helper()
	operatortest.Eventually(t, what, func() error {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		return do(ctx)
	})
}

func TestServerKilledInMidWriteCausesNoLostUpdateAndNoDoubleWrite(t *testing.T) {
	server := natsserver.StartProcess(t)
	_, js := server.Connect(t)
	for _, name := range []string{"gateways", "routes", "events"} {
		natsserver.NewBucket(t, js, jetstream.KeyValueConfig{Bucket: name, History: 64})
	}
	w := openWorld(t, js, nil)
	_, own := server.Connect(t)
	running := w.mirror(own)

	const gateways, rounds = 20, 4
	for round := range rounds {
		for i := range gateways {
			name := fmt.Sprintf("gateway-%d", i)
			retried(t, "the write of "+name, func(ctx context.Context) error {
				gateway, err := w.gateways.Get(ctx, name)
				if err != nil {
					return w.gateways.Create(ctx, &Gateway{Meta: natsinformer.Meta{Name: name}})
				}
				return w.gateways.Update(ctx, gateway)
			})
		}
		// Some of the routes are written by now, some are under way, some are not.
		if round < rounds-1 {
			server.Restart(t)
		}
	}
	converged := func() error {
		for i := range gateways {
			name := fmt.Sprintf("gateway-%d", i)
			gateway, err := w.gateways.Get(t.Context(), name)
			if err != nil {
				return err
			}
			if err := w.mirrored(name, gateway.Revision(), "c"); err != nil {
				return err
			}
		}
		return nil
	}
	operatortest.Eventually(t, "every gateway is mirrored", converged)
	if err := running.stop(); err != nil {
		t.Fatal(err)
	}
	eachRevisionOnce(t, w.writes())
}

func TestNothingIsLostWhenTheNetworkIsCutForLongerThanAnyTimeOut(t *testing.T) {
	for name, breakLink := range map[string]func(*natsserver.Link){"cut": (*natsserver.Link).Cut, "frozen": (*natsserver.Link).Freeze} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := natsserver.Start(t)
			_, js := server.Connect(t)
			w := newWorldAt(t, js)
			link := natsserver.NewLink(t, server.URL())
			_, own := natsserver.Connect(t, link.URL())
			behind := openWorld(t, own, nil)
			w.createGateway("stays")
			w.createGateway("changes")
			w.createGateway("goes")
			w.createGateway("is-purged")
			c := newClassic(behind, behind.config())
			running := run(t, c.Start)
			routes := func(want ...string) func() error {
				return func() error {
					if got := w.keys("routes"); !slices.Equal(got, want) {
						return fmt.Errorf("the routes are %q, want %q", got, want)
					}
					return nil
				}
			}
			operatortest.Eventually(t, "all routes", routes("changes", "goes", "is-purged", "stays"))

			breakLink(link)
			// Longer than the five seconds that a request may take, and than any probe.
			restored := time.Now().Add(8 * time.Second)
			w.createGateway("comes")
			w.touch("changes")
			w.deleteGateway("goes")
			purged, err := w.gateways.Get(t.Context(), "is-purged")
			if err == nil {
				err = w.gateways.Purge(t.Context(), purged)
			}
			if err != nil {
				t.Fatal(err)
			}
			deleteEntity(t, w.routes, "stays")
			c.calls.take()
			c.EnqueueKey("stays", natscontroller.OperationPut)
			operatortest.Eventually(t, "the outage lasts", func() bool { return time.Now().After(restored) })
			if err := routes("changes", "goes", "is-purged")(); err != nil {
				t.Errorf("during the outage: %v", err)
			}

			link.Restore()
			operatortest.Eventually(t, "what was asked for meanwhile", routes("changes", "comes", "stays"))
			operatortest.Eventually(t, "the change", func() bool { return c.calls.contains("sync changes") })
			if err := running.stop(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func TestAControllerWhoseConnectionIsClosedEndsWithAnError(t *testing.T) {
	server := natsserver.Start(t)
	_, js := server.Connect(t)
	w := newWorldAt(t, js)
	conn, own := server.Connect(t)
	behind := openWorld(t, own, nil)
	w.createGateway("here")
	c := newClassic(behind, behind.config())
	running := run(t, c.Start)
	operatortest.Eventually(t, "the controller works", func() bool { return c.calls.contains("sync here") })
	conn.Close()
	if err := running.wait(); !errors.Is(err, nats.ErrConnectionClosed) {
		t.Errorf("Start returned %v", err)
	}
}

func TestAControllerIsNotReadyWhileItsBucketsAreOutOfReach(t *testing.T) {
	server := natsserver.Start(t)
	_, js := server.Connect(t)
	newWorldAt(t, js)
	link := natsserver.NewLink(t, server.URL())
	_, own := natsserver.Connect(t, link.URL())
	behind, log := openWorld(t, own, nil), &journal{}
	config := behind.config()
	config.ListenAddress, config.ContactTimeout, config.Logger = "127.0.0.1:0", time.Millisecond, logTo(t, log)
	running := run(t, newClassic(behind, config).Start)
	answers := readiness(t, log)
	answers("/readyz", http.StatusOK, "")
	link.Cut()
	answers("/readyz", http.StatusServiceUnavailable, "is out of contact for")
	answers("/healthz", http.StatusOK, "")
	link.Restore()
	answers("/readyz", http.StatusOK, "")
	if err := running.stop(); err != nil {
		t.Fatal(err)
	}
}

// readiness returns a function that waits until a controller, which writes to the log, answers a path with a status and a text.
func readiness(t *testing.T, log *journal) (answers func(path string, status int, says string)) {
	t.Helper()
	address := ""
	operatortest.Eventually(t, "it says where it answers", func() bool {
		for _, line := range log.all() {
			if _, after, found := strings.Cut(line, "address="); found && strings.Contains(line, "serving health") {
				address = strings.Fields(after)[0]
			}
		}
		return address != ""
	})
	return func(path string, status int, says string) {
		t.Helper()
		operatortest.Eventually(t, fmt.Sprintf("%s answers %d", path, status), func() error {
			answer, err := http.Get("http://" + address + path)
			if err != nil {
				return err
			}
			defer func() { _ = answer.Body.Close() }()
			body, err := io.ReadAll(answer.Body)
			if err == nil && (answer.StatusCode != status || !strings.Contains(string(body), says)) {
				err = fmt.Errorf("it answers %d %s", answer.StatusCode, body)
			}
			return err
		})
	}
}
