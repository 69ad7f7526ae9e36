// Package gateways is a controller whose primaries live in NATS. A Gateway, an entry of a bucket, becomes
//
//   - routes, entries of another bucket, one for each of its hosts (secondaries),
//   - a ConfigMap in Kubernetes with what the gateway's proxy has to know (secondary),
//   - a registration with a registry over HTTP (external).
//
// What the ConfigMap says of the gateway's Certificate comes from an entry that somebody else writes (tertiary). What is
// changed by hand is put right.
//
//	$ make run EXAMPLE=nats-controller                                # on servers of its own
//	$ go run ./examples/nats-controller/cmd/operator --help           # on yours
//	$ go run ./examples/nats-controller/cmd/operator --plan           # what it would change there
package gateways

import (
	"cmp"
	"context"
	"net/http"
	"time"

	"github.com/giantswarm/micrologger"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/operatorkit/operatorkit/examples/nats-controller/registry"
	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/informer/natsinformer"
	"github.com/operatorkit/operatorkit/informer/pollinformer"
	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/natscontroller"
	"github.com/operatorkit/operatorkit/operator/natscontroller/natslease"
	"github.com/operatorkit/operatorkit/resource/natsresource"
)

// Name is the name of the controller.
const Name = "gateway-controller"

// Config says where everything is.
type Config struct {
	// Operator is the name of the operator, by which two on the same gateways differ. Default: Name.
	Operator string
	// JetStream has the buckets. Connect with nats.MaxReconnects(-1) and nats.ReconnectBufSize(-1). Required.
	JetStream jetstream.JetStream
	// RESTConfig is the Kubernetes of the ConfigMaps, and Namespace where they are. Required.
	RESTConfig *rest.Config
	Namespace  string
	// RegistryURL is the address of the registry, and PollInterval how often it is looked at. Default of the latter: a
	// minute.
	RegistryURL  string
	PollInterval time.Duration
	// LeaderElection lets one of several replicas work, by a lease in NATS. Default: false.
	LeaderElection bool
	// ListenAddress is the host and port of /healthz, /readyz and /metrics. Default: off.
	ListenAddress string
	// Registry is for all metrics. Default: a new one with those of the Go runtime, the process and the build.
	Registry *prometheus.Registry
	// Logger is for everything. Required.
	Logger micrologger.Logger
}

// Controller keeps what gateways ask for. Make one with New, and call Start or Preview once.
type Controller struct {
	*natscontroller.ControllerRuntime[*Gateway]

	logger        micrologger.Logger
	kube          *operator.Dependencies
	registry      *registry.Client
	gateways      *natsinformer.Source[*Gateway]
	certificates  *natsinformer.Source[*Certificate]
	routes        *natsinformer.Source[*Route]
	configMaps    *informer.Kubernetes
	registrations *pollinformer.Source[registry.Registration]
}

// New wires everything together. It sends no request.
func New(config Config) (*Controller, error) {
	config.Operator = cmp.Or(config.Operator, Name)
	// A replica that has lost its lease can't write any more, wherever it is.
	fence := operator.NewFence()
	c := &Controller{logger: config.Logger}
	c.registry = &registry.Client{URL: config.RegistryURL, HTTP: &http.Client{Transport: fence.Transport(http.DefaultTransport)}}
	if err := c.openSources(config, fence); err != nil {
		return nil, err
	}
	resources, err := c.newResources(config.Namespace)
	if err != nil {
		return nil, err
	}
	events, err := natsinformer.NewBucket(natsinformer.BucketConfig[*natscontroller.Event]{JetStream: config.JetStream, Name: EventsBucket, Fence: fence.Check})
	if err != nil {
		return nil, err
	}
	lease, err := natslease.New(natslease.Config{JetStream: config.JetStream, Bucket: LeasesBucket, Key: config.Operator, Operator: config.Operator})
	if err != nil {
		return nil, err
	}
	c.ControllerRuntime, err = natscontroller.NewControllerRuntime(natscontroller.Config[*Gateway]{
		Operator: config.Operator, Name: Name, Kind: Kind, Logger: config.Logger, Registry: c.kube.Registry, ListenAddress: config.ListenAddress,
		Primary:        c.gateways,
		Secondaries:    []natscontroller.Secondary{natscontroller.Entities(c.routes), natscontroller.Kube(c.configMaps, c.kube.Client)},
		Tertiaries:     []framework.Watch{{Source: c.certificates, Map: c.gatewaysOfCertificate}},
		Externals:      []framework.Watch{{Source: c.registrations, Map: gatewayOfRegistration}},
		Resources:      resources,
		Events:         events,
		Recorder:       c.kube.Recorder,
		LeaderElection: operator.LeaderElectionConfig{Enabled: config.LeaderElection, Lock: lease, Fence: fence},
	})
	if err != nil {
		return nil, err
	}
	c.SetCustomController(c)
	return c, nil
}

