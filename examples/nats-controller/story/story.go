// Package story shows the gateway controller on a NATS server, a control plane and a registry of its own: it creates four gateways, waits for
// their routes, ConfigMaps and registrations, and prints commands to try next.
package story

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/examples/internal/demo"
	gateways "github.com/operatorkit/operatorkit/examples/nats-controller"
	"github.com/operatorkit/operatorkit/examples/nats-controller/internal/selfsigned"
	"github.com/operatorkit/operatorkit/examples/nats-controller/registry"
	"github.com/operatorkit/operatorkit/informer/natsinformer"
	"github.com/operatorkit/operatorkit/operator/logging"
	"github.com/operatorkit/operatorkit/operator/operatortest/natsserver"
)

// New returns the story.
func New() demo.Story {
	return demo.Story{
		Name:  "nats-controller",
		Tell:  tell,
		Look:  "bin/controlplane kubectl -n nats-controller get configmaps",
		Kinds: []client.ObjectList{&corev1.ConfigMapList{}},
	}
}

func tell(ctx context.Context, d *demo.Demo) error {
	logger, err := logging.New(logging.Config{Format: logging.FormatText, Level: logging.LevelWarning})
	if err != nil {
		return err
	}
	config := gateways.Config{RESTConfig: d.RESTConfig, Namespace: d.Namespace, PollInterval: time.Second, Logger: logger}
	d.Step("starting a NATS server, a registry and the controller")
	url, err := startNATS(ctx, d, &config)
	if err != nil {
		return err
	}
	if config.RegistryURL, err = startRegistry(d); err != nil {
		return err
	}
	if config.ListenAddress, err = demo.FreeAddress(); err != nil {
		return err
	}
	controller, err := gateways.New(config)
	if err != nil {
		return err
	}
	d.Go("the controller", controller.Start)
	d.Note("look at it with  nats --server " + url + " kv watch gateways")
	d.Note("and with         curl " + config.RegistryURL + "/registrations")
	d.Note("metrics are at   http://" + config.ListenAddress + "/metrics")
	d.Try = []string{
		"nats --server " + url + ` kv put gateways new '{"hosts":["new.example.com"],"backend":"10.0.2.1:80","certificate":"shop"}'`,
		"nats --server " + url + " kv del routes shop.example.com        # it comes back",
		"bin/controlplane kubectl -n nats-controller delete configmap shop",
		"curl -X DELETE " + config.RegistryURL + "/registrations/shop",
		"nats --server " + url + " kv del gateways wiki                   # all that was made for it goes",
	}
	return createGateways(ctx, d, config.JetStream)
}

// createGateways creates gateways and their certificates, and waits until they serve.
func createGateways(ctx context.Context, d *demo.Demo, js jetstream.JetStream) error {
	bucket, err := natsinformer.NewBucket(natsinformer.BucketConfig[*gateways.Gateway]{JetStream: js, Name: gateways.GatewaysBucket})
	if err != nil {
		return err
	}
	certificates, err := natsinformer.NewBucket(natsinformer.BucketConfig[*gateways.Certificate]{JetStream: js, Name: gateways.CertificatesBucket})
	if err != nil {
		return err
	}
	d.Step("creating four gateways and their certificates")
	names := []string{"shop", "blog", "docs", "wiki"}
	for i, name := range names {
		certificate, err := selfsigned.New(name)
		if err != nil {
			return err
		}
		if err := certificates.Create(ctx, certificate); err != nil {
			return err
		}
		if err := bucket.Create(ctx, &gateways.Gateway{
			Meta: natsinformer.Meta{Name: name}, Certificate: name,
			Hosts: []string{name + ".example.com"}, Backend: fmt.Sprintf("10.0.0.%d:80", i+1),
		}); err != nil {
			return err
		}
	}
	for _, name := range names {
		err := d.Until(ctx, name+" has its route, its ConfigMap and its registration", func(ctx context.Context) (bool, error) {
			gateway, err := bucket.Get(ctx, name)
			return err == nil && meta.IsStatusConditionTrue(gateway.Conditions, gateways.ReadyCondition), err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// startNATS starts a server with its store in a temporary folder, makes the buckets, and returns the server's URL.
func startNATS(ctx context.Context, d *demo.Demo, config *gateways.Config) (url string, err error) {
	dir, err := os.MkdirTemp("", "operatorkit-nats-")
	if err != nil {
		return "", fmt.Errorf("make a folder for NATS: %w", err)
	}
	server, err := natsserver.Run(ctx, natsserver.Config{Dir: dir})
	if err != nil {
		return "", errors.Join(err, os.RemoveAll(dir))
	}
	d.Go("NATS", func(ctx context.Context) error {
		<-ctx.Done()
		server.Stop()
		return os.RemoveAll(dir)
	})
	conn, err := nats.Connect(server.URL(), nats.MaxReconnects(-1), nats.ReconnectBufSize(-1))
	if err != nil {
		return "", fmt.Errorf("connect to NATS: %w", err)
	}
	d.Go("the connection to NATS", func(ctx context.Context) error {
		<-ctx.Done()
		conn.Close()
		return nil
	})
	if config.JetStream, err = jetstream.New(conn); err != nil {
		return "", err
	}
	return server.URL(), gateways.CreateBuckets(ctx, config.JetStream, 1)
}

// startRegistry starts a registry at a port of its own, and returns its URL.
func startRegistry(d *demo.Demo) (url string, err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("listen for the registry: %w", err)
	}
	server := &http.Server{Handler: registry.NewServer(), ReadHeaderTimeout: 10 * time.Second}
	d.Go("the registry", func(ctx context.Context) error {
		defer context.AfterFunc(ctx, func() { _ = server.Close() })()
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	return "http://" + listener.Addr().String(), nil
}
