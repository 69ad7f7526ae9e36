package command

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/internal/access"
	"github.com/operatorkit/operatorkit/operator"
)

func (p *program) applyCommand() *cobra.Command {
	var o readOptions
	cmd := &cobra.Command{
		Use:   "apply PLANFILE",
		Short: "Do what a saved plan says, if it is still the same",
		Long: "Reconcile the objects of a plan that \"plan --out\" has saved. Everything is planned anew first: if anything is not\n" +
			"the same any more, for whichever object, nothing is changed, the differences are shown, and the exit code is 1.\n" +
			"Then the objects are reconciled one after the other, and each is compared again right before. What does not\n" +
			"agree by then is not done, and ends it all.\n\n" +
			"Of values that are secret it is known that they change, not to what: those are not compared.\n\n" +
			"An operator that runs would reconcile the objects by itself. To approve what it does, run it with --plan, or\n" +
			"give single objects the annotation operatorkit.io/plan: \"true\". Leader election is not asked.",
		Example: p.examples("plan home --out home.plan", "apply home.plan"),
		Args:    understood(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := operator.Signals(cmd.Context())
			defer stop()
			return p.apply(ctx, cmd, o, args[0])
		},
	}
	p.readFlags(cmd.Flags(), &o)
	if p.config.ReadGuards != nil {
		p.stateFlags(cmd.Flags())
	}
	p.ownFlags(cmd.Flags())
	return cmd
}

// apply applies the plans of a file.
func (p *program) apply(ctx context.Context, cmd *cobra.Command, o readOptions, file string) error {
	plans, by, err := p.readPlans(file)
	if err != nil {
		return fmt.Errorf("read the plan: %w", err)
	}
	reading, err := p.read(ctx, cmd, o, ordinaryConnection)
	if err != nil {
		return err
	}
	defer reading.close()
	if err := reading.checkPlans(ctx, plans); err != nil {
		return fmt.Errorf("%s is refused, and nothing has been changed%s:\n%w", file, p.otherVersion(by), err)
	}
	if err := reading.config.ShareLimits(); err != nil {
		return err
	}
	for i, one := range plans {
		if err := reading.framework(one.Framework).ApplyPlan(ctx, one); err != nil {
			return fmt.Errorf("%d of %d objects are done: %w", i, len(plans), err)
		}
		if err := tellApplied(cmd.OutOrStdout(), one); err != nil {
			return err
		}
	}
	return nil
}

// otherVersion says that another version of the operator made a plan, if it did.
func (p *program) otherVersion(by savedBy) string {
	if by.Version == p.config.Version {
		return ""
	}
	return fmt.Sprintf(" (it was planned by version %s, this is %s)", by.Version, p.config.Version)
}

// checkPlans returns an error that tells of every plan that is not the same any more.
func (r *reading) checkPlans(ctx context.Context, plans []*plan.Plan) error {
	var faults []error
	for _, one := range plans {
		f := r.framework(one.Framework)
		if f == nil {
			faults = append(faults, fmt.Errorf("plan of %s: this operator has no framework %q", one.Object, one.Framework))
			continue
		}
		if err := access.EngineOf(f).CheckPlan(ctx, one); err != nil {
			faults = append(faults, err)
		}
	}
	return errors.Join(faults...)
}

// tellApplied says what has been done.
func tellApplied(w io.Writer, p *plan.Plan) error {
	n, text := p.Counts(), "nothing to do"
	switch {
	case p.Outcome == plan.Ignored:
		text = "left alone: " + p.Reason
	case n.Any():
		text = fmt.Sprintf("%d created, %d updated, %d deleted", n.Create, n.Update, n.Delete)
	}
	_, err := fmt.Fprintf(w, "%s: %s\n", p.Object, text)
	return err
}
