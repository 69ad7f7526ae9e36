package command

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer/crdclient"
	"github.com/operatorkit/operatorkit/operator"
)

// defaultApplyTimeout is how long applying the definitions is tried.
const defaultApplyTimeout = time.Minute

func (p *program) crdsCommand() *cobra.Command {
	var apply bool
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "crds",
		Short: "Print the custom resource definitions, or apply them",
		Long: "Print the custom resource definitions as YAML, or apply them to the API server and wait until they\n" +
			"are served. What exists is updated in place and never deleted, also when it is newer than that of this program.",
		Args: understood(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !apply {
				return p.printCRDs(cmd.OutOrStdout())
			}
			ctx, stop := operator.Signals(cmd.Context())
			defer stop()
			ctx, cancel := context.WithTimeout(ctx, timeout)
			defer cancel()
			return p.applyCRDs(ctx, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	cmd.Flags().BoolVar(&apply, "apply", false, "apply them to the API server instead of printing them")
	cmd.Flags().DurationVar(&timeout, "timeout", defaultApplyTimeout, "how long --apply is tried")
	return cmd
}

// printCRDs prints the definitions as one YAML stream.
func (p *program) printCRDs(w io.Writer) error {
	for _, crd := range p.config.CRDs {
		object, err := manifest(crd)
		if err == nil {
			err = printManifest(w, object)
		}
		if err != nil {
			return fmt.Errorf("print custom resource definition %s: %w", crd.Name, err)
		}
	}
	return nil
}

// applyCRDs applies the definitions one by one and says so.
func (p *program) applyCRDs(ctx context.Context, stdout, stderr io.Writer) error {
	logger, err := p.logger(stderr)
	if err != nil {
		return err
	}
	connection, err := p.connect()
	if err != nil {
		return err
	}
	c, err := client.New(connection.config, client.Options{Scheme: runtime.NewScheme()})
	if err != nil {
		return fmt.Errorf("make the client: %w", err)
	}
	definitions, err := crdclient.New(crdclient.Config{Client: c, Logger: logger, Force: true})
	if err != nil {
		return err
	}
	for _, crd := range p.config.CRDs {
		if err := definitions.EnsureCreated(ctx, crd, framework.DefaultBackOffFactory()()); err != nil {
			return err
		}
		if _, err := fmt.Fprintf(stdout, "%s applied\n", crd.Name); err != nil {
			return err
		}
	}
	return nil
}
