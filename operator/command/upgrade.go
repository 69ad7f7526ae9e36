package command

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/internal/record"
	"github.com/operatorkit/operatorkit/operator/internal/upgrade"
)

// The exit codes of "upgrade status".
const (
	// ExitUpgrading is for an upgrade that is running or paused.
	ExitUpgrading = 2
	// ExitHalted is for an upgrade that is halted.
	ExitHalted = 3
)

func (p *program) upgradeCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "upgrade",
		Short: "Show and control the upgrade to another build of the operator",
		Long: "Show and control the upgrade to another build of the operator. With --upgrade-budget of \"run\", a new build\n" +
			"changes only so many objects at a time: an object needs a place until it is ready again. After failures the\n" +
			"upgrade halts. The state is in the ConfigMap NAME-state beside the Lease.",
		Args: understood(cobra.NoArgs),
	}
	add := func(use, short string, run func(cmd *cobra.Command, stored record.Record[upgrade.State]) error) *cobra.Command {
		child := &cobra.Command{Use: use, Short: short, Args: understood(cobra.NoArgs), RunE: func(cmd *cobra.Command, _ []string) error {
			stored, err := p.upgradeRecord()
			if err != nil {
				return err
			}
			return run(cmd, stored)
		}}
		p.stateFlags(child.Flags())
		cmd.AddCommand(child)
		return child
	}
	var output outputOptions
	status := add("status", "Show the upgrade: exit code 0 finished, 2 running or paused, 3 halted",
		func(cmd *cobra.Command, stored record.Record[upgrade.State]) error {
			if err := output.check(); err != nil {
				return err
			}
			return upgradeStatus(cmd.Context(), cmd.OutOrStdout(), output, stored)
		})
	output.flags(status.Flags())
	for _, to := range []struct {
		phase      upgrade.Phase
		use, short string
	}{
		{upgrade.Paused, "pause", "Give no more places until \"upgrade resume\""},
		{upgrade.Running, "resume", "Continue a paused or halted upgrade; the failures so far count no more"},
		{upgrade.Finished, "finish", "Let the new build change all objects at once"},
	} {
		add(to.use, to.short, func(cmd *cobra.Command, stored record.Record[upgrade.State]) error {
			state, err := stored.Change(cmd.Context(), func(s *upgrade.State) error { return s.Set(to.phase, time.Now()) })
			if err != nil {
				return fmt.Errorf("upgrade %s: %w", to.use, err)
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "upgrade to %s: %s\n", state.To, state.Phase)
			return err
		})
	}
	return cmd
}

// upgradeConfig returns the limits for upgrades of "run".
func (p *program) upgradeConfig() (operator.UpgradeConfig, error) {
	limits := p.config.Upgrade
	if limits.Budget = p.options.upgradeBudget; p.options.planOnly {
		limits.Budget = "" // Nothing is changed.
	}
	if limits.Budget == "" || limits.Build != "" {
		return limits, nil
	}
	var variables []string
	for _, name := range p.readVariables {
		variables = append(variables, name+"="+os.Getenv(name))
	}
	build, err := upgrade.ThisBuild(p.config.Version, variables...)
	limits.Build = build.ID
	return limits, err
}

// upgradeRecord returns the state of the upgrade at the API server.
func (p *program) upgradeRecord() (record.Record[upgrade.State], error) {
	apiClient, namespace, err := (&Program{p}).Client()
	if err != nil {
		return record.Record[upgrade.State]{}, err
	}
	return record.Record[upgrade.State]{
		Client: apiClient, Namespace: cmp.Or(p.options.election.Namespace, namespace),
		Name: operator.StateName(p.config.Name, p.options.election.Name), Key: "upgrade",
	}, nil
}

func upgradeStatus(ctx context.Context, w io.Writer, output outputOptions, stored record.Record[upgrade.State]) error {
	state, err := stored.Read(ctx)
	switch {
	case err != nil:
		return err
	case state.Phase == "":
		return fmt.Errorf("there is no state in ConfigMap %s/%s: the operator has not run with --upgrade-budget, or with another "+
			"--leader-election-namespace or --leader-election-name", stored.Namespace, stored.Name)
	}
	if output.format == outputJSON {
		encoder := json.NewEncoder(w)
		encoder.SetIndent("", "  ")
		err = encoder.Encode(state)
	} else {
		_, err = io.WriteString(w, upgradeText(state, time.Now()))
	}
	switch {
	case err != nil:
		return err
	case state.Phase == upgrade.Halted:
		return &ExitError{Code: ExitHalted}
	case state.Phase != upgrade.Finished:
		return &ExitError{Code: ExitUpgrading}
	}
	return nil
}

// upgradeText returns the state of an upgrade for people.
func upgradeText(s upgrade.State, now time.Time) string {
	var text strings.Builder
	line := func(format string, args ...any) { text.WriteString(plan.Escape(fmt.Sprintf(format, args...)) + "\n") }
	since := func(t time.Time) time.Duration { return now.Sub(t).Round(time.Second) }
	line("upgrade from %s to %s: %s, started %s ago", s.From, s.To, s.Phase, since(s.Since))
	if s.Reason != "" {
		line("  halted by failures: go back to the former build, or fix the cause and run \"upgrade resume\"")
	}
	line("  done: %d, with a place: %d, failures: %d", s.Done, len(s.Places), s.Failures)
	for _, p := range s.Places {
		line("    %s: for %s, %s", p.Object, since(p.Since), cmp.Or(p.Failed, "is not ready yet"))
	}
	for _, name := range slices.Sorted(maps.Keys(s.Reports)) {
		r := s.Reports[name]
		line("  %s: %d objects, %d not reconciled yet, %d held, %d on hold", name, r.Objects, r.Unseen, r.Held, len(r.OnHold))
	}
	if len(s.OnHold) > 0 {
		line("  on hold by the annotation %s: %d", upgrade.Annotation, len(s.OnHold))
	}
	for _, o := range s.OnHold {
		line("    %s", o)
	}
	return text.String()
}
