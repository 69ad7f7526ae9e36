package machines

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager"
	"github.com/operatorkit/operatorkit/resource/statemanager/native"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
)

// entry works out what has to be done for a service that the set lists. The error is for what concerns all.
func (c *computation) entry(ctx context.Context, entry *v1alpha1.ServiceWithValues) error {
	key := entry.Key()
	if entry.HelmAction == v1alpha1.HelmActionUninstall {
		c.uninstalled(key, entry)
		return nil
	}
	have := c.of(key)
	input, err := c.inputs.Resolve(ctx, c.set, entry)
	if err != nil {
		c.failed(entry, have, native.SameEntry(c.set, entry, have.fingerprint()), err)
		return ctx.Err()
	}
	input.Owner = c.owner
	waits := c.waits(entry)
	if begun := c.order.State(key); len(waits) > 0 && have == nil && (begun == nil || begun.State == v1alpha1.ServiceStatePending) {
		c.pending(entry, waits)
		return nil
	}
	want, err := render(ctx, input)
	if err != nil {
		c.failed(entry, have, strings.HasPrefix(have.fingerprint(), input.Fingerprint), err)
		return ctx.Err()
	}
	if err := c.obstacle(key); err != nil {
		if c.conflict == nil && c.set.Config.StopOnConflict {
			c.conflict = &key
		}
		c.failed(entry, nil, false, err)
		return nil
	}
	if other := c.holder(key, have); other != nil {
		c.leftTo(want, have, other)
		return nil
	}
	todo, err := c.manager.compare(ctx, c.set, want, have)
	switch {
	case apierrors.IsInvalid(err) || apierrors.IsBadRequest(err):
		c.failed(entry, have, false, framework.Permanent(err))
		return nil
	case refuses(err):
		c.failed(entry, have, false, err)
		return nil
	case err != nil:
		return err
	case have.suspended():
		c.resumed(key, have)
		return nil
	}
	c.computed(want, have, todo, waits)
	return nil
}

// refuses tells whether an API server has answered about what it was asked: whatever the answer is, it concerns one service.
func refuses(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && !apierrors.IsServiceUnavailable(err) && !apierrors.IsTooManyRequests(err) && !apierrors.IsUnauthorized(err) &&
		!apierrors.IsTimeout(err) && !apierrors.IsServerTimeout(err)
}

// waits returns what a service waits for. In the mode DryRun it waits for nothing: nothing would ever come.
func (c *computation) waits(entry *v1alpha1.ServiceWithValues) []client.ObjectKey {
	if c.dryRun() {
		return nil
	}
	return c.order.Waits(entry, c.states.Entered())
}

// failed tells of a service that can't be worked out. While nothing says that it has to change, what was Deployed stays so if the
// error may pass.
func (c *computation) failed(entry *v1alpha1.ServiceWithValues, have *placed, same bool, err error) {
	key := entry.Key()
	state := c.states.Begin(key)
	reason := native.ReasonUnavailable
	if native.IsMissing(err) {
		reason = native.ReasonMissing
	}
	message := statemanager.FirstLine(err.Error())
	if have != nil {
		c.asIs(&state, have)
	}
	same = same && !framework.IsPermanent(err) && state.LastDeployed != nil && state.LastDeployed.Fingerprint == have.fingerprint()
	if !same {
		state.Template, state.Version = entry.Template, entry.Version
	}
	if !same || state.State == v1alpha1.ServiceStateFailed {
		fail(&state, message)
	}
	if !carrier.IsConflict(err) {
		c.states.Tell(&state, native.ConditionResolved, metav1.ConditionFalse, reason, message)
	}
	c.states.Enter(key, state)
	c.operate(statemanager.Operation{Service: key, Err: err})
	if have.suspended() && have.isOf(c.set.ServiceSet) {
		c.goOn(key, have)
	}
}

// pending enters a service that is not begun before others are Deployed.
func (c *computation) pending(entry *v1alpha1.ServiceWithValues, waits []client.ObjectKey) {
	key := entry.Key()
	state := c.states.Begin(key)
	state.State, state.Type = v1alpha1.ServiceStatePending, v1alpha1.ServiceTypeResource
	state.Template, state.Version = entry.Template, entry.Version
	note := c.wait(&state, native.ReasonDependencies, "waits until these services are Deployed: "+names(waits))
	c.states.Enter(key, state)
	c.operate(statemanager.Operation{Service: key, Notes: []string{note}})
}

