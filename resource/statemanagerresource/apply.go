package statemanagerresource

import (
	"context"
	"errors"
	"fmt"

	"github.com/operatorkit/operatorkit/context/requeuecontext"
	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/internal/panics"
	"github.com/operatorkit/operatorkit/resource/internal/worklist"
	"github.com/operatorkit/operatorkit/resource/statemanager"
)

// Apply implements worklist.Ops. It carries out all operations, also when one fails, unless the context ends.
func (r *resource[O]) Apply(ctx context.Context, obj O, change State) error {
	var faults, conflicts []error
	for _, o := range change.operations {
		if err := ctx.Err(); err != nil {
			faults = append(faults, fmt.Errorf("stopped before %s: %w", subject(o), err))
			break
		}
		// A panic is an error of its service: the others are not to suffer from it.
		err := panics.Recovered(func() error { return r.config.Manager.CarryOut(ctx, change.set, o) })
		r.config.Done(ctx, obj, o, err)
		switch {
		case err == nil:
			requeuecontext.SetAfter(ctx, 0)
			r.log(ctx, o)
		case framework.IsConflict(err):
			conflicts = append(conflicts, fmt.Errorf("%s: %w", subject(o), err))
		default:
			faults = append(faults, fmt.Errorf("%s: %w", subject(o), err))
		}
	}
	if len(faults) == 0 {
		return errors.Join(conflicts...)
	}
	return worklist.Failures(errors.Join(append(faults, conflicts...)...))
}

// log says what was done for a service, by kinds of changes, and none of the values.
func (r *resource[O]) log(ctx context.Context, o *statemanager.Operation) {
	counts := map[plan.Action]int{}
	for i := range o.Changes {
		counts[o.Changes[i].Action]++
	}
	framework.Logger(ctx, r.config.Logger).LogCtx(ctx, "level", "info", "message", "carried out what there was to do for "+subject(o),
		"change", plan.Counts{Create: counts[plan.Create], Update: counts[plan.Update], Delete: counts[plan.Delete]}.String())
}
