package commands

import (
	"github.com/spf13/cobra"

	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/resource/deployment/docker/names"
)

func namesCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "names",
		Short: "Answer for the names of services on a machine",
		Long: "Answer for the names of services on a machine, as a DNS server at port 53. It is for a container that the\n" +
			"operator makes itself (machines.Config.Names), and knows only what it is told there.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := operator.Signals(cmd.Context())
			defer stop()
			return names.Run(ctx)
		},
	}
}
