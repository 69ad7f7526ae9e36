package command

import (
	"context"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/operator"
)

// readOptions are the values of the flags of commands that read what the operator reads, and do not run it.
type readOptions struct {
	timeout time.Duration
}

// readFlags are those of the commands that read what the operator reads.
func (p *program) readFlags(flags *pflag.FlagSet, o *readOptions) {
	flags.DurationVar(&o.timeout, "timeout", defaultSyncTimeout, "how long to wait for the sources")
	p.namespaceFlag(flags)
	p.guardFlags(flags)
}

// reading are the frameworks of the operator over sources that run, while nothing is reconciled.
type reading struct {
	*parts
	program *program
	sources *runningSources
	config  operator.Config
}

// read makes the frameworks and fills their sources. Change makes something else of the way to the API server.
func (p *program) read(ctx context.Context, cmd *cobra.Command, o readOptions, change func(*rest.Config)) (*reading, error) {
	connection, err := p.connect()
	if err != nil {
		return nil, err
	}
	change(connection.config)
	p.logForPeople(cmd)
	parts, err := p.newParts(ctx, cmd.ErrOrStderr(), connection, operator.DependenciesConfig{})
	if err != nil {
		return nil, err
	}
	config, err := p.operatorConfig(ctx, parts)
	if err != nil {
		parts.close()
		return nil, err
	}
	parts.frameworks = config.Frameworks
	r := &reading{parts: parts, program: p, sources: startSources(ctx, config), config: config}
	if err := r.sources.wait(ctx, o.timeout, p.config.Name); err != nil {
		r.close()
		return nil, err
	}
	return r, nil
}

// close ends the sources, and closes what they used.
func (r *reading) close() {
	r.sources.stop()
	r.parts.close()
}

// readOnlyConnection makes a connection refuse every request that would change anything.
func readOnlyConnection(config *rest.Config) { config.Wrap(newReadOnly) }

// ordinaryConnection leaves a connection as it is.
func ordinaryConnection(*rest.Config) {}

// framework returns the framework of that name, or nil.
func (r *reading) framework(name string) *framework.Framework {
	for _, f := range r.frameworks {
		if f.Name() == name {
			return f
		}
	}
	return nil
}
