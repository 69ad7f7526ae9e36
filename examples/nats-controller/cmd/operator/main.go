// Command operator runs the gateway controller on a NATS server, a Kubernetes cluster and a registry that exist.
//
//	go run ./examples/nats-controller/cmd/registry &
//	go run ./examples/nats-controller/cmd/operator --nats nats://127.0.0.1:4222 --namespace default
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"k8s.io/client-go/tools/clientcmd"

	gateways "github.com/operatorkit/operatorkit/examples/nats-controller"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/operator/logging"
)

// options are the flags.
type options struct {
	config             gateways.Config
	natsURL, natsCreds string
	replicas           int
	kubeconfig         string
	plan               bool
}

func main() {
	var o options
	flag.StringVar(&o.natsURL, "nats", nats.DefaultURL, "URLs of the NATS servers, separated by commas")
	flag.StringVar(&o.natsCreds, "nats-creds", "", "file with the credentials for NATS")
	flag.IntVar(&o.replicas, "replicas", 1, "on how many NATS servers each new bucket is kept: 1, 3 or 5")
	flag.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig file (default: KUBECONFIG, ~/.kube/config, or that of the Pod)")
	flag.StringVar(&o.config.Namespace, "namespace", "default", "namespace of the ConfigMaps")
	flag.StringVar(&o.config.RegistryURL, "registry", "http://127.0.0.1:8500", "URL of the registry")
	flag.DurationVar(&o.config.PollInterval, "poll-interval", 10*time.Second, "how often the registry is looked at")
	flag.BoolVar(&o.config.LeaderElection, "leader-election", false, "let one of several replicas work, by a lease in NATS")
	flag.StringVar(&o.config.ListenAddress, "listen-address", "127.0.0.1:8080", "where /healthz, /readyz and /metrics are; empty is off")
	flag.BoolVar(&o.plan, "plan", false, "say what would be done, and change nothing")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "failed:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	logger, err := logging.New(logging.Config{Format: logging.FormatText})
	if err != nil {
		return err
	}
	logging.Capture(logger)
	o.config.Logger = logger

	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.kubeconfig
	o.config.RESTConfig, err = clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return fmt.Errorf("find the API server: %w: give --kubeconfig, set KUBECONFIG, or run in a Pod", err)
	}
	conn, err := connect(o)
	if err != nil {
		return err
	}
	defer conn.Close()
	o.config.JetStream, err = jetstream.New(conn)
	if err != nil {
		return err
	}
	controller, err := gateways.New(o.config)
	if err != nil {
		return err
	}
	if o.plan {
		return controller.Preview(ctx, os.Stdout, plan.TextOptions{Color: plan.ColorWanted(os.Stdout)})
	}
	if err := gateways.CreateBuckets(ctx, o.config.JetStream, o.replicas); err != nil {
		return err
	}
	return controller.Start(ctx)
}

// connect connects for as long as the program runs. Nothing that could not be sent is sent later: another replica may work by then.
func connect(o options) (*nats.Conn, error) {
	settings := []nats.Option{nats.Name(gateways.Name), nats.MaxReconnects(-1), nats.ReconnectBufSize(-1)}
	if o.natsCreds != "" {
		settings = append(settings, nats.UserCredentials(o.natsCreds))
	}
	conn, err := nats.Connect(o.natsURL, settings...)
	if err != nil {
		return nil, fmt.Errorf("connect to NATS at %s: %w: give --nats", o.natsURL, err)
	}
	return conn, nil
}
