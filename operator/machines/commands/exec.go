package commands

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/operatorkit/operatorkit/operator/command"
	"github.com/operatorkit/operatorkit/resource/deployment/api"
)

func execCommand(program *command.Program) *cobra.Command {
	var namespace, container string
	var input bool
	cmd := &cobra.Command{
		Use:   "exec SERVICE [flags] -- PROGRAM [ARGUMENT...]",
		Short: "Run a program in a container of a service",
		Long: "Run a program in a container of a service, on whichever machine it is, and end with the exit code of the\n" +
			"program. Of several containers it is the first by machine and name that works. There is no terminal.",
		Args: cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			var stdin io.Reader
			if input {
				stdin = cmd.InOrStdin()
			}
			return run(cmd, program, namespace, func(ctx context.Context, f *fleet) error {
				found, err := f.of(ctx, args[0], container)
				if err != nil {
					return err
				}
				i := slices.IndexFunc(found, func(c located) bool { return c.State == api.ContainerRunning && c.Ready() && !c.Hook })
				if i < 0 {
					i = slices.IndexFunc(found, func(c located) bool { return c.State == api.ContainerRunning })
				}
				if i < 0 {
					return fmt.Errorf("no container of service %s runs; the one on %s is %s", args[0], found[0].machine, stateOf(&found[0].Container))
				}
				code, err := f.Exec(ctx, found[i].machine, found[i].ID, args[1:], stdin, cmd.OutOrStdout(), cmd.ErrOrStderr())
				if err != nil {
					return fmt.Errorf("run %s in container %s on %s: %w", args[1], found[i].Name, found[i].machine, err)
				}
				if code != 0 {
					return &command.ExitError{Code: code}
				}
				return nil
			})
		},
	}
	namespaceFlag(cmd, &namespace)
	cmd.Flags().StringVarP(&container, "container", "c", "", "name of the container (default one that works)")
	cmd.Flags().BoolVarP(&input, "stdin", "i", false, "give the program what comes on stdin")
	return cmd
}
