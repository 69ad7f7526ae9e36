package story

import (
	"context"

	"github.com/operatorkit/operatorkit/examples/internal/demo"
	"github.com/operatorkit/operatorkit/examples/quickstart"
	"github.com/operatorkit/operatorkit/operator/command"
)

// The builds of the story.
const (
	firstBuild  = "first-build"
	faultyBuild = "faulty-build"
)

// upgrades tells of a build with a fault, which may change one Website at a time, and of the way back.
func upgrades(ctx context.Context, d *demo.Demo) error {
	d.Step("creating two more Websites: docs and news")
	for _, name := range []string{"docs", "news"} {
		if err := d.Client.Create(ctx, website(d.Namespace, name, name, "Soon.")); err != nil {
			return err
		}
		if err := d.Until(ctx, name+" has its page and its service", pageSays(d, name, "Soon.")); err != nil {
			return err
		}
	}
	if err := d.Until(ctx, "the upgrade to the first build is finished", upgradeIs(d, command.ExitOK)); err != nil {
		return err
	}

	d.Step("upgrading the operator to a build with a fault: the API server refuses its services")
	if err := d.Replace(quickstart.Faulty(faultyBuild)); err != nil {
		return err
	}
	if err := d.Until(ctx, "the upgrade is halted after the first Website", upgradeIs(d, command.ExitHalted)); err != nil {
		return err
	}
	if _, err := d.Run(ctx, "the operator says (upgrade status):", "upgrade", "status"); err != nil {
		return err
	}

	d.Step("going back to the former build")
	if err := d.Replace(quickstart.Limited(firstBuild)); err != nil {
		return err
	}
	return d.Until(ctx, "all Websites are as the former build wants them", upgradeIs(d, command.ExitOK))
}

// upgradeIs tells whether "upgrade status" ends with an exit code.
func upgradeIs(d *demo.Demo, code int) func(context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		return d.ExitCode(ctx, "upgrade", "status") == code, nil
	}
}