// openSources opens everything that the controller looks at.
func (c *Controller) openSources(config Config, fence *operator.Fence) (err error) {
	restConfig := rest.CopyConfig(config.RESTConfig)
	restConfig.Wrap(fence.Transport)
	c.kube, err = operator.NewDependencies(operator.DependenciesConfig{
		Name: config.Operator, RESTConfig: restConfig, Scheme: clientgoscheme.Scheme, Logger: config.Logger, Namespaces: []string{config.Namespace},
		Registry: config.Registry,
	})
	if err != nil {
		return err
	}
	if c.configMaps, err = c.kube.NewOwnedSource(&corev1.ConfigMap{}); err != nil {
		return err
	}
	if c.gateways, err = openBucket[*Gateway](config, fence, GatewaysBucket, certificateIndexers); err != nil {
		return err
	}
	if c.certificates, err = openBucket[*Certificate](config, fence, CertificatesBucket, nil); err != nil {
		return err
	}
	if c.routes, err = openBucket[*Route](config, fence, RoutesBucket, natsresource.OwnerIndexers()); err != nil {
		return err
	}
	c.registrations, err = pollinformer.New(pollinformer.Config[registry.Registration]{
		Name: "registry", List: c.listRegistrations, Interval: config.PollInterval, Logger: config.Logger,
	})
	return err
}

// openBucket opens a bucket as a source of its entries.
func openBucket[T natsinformer.Entity](config Config, fence *operator.Fence, name string, indexers map[string]informer.IndexFunc) (*natsinformer.Source[T], error) {
	bucket, err := natsinformer.NewBucket(natsinformer.BucketConfig[T]{JetStream: config.JetStream, Name: name, Fence: fence.Check})
	if err != nil {
		return nil, err
	}
	return natsinformer.NewSource(natsinformer.SourceConfig[T]{Bucket: bucket, Indexers: indexers, Logger: config.Logger})
}

// certificateIndex files gateways under the certificate that they name.
const certificateIndex = "certificate"

var certificateIndexers = map[string]informer.IndexFunc{
	certificateIndex: func(obj any) []string { return []string{obj.(*Gateway).Certificate} },
}

// gatewaysOfCertificate names the gateways that a change of a certificate concerns.
func (c *Controller) gatewaysOfCertificate(_ context.Context, certificate any) []informer.Key {
	gateways, err := c.gateways.EntitiesByIndex(certificateIndex, certificate.(*Certificate).Name)
	if err != nil {
		c.logger.Errorf(context.Background(), err, "gateways of a certificate are not found")
	}
	var keys []informer.Key
	for _, g := range gateways {
		keys = append(keys, informer.Key{Name: g.Name})
	}
	return keys
}

// Clean implements natscontroller.IController: it is called when the controller has stopped.
func (c *Controller) Clean() {
	c.kube.Close()
	utilnet.CloseIdleConnectionsFor(c.registry.HTTP.Transport)
}
