// Command operator runs the Postgres provider on a platform cluster and an onboarding cluster that exist.
//
//	go run ./examples/serviceprovider/cmd/operator --platform platform.kubeconfig --onboarding onboarding.kubeconfig
//
// With "plan NAMESPACE/NAME" behind the flags it shows what it would change for a database, and changes nothing.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	postgres "github.com/operatorkit/operatorkit/examples/serviceprovider"
	"github.com/operatorkit/operatorkit/operator/logging"
)

// options are the flags.
type options struct {
	config               postgres.Config
	platform, onboarding string
	// plan is the database of "plan", empty without.
	plan string
}

func main() {
	var o options
	flag.StringVar(&o.platform, "platform", "", "kubeconfig file of the platform cluster (default: KUBECONFIG, ~/.kube/config, or that of the Pod)")
	flag.StringVar(&o.onboarding, "onboarding", "", "kubeconfig file of the onboarding cluster")
	flag.StringVar(&o.config.Namespace, "namespace", postgres.Namespace, "namespace of the provider in the platform cluster, in which it asks for access and has its pull Secret")
	flag.BoolVar(&o.config.LeaderElection, "leader-election", false, "let one of several replicas work, by a lease in that namespace")
	flag.StringVar(&o.config.MetricsAddress, "metrics-address", "127.0.0.1:8080", "where /metrics is; empty is off")
	flag.Parse()
	if flag.Arg(0) == "plan" {
		o.plan = flag.Arg(1)
	}
	if wrong := flag.NArg() > 0 && o.plan == "" || flag.NArg() > 2; wrong {
		fmt.Fprintln(os.Stderr, "give nothing, or: plan NAMESPACE/NAME")
		os.Exit(2)
	}
	if o.onboarding == "" {
		fmt.Fprintln(os.Stderr, "give --onboarding, the kubeconfig file of the onboarding cluster")
		os.Exit(2)
	}

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "failed:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	logger, err := logging.New(logging.Config{})
	if err != nil {
		return err
	}
	logging.Capture(logger)
	o.config.Logger = logger
	if o.config.Platform, err = connect("platform", o.platform); err != nil {
		return err
	}
	if o.config.Onboarding, err = connect("onboarding", o.onboarding); err != nil {
		return err
	}
	provider, err := postgres.New(o.config)
	if err != nil {
		return err
	}
	if o.plan != "" {
		namespace, name, _ := strings.Cut(o.plan, "/")
		return provider.Plan(ctx, types.NamespacedName{Namespace: namespace, Name: name}, os.Stdout)
	}
	return provider.Start(ctx)
}

func connect(cluster, kubeconfig string) (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = kubeconfig
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("find the API server of the %s cluster: %w: give --%s", cluster, err, cluster)
	}
	config.QPS = -1 // API servers limit their clients themselves
	return config, nil
}
