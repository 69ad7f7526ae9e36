package gateways

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/informer"
)

// Preview writes what the controller would do if it were started now: the plans of all gateways, and what would be
// collected as garbage. It changes nothing, and is instead of Start.
func (c *Controller) Preview(ctx context.Context, w io.Writer, options plan.TextOptions) error {
	defer c.Clean()
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	sources := []informer.Source{c.gateways, c.certificates, c.routes, c.configMaps, c.registrations}
	for _, source := range sources {
		running.Go(func() { _ = source.Run(ctx) })
	}
	for _, source := range sources {
		if err := source.WaitForSync(ctx); err != nil {
			return fmt.Errorf("read %s: %w", source.Name(), errors.Join(err, source.Status().LastError))
		}
	}

	var plans []*plan.Plan
	for _, g := range c.gateways.Entities() {
		p, err := c.Plan(ctx, g.Name)
		if err != nil {
			return err
		}
		plans = append(plans, p)
	}
	slices.SortFunc(plans, func(a, b *plan.Plan) int { return strings.Compare(a.Object.Name, b.Object.Name) })
	if err := plan.WriteText(w, plans, options); err != nil {
		return err
	}
	garbage, err := c.PlanGarbage(ctx)
	if err != nil {
		return err
	}
	orphans, err := c.orphanedRegistrations(ctx)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%d to collect as garbage\n", len(garbage)+len(orphans))
	for _, g := range garbage {
		_, _ = fmt.Fprintf(w, "  %s\n", plan.Escape(g.String()))
	}
	for _, o := range orphans {
		_, _ = fmt.Fprintf(w, "  remove %s from the registry: its owner, %s, does not exist\n", plan.Escape(o.Name), plan.Escape(o.Owner))
	}
	return err
}
