package story

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/operatorkit/operatorkit/examples/internal/demo"
	gateways "github.com/operatorkit/operatorkit/examples/nats-controller"
	"github.com/operatorkit/operatorkit/examples/nats-controller/registry"
	"github.com/operatorkit/operatorkit/informer/natsinformer"
	"github.com/operatorkit/operatorkit/operator/logging"
	"github.com/operatorkit/operatorkit/operator/operatortest/natsserver"
)

// world is where the story takes place: a NATS server, a Kubernetes and a registry.
type world struct {
	*demo.Demo

	config       gateways.Config
	natsURL      string
	gateways     *natsinformer.Bucket[*gateways.Gateway]
	certificates *natsinformer.Bucket[*gateways.Certificate]
	routes       *natsinformer.Bucket[*gateways.Route]
	registry     *registry.Client
	// stop stops the controller.
	stop func() error
}

// newWorld starts everything but the controller.
func newWorld(ctx context.Context, d *demo.Demo, replicas int) (*world, error) {
	w := &world{Demo: d}
	logger, err := logging.New(logging.Config{Format: logging.FormatText, Level: logging.LevelWarning})
	if err != nil {
		return nil, err
	}
	w.config = gateways.Config{
		RESTConfig: d.RESTConfig, Namespace: d.Namespace, PollInterval: time.Second, Logger: logger,
	}
	switch replicas {
	case 1:
		d.Step("starting a NATS server and a registry")
	case 3:
		d.Step("starting a cluster of three NATS servers and a registry")
	default:
		return nil, fmt.Errorf("--replicas=%d: choose 1 or 3", replicas)
	}
	if err := w.startNATS(ctx, replicas); err != nil {
		return nil, err
	}
	if err := w.startRegistry(); err != nil {
		return nil, err
	}
	if w.config.ListenAddress, err = demo.FreeAddress(); err != nil {
		return nil, err
	}
	w.Note("look at it with  nats --server " + w.natsURL + " kv watch gateways")
	w.Note("and with         curl " + w.config.RegistryURL + "/registrations")
	w.Try = []string{
		"nats --server " + w.natsURL + ` kv put gateways new '{"hosts":["new.example.com"],"backend":"10.0.2.1:80","certificate":"shop"}'`,
		"nats --server " + w.natsURL + " kv del routes shop.example.com",
		"bin/controlplane kubectl -n nats-controller delete configmap shop",
		"curl -X DELETE " + w.config.RegistryURL + "/registrations/shop",
	}
	return w, w.openBuckets()
}

// startNATS starts NATS servers with their stores in a temporary folder, and makes the buckets, each of which all servers keep.
func (w *world) startNATS(ctx context.Context, replicas int) error {
	dir, err := os.MkdirTemp("", "operatorkit-nats-")
	if err != nil {
		return fmt.Errorf("make a folder for NATS: %w", err)
	}
	servers, err := runNATS(ctx, dir, replicas)
	if err != nil {
		return errors.Join(err, os.RemoveAll(dir))
	}
	w.Go("NATS", func(ctx context.Context) error {
		<-ctx.Done()
		for _, server := range servers {
			server.Stop()
		}
		return os.RemoveAll(dir)
	})
	var urls []string
	for _, server := range servers {
		urls = append(urls, server.URL())
	}
	w.natsURL = strings.Join(urls, ",")
	conn, err := nats.Connect(w.natsURL, nats.MaxReconnects(-1), nats.ReconnectBufSize(-1))
	if err != nil {
		return fmt.Errorf("connect to NATS: %w", err)
	}
	w.Go("the connection to NATS", func(ctx context.Context) error {
		<-ctx.Done()
		conn.Close()
		return nil
	})
	w.config.JetStream, err = jetstream.New(conn)
	if err != nil {
		return err
	}
	if err := gateways.CreateBuckets(ctx, w.config.JetStream, replicas); err != nil {
		return err
	}
	for _, bucket := range []string{gateways.GatewaysBucket, gateways.CertificatesBucket, gateways.RoutesBucket, gateways.EventsBucket} {
		if err := w.watch(ctx, bucket); err != nil {
			return err
		}
	}
	return nil
}

func runNATS(ctx context.Context, dir string, replicas int) ([]*natsserver.Server, error) {
	if replicas > 1 {
		return natsserver.RunCluster(ctx, dir)
	}
	server, err := natsserver.Run(ctx, natsserver.Config{Dir: dir})
	return []*natsserver.Server{server}, err
}

// startRegistry starts the registry on a port of its own.
func (w *world) startRegistry() error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen for the registry: %w", err)
	}
	services := registry.NewServer()
	w.tellOfRegistry(services)
	server := &http.Server{Handler: services, ReadHeaderTimeout: 10 * time.Second}
	w.Go("the registry", func(ctx context.Context) error {
		stop := context.AfterFunc(ctx, func() { _ = server.Close() })
		defer stop()
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	w.config.RegistryURL = "http://" + listener.Addr().String()
	w.registry = &registry.Client{URL: w.config.RegistryURL}
	return nil
}

// openBuckets opens the buckets for the one who tells the story.
func (w *world) openBuckets() (err error) {
	js := w.config.JetStream
	if w.gateways, err = natsinformer.NewBucket(natsinformer.BucketConfig[*gateways.Gateway]{JetStream: js, Name: gateways.GatewaysBucket}); err != nil {
		return err
	}
	if w.certificates, err = natsinformer.NewBucket(natsinformer.BucketConfig[*gateways.Certificate]{JetStream: js, Name: gateways.CertificatesBucket}); err != nil {
		return err
	}
	w.routes, err = natsinformer.NewBucket(natsinformer.BucketConfig[*gateways.Route]{JetStream: js, Name: gateways.RoutesBucket})
	return err
}

// startController starts the controller.
func (w *world) startController() error {
	controller, err := gateways.New(w.config)
	if err != nil {
		return err
	}
	w.stop = w.Go("the controller", controller.Start)
	return nil
}
