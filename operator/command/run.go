package command

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/operatorkit/operatorkit/operator"
)

func (p *program) runCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Run the operator until SIGINT or SIGTERM",
		Long: "Run the operator until SIGINT or SIGTERM. Reconciliations under way complete then;\n" +
			"a second signal ends the program at once.",
		Args: understood(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return p.run(cmd.Context(), cmd.ErrOrStderr()) },
	}
	p.runFlags(cmd.Flags())
	return cmd
}

func (p *program) run(ctx context.Context, stderr io.Writer) error {
	if p.options.workers < 1 {
		return &usageError{errors.New("--workers must be 1 at least")}
	}
	logger, err := p.logger(stderr)
	if err != nil {
		return err
	}
	connection, err := p.connect()
	if err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	for _, add := range append([]func(*runtime.Scheme) error{clientgoscheme.AddToScheme}, p.config.AddToScheme...) {
		if err := add(scheme); err != nil {
			return fmt.Errorf("add to the scheme: %w", err)
		}
	}
	shutdownTimeout := p.options.shutdownTimeout
	if shutdownTimeout == 0 {
		// For a framework 0 is its default; who gives the flag means no time.
		shutdownTimeout = -1
	}
	deps, err := operator.NewDependencies(operator.DependenciesConfig{
		Name: p.config.Name, RESTConfig: connection.config, Scheme: scheme, Logger: logger,
		Namespaces: p.options.namespaces, Workers: p.options.workers, ShutdownTimeout: shutdownTimeout,
	})
	if err != nil {
		return err
	}
	defer deps.Close()

	ctx, stop := operator.Signals(ctx)
	defer stop()
	frameworks, err := p.config.New(ctx, deps)
	if err != nil {
		return fmt.Errorf("make the frameworks: %w", err)
	}
	election := operator.LeaderElectionConfig{Enabled: p.options.leaderElect, Namespace: p.options.leaderElectionNamespace}
	if election.Namespace == "" {
		election.Namespace = connection.namespace
	}
	o, err := operator.New(operator.Config{
		Name: p.config.Name, Logger: logger, RESTConfig: deps.RESTConfig, Registry: deps.Registry,
		Frameworks: frameworks, CRDs: p.config.CRDs, LeaderElection: election, ListenAddress: p.options.listenAddress,
	})
	if err != nil {
		return err
	}
	return o.Run(ctx)
}
