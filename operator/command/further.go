package command

import (
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Program is what Config.Commands know of the command line. It is for the time when one of them runs.
type Program struct{ p *program }

// Name returns the name of the operator, and the names that it had before.
func (p *Program) Name() (name string, formerNames []string) {
	return p.p.config.Name, p.p.config.FormerNames
}

// Client returns a client of the API server that the flags and the environment say, which knows the types of the operator, and the
// namespace that is asked for unless a flag says another one.
func (p *Program) Client() (client.Client, string, error) {
	connection, err := p.p.connect()
	if err != nil {
		return nil, "", err
	}
	scheme, err := p.p.scheme()
	if err != nil {
		return nil, "", err
	}
	cli, err := client.New(connection.config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, "", fmt.Errorf("make a client of the API server: %w", err)
	}
	return cli, connection.namespace, nil
}

// scheme returns one that knows the types of the operator.
func (p *program) scheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range append([]func(*runtime.Scheme) error{clientgoscheme.AddToScheme}, p.config.AddToScheme...) {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("add to the scheme: %w", err)
		}
	}
	return scheme, nil
}

// furtherCommands returns the commands that are the operator's own. What they can't understand is an error of the command line, as with
// the others, and their flags, which say what is asked for this time, have no environment variables.
func (p *program) furtherCommands() []*cobra.Command {
	if p.config.Commands == nil {
		return nil
	}
	commands := p.config.Commands(&Program{p})
	for _, c := range commands {
		adopt(c)
	}
	return commands
}

func adopt(cmd *cobra.Command) {
	if cmd.Args != nil {
		cmd.Args = understood(cmd.Args)
	}
	cmd.Flags().VisitAll(func(f *pflag.Flag) { withoutVariables(cmd.Flags(), f.Name) })
	for _, c := range cmd.Commands() {
		adopt(c)
	}
}
