package statusresource

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/plan"
)

// resource is the logic of the CRUD resource.
type resource[O client.Object] struct {
	config   Config[O]
	messages messages
}

// state is a status as it is, as it should be, or, in a patch, how it changes.
type state[O client.Object] struct {
	// obj is whose status it is; it should be that of obj, with what report says.
	obj    O
	report *Report
	// err is why Set failed.
	err    error
	change change
}

// Name implements framework.TypedCRUDResourceOps.
func (r *resource[O]) Name() string { return r.config.Name }

// FormerNames implements framework.FormerNamer.
func (r *resource[O]) FormerNames() []string { return r.config.FormerNames }

// Rights implements framework.RightsLister: the status is written, and a primary that has changed meanwhile read.
func (r *resource[O]) Rights() []framework.Right {
	return []framework.Right{{Verbs: []string{"get"}}, {Subresource: "status", Verbs: []string{"patch"}}}
}

// Concludes implements framework.Concluder.
func (r *resource[O]) Concludes() bool { return !r.config.Custom }

// GetCurrentState implements framework.TypedCRUDResourceOps.
func (r *resource[O]) GetCurrentState(ctx context.Context, obj O) (state[O], error) {
	return state[O]{obj: r.config.Current(ctx, obj)}, nil
}

// GetDesiredState implements framework.TypedCRUDResourceOps.
func (r *resource[O]) GetDesiredState(ctx context.Context, obj O) (state[O], error) {
	return r.desired(ctx, r.config.Current(ctx, obj))
}

// desired says what the status of an object is to be.
func (r *resource[O]) desired(ctx context.Context, current O) (state[O], error) {
	should := state[O]{obj: current.DeepCopyObject().(O), report: &Report{Conclusion: framework.ConclusionOf(ctx)}}
	if r.config.Custom {
		return should, r.config.Set(ctx, should.obj, &Report{})
	}
	if should.over() {
		return should, nil
	}
	if err := r.config.Set(ctx, should.obj, should.report); err != nil {
		should = state[O]{
			obj: current.DeepCopyObject().(O), report: &Report{Conclusion: should.report.Conclusion}, err: fmt.Errorf("set the status: %w", err),
		}
		if should.report.Err == nil {
			should.report.Outcome, should.report.Err = framework.Failed, should.err
		}
	}
	return should, nil
}

// over tells that there is nothing to tell: the object goes, or something has changed meanwhile, and what comes of the next try is told.
func (s *state[O]) over() bool {
	return s.report.Deleting && s.report.Outcome == framework.Succeeded || framework.IsConflict(s.report.Err) && !s.report.Lasting
}

// NewUpdatePatch implements framework.TypedCRUDResourceOps.
func (r *resource[O]) NewUpdatePatch(ctx context.Context, _ O, current, desired state[O]) (*framework.TypedPatch[state[O]], error) {
	if !r.config.Custom && desired.over() || r.config.Custom && equality.Semantic.DeepEqual(current.obj, desired.obj) {
		return nil, desired.err
	}
	c, err := r.changeOf(ctx, current.obj, desired)
	if err != nil || c.empty() {
		return nil, errors.Join(err, desired.err)
	}
	patch := framework.NewTypedPatch[state[O]]()
	patch.SetUpdateChange(state[O]{obj: current.obj, err: desired.err, change: c})
	return patch, nil
}

// changeOf returns how a status is to change.
func (r *resource[O]) changeOf(ctx context.Context, obj O, desired state[O]) (change, error) {
	c, err := newChange(ctx, r.config.Client, obj, desired.obj)
	if err != nil || r.config.Custom {
		return c, err
	}
	set, absent := desired.report.conditions(ctx, r.config.Prefix, obj.GetGeneration())
	if desired.report.Outcome == framework.Failed {
		set = r.messages.keep(obj.GetUID(), c.before, set)
	}
	if err := c.set(set, absent); err != nil {
		return change{}, err
	}
	if r.config.Prefix == "" {
		c.after["observedGeneration"] = obj.GetGeneration()
	}
	return c, nil
}

// NewDeletePatch implements framework.TypedCRUDResourceOps.
func (r *resource[O]) NewDeletePatch(ctx context.Context, obj O, current, desired state[O]) (*framework.TypedPatch[state[O]], error) {
	return r.NewUpdatePatch(ctx, obj, current, desired)
}

// ApplyCreateChange implements framework.TypedCRUDResourceOps. A status is never created.
func (r *resource[O]) ApplyCreateChange(context.Context, O, state[O]) error { return nil }

// ApplyUpdateChange implements framework.TypedCRUDResourceOps.
func (r *resource[O]) ApplyUpdateChange(ctx context.Context, _ O, s state[O]) error {
	w := writer{client: r.config.Client}
	if !r.config.Custom {
		w.owners = r.owners(ctx)
		w.manager = w.owners.managers[0]
	}
	before, written, err := write(ctx, w, s.obj, s.change, func(newest O) (change, error) {
		should, err := r.desired(ctx, newest)
		if err != nil {
			return change{}, err
		}
		s.err = should.err
		return r.changeOf(ctx, newest, should)
	})
	if err != nil {
		return err
	}
	r.messages.wrote(s.obj.GetUID())
	if written != nil && r.config.Written != nil {
		r.config.Written(ctx, before, *written)
	}
	return s.err
}

// ApplyDeleteChange implements framework.TypedCRUDResourceOps. A status is never deleted.
func (r *resource[O]) ApplyDeleteChange(context.Context, O, state[O]) error { return nil }

// Changes implements plan.Changer.
func (s state[O]) Changes() []plan.Change { return s.change.changes() }
