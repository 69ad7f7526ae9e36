package command

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/operator"
)

func (p *program) runCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Run the operator until SIGINT or SIGTERM",
		Long: "Run the operator until SIGINT or SIGTERM. Reconciliations under way complete then;\n" +
			"a second signal ends the program at once.\n\n" +
			"With --plan the operator changes nothing: it says in events, metrics and its log what it would change.",
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
	connection, err := p.connect()
	if err != nil {
		return err
	}
	shutdownTimeout := p.options.shutdownTimeout
	if shutdownTimeout == 0 {
		// For a framework 0 is its default; who gives the flag means no time.
		shutdownTimeout = -1
	}
	ctx, stop := operator.Signals(ctx)
	defer stop()
	parts, err := p.newParts(ctx, stderr, connection, operator.DependenciesConfig{
		Workers: p.options.workers, ShutdownTimeout: shutdownTimeout, PlanOnly: p.options.planOnly,
		InspectorAddress: p.options.inspectorAddress,
	})
	if err != nil {
		return err
	}
	defer parts.close()

	election := operator.LeaderElectionConfig{Enabled: p.options.leaderElect, Namespace: p.options.leaderElectionNamespace}
	if election.Namespace == "" {
		election.Namespace = connection.namespace
	}
	config := operator.Config{
		Name: p.config.Name, Logger: parts.logger, RESTConfig: parts.deps.RESTConfig, Registry: parts.deps.Registry,
		Frameworks: parts.frameworks, CRDs: p.config.CRDs, LeaderElection: election, ListenAddress: p.options.listenAddress,
		Inspector: parts.deps.Inspector,
	}
	if p.options.planOnly {
		if err := planOnly(parts.frameworks); err != nil {
			return err
		}
		config.CRDs = nil
	}
	o, err := operator.New(config)
	if err != nil {
		return err
	}
	return o.Run(ctx)
}

// planOnly is an error if one of the frameworks would do more than plan.
func planOnly(frameworks []*framework.Framework) error {
	for _, f := range frameworks {
		if !f.PlanOnly() {
			return fmt.Errorf("--plan: framework %q would not only plan: make it with Dependencies.NewFramework, or set "+
				"PlanOnly of its configuration to that of the Dependencies", f.Name())
		}
	}
	return nil
}
