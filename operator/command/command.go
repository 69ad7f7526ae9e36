package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/operatorkit/operatorkit/framework"
)

// The exit codes.
const (
	ExitOK      = 0
	ExitFailure = 1
	// ExitChanges is that of "plan --detailed-exitcode" when there are changes, as terraform has it.
	ExitChanges = 2
	// ExitDenied is that of "plan --detailed-exitcode" and "guards test" when a guard denies a change.
	ExitDenied = 3
	// ExitUsage is that of a command line that can't be understood, EX_USAGE of sysexits.h. It differs from the others so
	// that a job which watches for drift takes no slip of the pen for one.
	ExitUsage = 64
)

// Execute runs the command line of an operator and returns the exit code; errors are on stderr then. args are without
// the name of the program. Ending ctx ends the command like a signal. Only a main gives the result to os.Exit.
func Execute(ctx context.Context, config Config, args []string, stdout, stderr io.Writer) int {
	root, err := New(config)
	if err != nil {
		fmt.Fprintln(stderr, err)
		return ExitFailure
	}
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	ran, err := root.ExecuteContextC(ctx)
	switch {
	case err == nil:
		return ExitOK
	case errors.Is(err, ErrChanges):
		return ExitChanges
	case errors.Is(err, ErrDenied):
		return ExitDenied
	}
	if program := (*ExitError)(nil); errors.As(err, &program) {
		return program.Code
	}
	fmt.Fprintf(stderr, "%s: %s\n", config.Name, err)
	if usage := (*usageError)(nil); errors.As(err, &usage) {
		fmt.Fprintf(stderr, "It is called as: %s\nRun '%s --help' for usage.\n", ran.UseLine(), ran.CommandPath())
		return ExitUsage
	}
	return ExitFailure
}

// New returns the command line as a cobra command, for programs that add to it. It prints no errors itself. The error
// is one for which framework.IsInvalidConfig holds.
func New(config Config) (*cobra.Command, error) {
	if err := config.complete(); err != nil {
		return nil, err
	}
	p := &program{config: config}
	root := &cobra.Command{
		Use:               config.Name,
		Short:             config.Short,
		Args:              understood(cobra.NoArgs),
		SilenceErrors:     true,
		SilenceUsage:      true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return p.readEnvironment(cmd) },
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return &usageError{err} })
	p.connectionFlags(root.PersistentFlags())
	root.AddCommand(p.runCommand(), p.planCommand(), p.applyCommand(), p.explainCommand(), p.crdsCommand(), p.manifestsCommand(), p.upgradeCommand(), p.versionCommand())
	if p.config.ReadGuards != nil {
		root.AddCommand(p.guardsCommand())
	}
	root.AddCommand(p.furtherCommands()...)
	if len(p.taken) > 0 {
		slices.Sort(p.taken)
		return nil, fmt.Errorf("%w: command.Config: Flags: the names or shorthands of %s are taken: rename them",
			framework.ErrInvalidConfig, strings.Join(slices.Compact(p.taken), ", "))
	}
	p.tellEnvironment(root)
	return root, nil
}

// program is what the commands share: the configuration and the values of the flags.
type program struct {
	config  Config
	options options
	// taken are flags of the operator's own whose names a command has already.
	taken []string
	// readVariables are the environment variables by which flags were set.
	readVariables []string
}

// ExitError ends a command with the exit code of a program that it has run elsewhere. That has said what there is to say.
type ExitError struct{ Code int }

// Error says the code.
func (e *ExitError) Error() string {
	return fmt.Sprintf("the program has ended with exit code %d", e.Code)
}

// usageError is a command line that can't be understood.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }

func (e *usageError) Unwrap() error { return e.err }

// understood makes the errors of a check of arguments usage errors.
func understood(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return &usageError{err}
		}
		return nil
	}
}
