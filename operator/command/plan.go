package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/operator"
)

// defaultSyncTimeout is how long "plan" and "apply" wait for the sources.
const defaultSyncTimeout = time.Minute

// ErrChanges is the error of "plan --detailed-exitcode" when there is something to do. Its exit code is ExitChanges.
var ErrChanges = errors.New("there are changes")

// errPlanFailed is the error of "plan" when it has shown what went wrong already.
var errPlanFailed = errors.New("not everything could be planned, see above")

// planOptions are the values of the flags of "plan".
type planOptions struct {
	reading  readOptions
	selected selection
	file     string
	output   outputOptions
	out      string
	detailed bool
	shadow   bool
}

func (p *program) planCommand() *cobra.Command {
	var o planOptions
	cmd := &cobra.Command{
		Use:   "plan [KIND] [NAME]",
		Short: "Show what the operator would change, and change nothing",
		Long: "Show what the next reconciliation of one object, of those of a namespace, or of all would change. Nothing is\n" +
			"changed: no object, no finalizer, no event. KIND is the name of a framework or the kind of its objects; it is needed\n" +
			"with NAME only if the operator has several frameworks. KIND/NAME is understood too.\n\n" +
			"With --namespace it is what \"run\" with the same --namespace would change. Without, the operator looks at all namespaces,\n" +
			"and the objects are those of the namespace of the Pod or of the kubeconfig's context, or of all with -A.\n\n" +
			"With -f the objects come from a file, those without a namespace are of the first one of --namespace. They need not\n" +
			"be in the cluster; the API server fills in defaults and validates them in a dry run, for which it wants the\n" +
			"permission to create or update them.\n\n" +
			"The exit code is 0, and 1 if something could not be planned. With --detailed-exitcode it is 2 if there\n" +
			"are changes, or something can't tell whether it has any, so that a job can watch for drift, and 3 if a guard denies one.\n\n" +
			"What is amiss is logged as text unless --log-format and --log-level say otherwise.",
		Example: p.examples(
			"plan -A                                # everything",
			"plan home                              # one object in the namespace of the kubeconfig's context",
			"plan -f home.yaml                      # what would come of a file",
			"plan -A --detailed-exitcode            # 2 when there is drift",
			"plan home --out home.plan              # to be applied later, if it is still the same then",
			"plan -A --shadow                       # what the next version of the logic would change",
		),
		Args: understood(func(cmd *cobra.Command, args []string) error {
			// Before the variables are read: that of --namespace says of which namespaces --all-namespaces means all.
			if o.selected.allNamespaces && cmd.Flags().Changed("namespace") {
				return errors.New("give either --namespace or --all-namespaces")
			}
			return cobra.MaximumNArgs(2)(cmd, args)
		}),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.complete(args); err != nil {
				return err
			}
			o.selected.namespaces = p.options.namespaces
			ctx, stop := operator.Signals(cmd.Context())
			defer stop()
			return p.plan(ctx, cmd, o)
		},
	}
	flags := cmd.Flags()
	p.readFlags(flags, &o.reading)
	o.selected.flags(flags)
	flags.StringVarP(&o.file, "filename", "f", "", "plan the objects in this file, - for stdin, instead of those in the cluster")
	o.output.flags(flags)
	flags.StringVar(&o.out, "out", "", "write the plan to this file too, for apply")
	flags.BoolVar(&o.shadow, "shadow", false, "show how the resource sets that are only tried would differ from those in charge")
	flags.BoolVar(&o.detailed, "detailed-exitcode", false, "exit with 2 if there are changes, and with 3 if a guard denies one")
	withoutVariables(flags, "filename", "out", "shadow", "detailed-exitcode")
	p.ownFlags(flags)
	return cmd
}

// complete checks the flags and takes in the arguments.
func (o *planOptions) complete(args []string) error {
	if err := o.output.check(); err != nil {
		return err
	}
	fault := func(text string) error { return &usageError{errors.New(text)} }
	switch {
	case o.file != "" && len(args) > 0:
		return fault("give either --filename, or KIND and NAME")
	case o.shadow && o.out != "":
		return fault("--out saves plans, not comparisons: it can't be given together with --shadow")
	case o.file != "" && o.out != "":
		return fault("--out saves plans of objects that are in the cluster: it can't be given together with --filename")
	}
	return o.selected.take(args)
}

// plan plans what was asked for and shows it.
func (p *program) plan(ctx context.Context, cmd *cobra.Command, o planOptions) error {
	var files []document
	if o.file != "" {
		var err error
		if files, err = readDocuments(o.file, cmd.InOrStdin()); err != nil {
			return err
		}
	}
	reading, err := p.read(ctx, cmd, o.reading, readOnlyConnection)
	if err != nil {
		return err
	}
	defer reading.close()

	var subjects []subject
	if o.file != "" {
		subjects, err = reading.applied(ctx, files, o.selected)
	} else {
		subjects, err = reading.selected(o.selected)
	}
	if err != nil {
		return err
	}
	if o.shadow {
		return reading.shadow(ctx, cmd.OutOrStdout(), subjects, o)
	}
	plans, err := plansOf(ctx, subjects)
	if err != nil {
		return err
	}
	if err := o.show(cmd.OutOrStdout(), plans); err != nil {
		return fmt.Errorf("write the plan: %w", err)
	}
	if o.out != "" {
		if err := p.savePlans(o.out, plans); err != nil {
			return err
		}
	}
	return o.verdict(plans)
}

// verdict is the error that makes the exit code.
func (o *planOptions) verdict(plans []*plan.Plan) error {
	changes, denied := false, false
	for _, p := range plans {
		if p.Outcome == plan.Failed {
			return errPlanFailed
		}
		changes, denied = changes || p.MayChange(), denied || p.Denied()
	}
	if denied && o.detailed {
		return ErrDenied
	}
	if changes && o.detailed {
		return ErrChanges
	}
	return nil
}

// show writes the plans in the format that was asked for.
func (o *planOptions) show(w io.Writer, plans []*plan.Plan) error {
	if o.output.format == outputJSON {
		return plan.WriteJSON(w, plans)
	}
	return plan.WriteText(w, plans, o.output.text(w))
}

// examples are the lines of the examples in a help.
func (p *program) examples(lines ...string) string {
	var text string
	for _, line := range lines {
		text += "  " + p.config.Name + " " + line + "\n"
	}
	return strings.TrimSuffix(text, "\n")
}

// flags adds the flags of a selection.
func (s *selection) flags(flags *pflag.FlagSet) {
	flags.BoolVarP(&s.allNamespaces, "all-namespaces", "A", false, "objects of all namespaces that the operator looks at")
	withoutVariables(flags, "all-namespaces")
}