// computed enters a service that the set lists and that it may have.
func (c *computation) computed(want *wanted, have *placed, todo *write, waits []client.ObjectKey) {
	key, entry := want.Key, want.Entry
	state := c.states.Begin(key)
	state.Type = v1alpha1.ServiceTypeResource
	operation := statemanager.Operation{Service: key, Changes: todo.changes, Notes: todo.notes, Payload: todo}
	asWanted := have != nil && have.isOf(c.set.ServiceSet) && have.fingerprint() == want.fingerprint
	if have != nil {
		c.asIs(&state, have)
	}
	hold := func() { operation.Changes, operation.Payload = nil, nil }
	drift := asWanted && len(todo.changes) > 0
	if drift {
		c.tellDrift(&state, todo.changes)
	}
	switch {
	case c.dryRun():
		c.states.TellPlan(&state, native.ConditionPlanned, todo.changes, todo.notes)
		hold()
		if have == nil {
			state.State, state.Template, state.Version = v1alpha1.ServiceStatePending, entry.Template, entry.Version
		}
	case have != nil && have.GetDeletionTimestamp() != nil:
		provisioning(&state, entry)
		c.tellHealth(&state, "somebody has deleted its MachineService: it is made again when that is gone")
		hold()
	case drift && c.set.Config.SyncMode != v1alpha1.SyncModeContinuousWithDriftDetection:
		operation.Notes = append(operation.Notes, fmt.Sprintf(
			"service %s differs from what was put there, and stays so in the sync mode %s", key, c.set.Config.SyncMode))
		hold()
	case !asWanted && len(todo.changes) > 0 && len(waits) > 0:
		note := c.wait(&state, native.ReasonDependencies, "waits until these services are Deployed: "+names(waits))
		operation.Notes = append(operation.Notes, note)
		hold()
		c.held(&state, entry, have)
	case !asWanted && len(todo.changes) > 0:
		provisioning(&state, entry)
		if message := c.manager.failed(c.ownKey(), key, want.fingerprint); message != "" {
			fail(&state, message)
		}
	}
	if asWanted && state.State == v1alpha1.ServiceStateDeployed {
		state.LastDeployed = &v1alpha1.LastDeployed{
			ServiceVersion: v1alpha1.ServiceVersion{Template: entry.Template, Version: entry.Version}, Fingerprint: want.fingerprint,
		}
	}
	c.withhold(&state, &operation, have)
	state.FailureMessage = want.Text(state.FailureMessage)
	for i := range state.Conditions {
		state.Conditions[i].Message = want.Text(state.Conditions[i].Message)
	}
	c.states.Enter(key, state)
	c.operate(operation)
}

// resumed enters a service that stood still while the provider was suspended, and makes it go on.
func (c *computation) resumed(key client.ObjectKey, have *placed) {
	state := c.states.Begin(key)
	c.asIs(&state, have)
	c.states.Enter(key, state)
	c.goOn(key, have)
}

// goOn makes the operator of MachineServices look after one again that stood still while the provider was suspended, whatever becomes of
// what is wanted, and whatever that waits for: conflicts withhold nothing of it. All else comes in the next reconciliation, because this
// write makes another version of the MachineService.
func (c *computation) goOn(key client.ObjectKey, have *placed) {
	c.work.Operations = append(c.work.Operations, pauseOperation(key, have, false))
}

// held makes a state that of a service which must not be touched yet: of another template it is what it is; of the same one, what is
// wanted is not there.
func (c *computation) held(state *v1alpha1.ServiceState, entry *v1alpha1.ServiceWithValues, have *placed) {
	if have != nil && (state.Template != entry.Template || state.Version != entry.Version) {
		return
	}
	provisioning(state, entry)
	if have == nil {
		state.State = v1alpha1.ServiceStatePending
	}
}

// withhold tells of a conflict with another service that holds changes back.
func (c *computation) withhold(state *v1alpha1.ServiceState, operation *statemanager.Operation, have *placed) {
	if c.conflict == nil || *c.conflict == operation.Service || len(operation.Changes) == 0 {
		return
	}
	c.wait(state, native.ReasonConflict, fmt.Sprintf("waits until nobody else has the MachineService of service %s", c.conflict))
	if have == nil {
		state.State = v1alpha1.ServiceStatePending
	}
}

// holder returns the other set to which a service is left although this one lists it: the one that has it, as long as it lists it; and
// of a service that is not there yet, the one that comes first.
func (c *computation) holder(key client.ObjectKey, have *placed) *v1alpha1.ServiceSet {
	for _, other := range c.set.Others {
		if c.wantsToo(other, key) && (have != nil && have.isOf(other) || have == nil && statemanager.Precedes(other, c.set.ServiceSet)) {
			return other
		}
	}
	return nil
}

// wantsToo tells whether another set of the same provider lists a service that is to be there.
func (c *computation) wantsToo(other *v1alpha1.ServiceSet, key client.ObjectKey) bool {
	return c.set.SharesProvider(other) && c.order.Wants(other, key)
}

// leftTo enters a service that another set has: nothing is done for it, and its state is how it is there.
func (c *computation) leftTo(want *wanted, have *placed, other *v1alpha1.ServiceSet) {
	state := c.states.Begin(want.Key)
	state.Type = v1alpha1.ServiceTypeResource
	state.State, state.Template, state.Version = v1alpha1.ServiceStatePending, want.Entry.Template, want.Entry.Version
	if have != nil {
		c.asIs(&state, have)
	}
	note := c.wait(&state, native.ReasonOtherSet, fmt.Sprintf("is left to ServiceSet %s, which lists it too", other.Name))
	c.states.Enter(want.Key, state)
	c.operate(statemanager.Operation{Service: want.Key, Notes: []string{note}})
}

// ownKey returns the key of the set.
func (c *computation) ownKey() client.ObjectKey { return client.ObjectKeyFromObject(c.set.ServiceSet) }

// tellDrift says in a state what somebody has changed.
func (c *computation) tellDrift(state *v1alpha1.ServiceState, drift []plan.Change) {
	const most = 5
	var paths []string
	for _, change := range drift {
		for _, field := range change.Fields {
			paths = append(paths, field.Path)
		}
	}
	if len(paths) > most {
		paths = append(paths[:most], "…")
	}
	message := drift[0].Object.String() + " has another " + strings.Join(paths, ", ")
	c.states.Tell(state, native.ConditionDrifted, metav1.ConditionTrue, native.ReasonChanged, message)
}
