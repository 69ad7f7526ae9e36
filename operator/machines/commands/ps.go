package commands

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/operatorkit/operatorkit/operator/command"
	"github.com/operatorkit/operatorkit/resource/deployment/api"
)

func psCommand(program *command.Program) *cobra.Command {
	var namespace string
	cmd := &cobra.Command{
		Use:   "ps [SERVICE]",
		Short: "List the containers of services on all machines",
		Long: "List the containers of a service, or of all services of the namespace, on all its machines, as the engines\n" +
			"tell of them now. Machines that can't be seen are named on stderr.",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return run(cmd, program, namespace, func(ctx context.Context, f *fleet) error {
				all, err := f.containers(ctx, strings.Join(args, ""))
				if err != nil {
					return err
				}
				f.tell(cmd.ErrOrStderr())
				table := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 3, ' ', 0)
				_, _ = fmt.Fprintln(table, "SERVICE\tMACHINE\tCONTAINER\tIMAGE\tSTATE\tPORTS\tAGE") // Flush returns what goes wrong
				for _, c := range all {
					_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", c.ServiceName, c.machine, c.Name, c.Spec.Container.Image, stateOf(&c.Container),
						portsOf(&c.Container), duration.HumanDuration(time.Since(c.Created.Time)))
				}
				return table.Flush()
			})
		},
	}
	namespaceFlag(cmd, &namespace)
	return cmd
}

// stateOf says what a container does, and what it is for.
func stateOf(c *api.Container) string {
	state := string(c.State)
	if c.Health != api.HealthNone {
		state += " (" + string(c.Health) + ")"
	}
	if c.State == api.ContainerExited {
		state += fmt.Sprintf(" (%d)", c.ExitCode)
	}
	if c.Hook {
		state += ", pre-deploy hook"
	}
	if c.Failed() {
		state += ", kept for its log"
	}
	return state
}

func portsOf(c *api.Container) string {
	ports := make([]string, len(c.Ports))
	for i, p := range c.Ports {
		ports[i] = p.String()
	}
	return strings.Join(ports, ", ")
}
