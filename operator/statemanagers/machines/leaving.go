package machines

import (
	"cmp"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	machinesv1alpha1 "github.com/operatorkit/operatorkit/operator/machines/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/deployment/api"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager"
	"github.com/operatorkit/operatorkit/resource/statemanager/native"
)

// leaving returns the services that the set does not list, and that it has as far as it is known.
func (c *computation) leaving() []client.ObjectKey {
	var keys []client.ObjectKey
	add := func(key client.ObjectKey) {
		if c.order.Entry(key) == nil && !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	for _, state := range c.set.ServiceSet.Status.Services {
		if state.State != v1alpha1.ServiceStateDeleted {
			add(state.Key())
		}
	}
	for _, p := range c.own() {
		listed := slices.ContainsFunc(c.order.Sorted(), func(e *v1alpha1.ServiceWithValues) bool { return p.isFor(e.Key()) })
		if !listed && !slices.ContainsFunc(keys, p.isFor) {
			add(p.key())
		}
	}
	return keys
}

// leave works out how a service is taken away that the set does not list.
func (c *computation) leave(key client.ObjectKey) {
	for _, other := range c.set.Others {
		if c.wantsToo(other, key) {
			c.handOver(key, other)
			return
		}
	}
	if c.takeAway(key, c.states.Begin(key)) {
		c.order.Gone(key)
	}
}

// handOver leaves a service to another set that lists it, and forgets it once that has it: until then nobody else would know of it.
func (c *computation) handOver(key client.ObjectKey, heir *v1alpha1.ServiceSet) {
	have := c.of(key)
	if have == nil || !have.isOf(c.set.ServiceSet) {
		c.work.Notes = append(c.work.Notes, fmt.Sprintf("service %s is handed over to ServiceSet %s", key, heir.Name))
		return
	}
	state := c.states.Begin(key)
	c.asIs(&state, have)
	note := c.wait(&state, native.ReasonOtherSet, fmt.Sprintf("is handed over to ServiceSet %s, which has not taken it yet", heir.Name))
	c.states.Enter(key, state)
	c.work.Notes = append(c.work.Notes, note)
}

// uninstalled works out how a service is taken away whose entry says that it should not be there.
func (c *computation) uninstalled(key client.ObjectKey, entry *v1alpha1.ServiceWithValues) {
	state := c.states.Begin(key)
	state.Type, state.Template, state.Version = cmp.Or(state.Type, v1alpha1.ServiceTypeResource), entry.Template, entry.Version
	if c.takeAway(key, state) {
		state.State, state.LastDeployed, state.Conditions = v1alpha1.ServiceStateDeleted, nil, nil
		c.states.Enter(key, state)
	}
}

// takeAway works out how a service is taken away, and tells whether it is gone.
func (c *computation) takeAway(key client.ObjectKey, state v1alpha1.ServiceState) (gone bool) {
	have := c.of(key)
	switch {
	case have == nil:
		return true
	case !have.isOf(c.set.ServiceSet):
		c.work.Notes = append(c.work.Notes, fmt.Sprintf("service %s is left to ServiceSet %s", key, c.setOf(have).Name))
		return true
	}
	before := state.State
	state.State = v1alpha1.ServiceStateDeleting
	if have.suspended() {
		c.states.Enter(key, state)
		c.goOn(key, have)
		return false
	}
	if waits := c.order.Before(key); len(waits) > 0 && !c.dryRun() {
		note := c.wait(&state, native.ReasonDependents, "waits until these services, which depend on it, are gone: "+names(waits))
		c.states.Enter(key, state)
		c.operate(statemanager.Operation{Service: key, Notes: []string{note}})
		return false
	}
	operation := removal(key, have)
	switch {
	case have.GetDeletionTimestamp() != nil && statemanager.LetGo(c.set) && unseen(&have.service):
		c.work.Notes = append(c.work.Notes, fmt.Sprintf(
			"service %s is let go of, because a machine does not answer: its MachineService goes when the containers there are removed", key))
		return true
	case have.GetDeletionTimestamp() != nil:
		message := messageOf(&have.service)
		c.tellHealth(&state, message)
		operation = statemanager.Operation{Service: key, Notes: []string{fmt.Sprintf("service %s is not gone: %s", key, message)}}
		c.work.Notes = append(c.work.Notes, operation.Notes...)
	case c.dryRun():
		c.states.TellPlan(&state, native.ConditionPlanned, operation.Changes, nil)
		state.State = cmp.Or(before, v1alpha1.ServiceStateDeployed)
		operation.Changes, operation.Payload = nil, nil
	}
	c.withhold(&state, &operation, have)
	c.states.Enter(key, state)
	c.operate(operation)
	return false
}

// unseen tells whether a machine that may have containers of a service does not answer.
func unseen(service *machinesv1alpha1.MachineService) bool {
	return slices.ContainsFunc(service.Status.Machines, func(m machinesv1alpha1.MachineContainers) bool {
		return m.State == api.MachineUnknown
	})
}
