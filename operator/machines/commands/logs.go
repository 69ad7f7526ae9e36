package commands

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/operatorkit/operatorkit/operator/command"
	"github.com/operatorkit/operatorkit/resource/deployment/docker"
)

func logsCommand(program *command.Program) *cobra.Command {
	var namespace, container string
	var since time.Duration
	var options docker.LogOptions
	cmd := &cobra.Command{
		Use:   "logs SERVICE",
		Short: "Show what the containers of a service write, on all machines",
		Long: "Show what the containers of a service have written, each line with its machine and its container before it.\n" +
			"Those that did not work and are kept for their logs are among them. Values that are known to be secret are\n" +
			"left out. With --follow it goes on until all of them have ended: containers that come later are not followed.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if since > 0 {
				options.Since = time.Now().Add(-since)
			}
			return run(cmd, program, namespace, func(ctx context.Context, f *fleet) error {
				found, err := f.of(ctx, args[0], container)
				if err != nil {
					return err
				}
				f.tell(cmd.ErrOrStderr())
				return f.logs(ctx, found, options, cmd.OutOrStdout(), cmd.ErrOrStderr())
			})
		},
	}
	namespaceFlag(cmd, &namespace)
	flags := cmd.Flags()
	flags.StringVarP(&container, "container", "c", "", "name of the container (default all of the service)")
	flags.DurationVar(&since, "since", 0, "leave out what is older, such as 10m")
	flags.IntVar(&options.Tail, "tail", 0, "how many of the last lines of each container to show (default all)")
	flags.BoolVarP(&options.Follow, "follow", "f", false, "go on with what is written from now on")
	flags.BoolVar(&options.Timestamps, "timestamps", false, "begin each line with its time")
	return cmd
}

// logs writes the logs of containers: one after the other or, when they are followed, line by line as they come.
func (f *fleet) logs(ctx context.Context, containers []located, options docker.LogOptions, stdout, stderr io.Writer) error {
	var mu sync.Mutex
	var group errgroup.Group
	if !options.Follow {
		group.SetLimit(1)
	}
	for _, c := range containers {
		prefix := c.machine + "/" + c.Name + " | "
		group.Go(func() error {
			err := f.Logs(ctx, c.machine, c.ID, options, &prefixed{&mu, stdout, prefix}, &prefixed{&mu, stderr, prefix})
			if err != nil && ctx.Err() == nil {
				return fmt.Errorf("read the log of container %s on %s: %w", c.Name, c.machine, err)
			}
			return nil
		})
	}
	return group.Wait()
}

// prefixed writes each line with something before it, one at a time.
type prefixed struct {
	mu     *sync.Mutex
	to     io.Writer
	prefix string
}

// Write implements io.Writer. It is given a line.
func (p *prefixed) Write(line []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, err := io.WriteString(p.to, p.prefix+string(line)); err != nil {
		return 0, err
	}
	return len(line), nil
}
