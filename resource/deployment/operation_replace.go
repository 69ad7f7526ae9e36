package deployment

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/operatorkit/operatorkit/resource/deployment/api"
)

// ReplaceContainerOperation makes a new container take the place of old ones. It does all of it or nothing: when anything fails, the
// new container is put away, and the old ones run again.
type ReplaceContainerOperation struct {
	// New is the new container.
	New RunContainerOperation
	// Old are the containers that go.
	Old []OldContainer
	// Order says what comes first.
	Order api.UpdateOrder
	// Reason says why this order, and what else there is to know.
	Reason string
	// Changes are the attributes that differ from the first of the old containers.
	Changes []AttributeChange
}

// OldContainer is a container that another one takes the place of.
type OldContainer struct {
	ContainerRef
	// Restore tells that it is started when the new one fails.
	Restore bool
	// Wait is how it is waited for when it is started again. Nil is not at all, for one that did not work before.
	Wait *api.WaitOptions

	// stopping tells that it may be about to end, because it is not known what became of stopping it.
	stopping bool
}

// Execute implements Operation.
func (o *ReplaceContainerOperation) Execute(ctx context.Context, cli Client) error {
	return perform(ctx, cli, o)
}

func (o *ReplaceContainerOperation) machine() string { return o.New.MachineID }

func (o *ReplaceContainerOperation) apply(ctx context.Context, cli Client) error {
	if o.Order == api.OrderStopFirst {
		return o.stopFirst(ctx, cli)
	}
	if err := o.New.apply(ctx, cli); err != nil {
		return err
	}
	if err := o.stopOld(ctx, cli); err != nil {
		return errors.Join(err, o.revert(ctx, cli))
	}
	return nil
}

func (o *ReplaceContainerOperation) stopFirst(ctx context.Context, cli Client) error {
	if err := o.New.create(ctx, cli); err != nil {
		return err
	}
	err := o.stopOld(ctx, cli)
	if err == nil {
		err = o.New.start(ctx, cli)
	}
	if err != nil {
		return errors.Join(err, o.revert(ctx, cli))
	}
	return nil
}

func (o *ReplaceContainerOperation) stopOld(ctx context.Context, cli Client) error {
	for i := range o.Old {
		old := &o.Old[i]
		old.stopping = ctx.Err() == nil
		if err := old.stop(ctx, cli); err != nil {
			return err
		}
		old.stopping = false
	}
	return nil
}

func (o *ReplaceContainerOperation) verify(ctx context.Context, cli Client) error {
	return o.New.verify(ctx, cli)
}

func (o *ReplaceContainerOperation) commit(ctx context.Context, cli Client) error {
	var errs []error
	for i := range o.Old {
		errs = append(errs, o.Old[i].remove(ctx, cli))
	}
	return errors.Join(errs...)
}

// revert brings the old containers back, also when ctx has ended. Start-first, the new one goes only when they work. Stop-first,
// they start only when the new one has surely stopped, because the two can't be at once.
func (o *ReplaceContainerOperation) revert(ctx context.Context, cli Client) error {
	ctx, cancel := cleanup(ctx, o.revertTime())
	defer cancel()
	if o.Order == api.OrderStopFirst {
		if err := o.New.stop(ctx, cli); err != nil {
			return fmt.Errorf("the old container is not started again, because the new one may still run: %w", err)
		}
		return errors.Join(o.restore(ctx, cli), o.New.putAway(ctx, cli))
	}
	if err := o.restore(ctx, cli); err != nil {
		return fmt.Errorf("the new container is kept, because the old one can't be brought back: %w", err)
	}
	if err := o.New.stop(ctx, cli); err != nil {
		return err
	}
	return o.New.putAway(ctx, cli)
}

func (o *ReplaceContainerOperation) restore(ctx context.Context, cli Client) error {
	var errs []error
	for i := range o.Old {
		if old := &o.Old[i]; old.Restore {
			errs = append(errs, old.restore(ctx, cli))
		}
	}
	return errors.Join(errs...)
}

// restore has it run again. One that may be about to end is waited for first: starting it would do nothing, and it would end later.
func (r *OldContainer) restore(ctx context.Context, cli Client) error {
	var err error
	if r.stopping {
		err = persist(ctx, func() error { return r.stop(ctx, cli) })
	}
	err = errors.Join(err, persist(ctx, func() error { return r.start(ctx, cli) }, api.ErrNotFound))
	if err != nil || r.Wait == nil {
		return err
	}
	return on(ctx, r.MachineID, "wait for container "+r.Name, persist(ctx, func() error {
		return untilReady(ctx, cli, r.MachineID, r.ID, *r.Wait)
	}, api.ErrNotFound, api.ErrUnhealthy))
}

// revertTime is how long containers may take in revert.
func (o *ReplaceContainerOperation) revertTime() time.Duration {
	t := o.New.Spec.Container.GracePeriod()
	for _, old := range o.Old {
		t += old.GracePeriod
		if old.Wait != nil {
			t += old.Wait.HealthTimeout + old.Wait.Monitor
		}
	}
	return t
}

// Describe implements Operation.
func (o *ReplaceContainerOperation) Describe() Description {
	replaces := make([]Replaced, len(o.Old))
	for i := range o.Old {
		replaces[i] = Replaced{MachineID: o.Old[i].MachineID, ContainerID: o.Old[i].ID, ContainerName: o.Old[i].Name}
	}
	return Description{
		Operation: "replace", MachineID: o.New.MachineID, ServiceID: o.New.ServiceID, ContainerName: o.New.ContainerName,
		Image: o.New.Spec.Container.Image, Order: o.Order, Reason: o.Reason, Replaces: replaces, Changes: o.Changes,
	}
}

// Format implements Operation.
func (o *ReplaceContainerOperation) Format(resolver NameResolver) string {
	return o.Describe().Format(resolver)
}

// String implements Operation.
func (o *ReplaceContainerOperation) String() string { return o.Describe().String() }
