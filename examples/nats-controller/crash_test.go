package gateways_test

import (
	"context"
	"errors"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gateways "github.com/operatorkit/operatorkit/examples/nats-controller"
	"github.com/operatorkit/operatorkit/examples/nats-controller/internal/selfsigned"
	"github.com/operatorkit/operatorkit/examples/nats-controller/registry"
	"github.com/operatorkit/operatorkit/informer/natsinformer"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/operator/operatortest/natsserver"
	"github.com/operatorkit/operatorkit/resource/objectresource"
)

// worlds has a NATS server and a registry for each run of a scenario, by the namespace of the run.
type worlds struct {
	dir  string
	kube *rest.Config

	mu     sync.Mutex
	opened map[string]*runWorld
}

type runWorld struct {
	*world
	close func()
}

// of returns the world of a run. It is made when it is asked for first.
func (ws *worlds) of(ctx context.Context, namespace string) (*runWorld, error) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if w := ws.opened[namespace]; w != nil {
		return w, nil
	}
	server, err := natsserver.Run(ctx, natsserver.Config{Dir: filepath.Join(ws.dir, namespace)})
	if err != nil {
		return nil, err
	}
	conn, err := nats.Connect(server.URL(), nats.MaxReconnects(-1))
	if err != nil {
		server.Stop()
		return nil, err
	}
	services := httptest.NewServer(registry.NewServer())
	end := func() {
		services.Close()
		conn.Close()
		server.Stop()
		_ = os.RemoveAll(filepath.Join(ws.dir, namespace))
	}
	js, err := jetstream.New(conn)
	if err != nil {
		end()
		return nil, err
	}
	w, err := openWorld(ctx, js, services, ws.kube, namespace)
	if err != nil {
		end()
		return nil, err
	}
	ws.opened[namespace] = &runWorld{w, end}
	return ws.opened[namespace], nil
}

// step is a step that knows the world of its run.
func (ws *worlds) step(do func(ctx context.Context, w *runWorld) error) operatortest.Step {
	return func(ctx context.Context, _ client.Client, namespace string) error {
		w, err := ws.of(ctx, namespace)
		if err != nil {
			return err
		}
		return do(ctx, w)
	}
}

// put writes an entity over what is there, if there is something.
func put[T natsinformer.Entity](ctx context.Context, bucket *natsinformer.Bucket[T], entity T, change func(T)) error {
	for {
		current, err := bucket.Get(ctx, entity.GetName())
		switch {
		case apierrors.IsNotFound(err):
			return bucket.Create(ctx, entity)
		case err != nil:
			return err
		}
		change(current)
		if err := bucket.Update(ctx, current); !apierrors.IsConflict(err) {
			return err
		}
	}
}

func TestGatewaysSurviveACrashAtEveryWriteToKubernetes(t *testing.T) {
	operatortest.Survives(t, lifeOfGateways)
}

// lifeOfGateways is the life of a gateway whose certificate and backend change.
func lifeOfGateways(t *testing.T) operatortest.Scenario {
	t.Helper()
	ws := &worlds{dir: t.TempDir(), kube: operatortest.Start(t).RESTConfig(), opened: map[string]*runWorld{}}
	// All runs use the same certificates, so that they end in the same state.
	var pems [2]string
	for i := range pems {
		certificate, err := selfsigned.New("shop")
		if err != nil {
			t.Fatal(err)
		}
		pems[i] = certificate.PEM
	}
	certify := func(ctx context.Context, w *runWorld, pem string) error {
		certificate := &gateways.Certificate{Meta: natsinformer.Meta{Name: "shop"}, PEM: pem}
		return put(ctx, w.certificates, certificate, func(c *gateways.Certificate) { c.PEM = pem })
	}
	kept := ws.step(func(ctx context.Context, w *runWorld) error { return w.isKept(ctx, "shop") })

	start := func(operator string) func(ctx context.Context, config *rest.Config, namespace string) error {
		return func(ctx context.Context, config *rest.Config, namespace string) error {
			w, err := ws.of(ctx, namespace)
			if err != nil {
				return err
			}
			own := w.config
			own.Operator, own.RESTConfig, own.Registry = operator, config, prometheus.NewRegistry()
			operatortest.CountReconciliations(ctx, own.Registry)
			controller, err := gateways.New(own)
			if err != nil {
				return err
			}
			return controller.Start(ctx)
		}
	}

	return operatortest.Scenario{
		Name:   "gateways",
		Config: ws.kube,
		Start:  start(""),
		// Who comes first has the route, the ConfigMap and the registration, and the other one leaves them alone.
		Neighbour: start("second"), NeighbourAfter: kept,
		Phases: []operatortest.Phase{
			{Name: "create", Until: kept, Do: ws.step(func(ctx context.Context, w *runWorld) error {
				return errors.Join(certify(ctx, w, pems[0]), w.gateways.Create(ctx, newGateway("shop")))
			})},
			{Name: "rotate", Until: kept, Do: ws.step(func(ctx context.Context, w *runWorld) error { return certify(ctx, w, pems[1]) })},
			{Name: "edit by hand", Until: kept, Do: func(ctx context.Context, user client.Client, namespace string) error {
				cm := &corev1.ConfigMap{}
				cm.Namespace, cm.Name = namespace, "shop"
				return user.Patch(ctx, cm, client.RawPatch("application/merge-patch+json", []byte(`{"data":{"backend":"6.6.6.6:80"}}`)))
			}},
			{Name: "move", Until: kept, Do: ws.step(func(ctx context.Context, w *runWorld) error {
				return put(ctx, w.gateways, newGateway("shop"), func(g *gateways.Gateway) { g.Backend = "10.0.0.2:80" })
			})},
			{Name: "delete", Do: ws.step(func(ctx context.Context, w *runWorld) error { return w.gateways.RequestDeletion(ctx, "shop") }),
				Until: ws.step(func(ctx context.Context, w *runWorld) error { return w.leftIs(ctx, "shop") })},
		},
		Objects:   []client.Object{&corev1.ConfigMap{}},
		Normalize: objectresource.Normalize,
		Cleanup: ws.step(func(_ context.Context, w *runWorld) error {
			w.close()
			return nil
		}),
	}
}
