package native

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
	"github.com/operatorkit/operatorkit/resource/statemanager/window"
)

// leaving returns the services that the set does not list, and that are on the cluster as far as it is known.
func (c *computation) leaving() []client.ObjectKey {
	known := map[client.ObjectKey]bool{}
	for i := range c.set.ServiceSet.Status.Services {
		s := &c.set.ServiceSet.Status.Services[i]
		if s.State != v1alpha1.ServiceStateDeleted {
			known[s.Key()] = true
		}
	}
	for key := range c.found {
		known[key] = true
	}
	var keys []client.ObjectKey
	for key := range known {
		if c.order.Entry(key) == nil {
			keys = append(keys, key)
		}
	}
	return keys
}

// removal is a service that is to be taken away.
func (c *computation) removal(key client.ObjectKey) *resolved {
	return &resolved{Service: &carrier.Service{
		Key: key, Owner: c.owner, Former: c.former, Config: c.set.Config, Account: c.manager.accountOf(c.set, key), Unknown: c.unknown(key),
	}}
}

// unknown tells whether only marks on the cluster say that a service is the set's. What a status says of a service that the set has listed
// has its template, also while it is being taken away; of one that was only found, it has none.
func (c *computation) unknown(key client.ObjectKey) bool {
	spec := &c.set.ServiceSet.Spec
	if slices.ContainsFunc(spec.Services, func(s v1alpha1.ServiceWithValues) bool { return s.Key() == key }) ||
		slices.ContainsFunc(spec.Removing, func(r v1alpha1.ServiceRemoval) bool { return r.Key() == key }) {
		return false
	}
	state := c.order.State(key)
	return state == nil || state.State == v1alpha1.ServiceStateDeleted || state.Template == ""
}

// compute has a carrier work out what has to be done.
func (c *computation) compute(ctx context.Context, by carrier.Carrier, service *resolved) (*carrier.Result, error) {
	kept := c.memory.service(service.Key)
	if failed := kept.failed(service.Fingerprint); failed != nil {
		service.Failure = &failed.Failure
	}
	cluster, reader, err := acting(c.cluster, service.Service, &kept.freshness)
	if err != nil {
		return nil, err
	}
	result, err := by.Compute(ctx, cluster, reader, service.Service)
	if err == nil && result.Found != nil {
		kept.kinds = result.Found.Kinds
		c.requeue(result.Requeue)
	}
	return result, lacking(service.Service, err)
}

// leave works out how a service is taken away that the set does not list. An error says that the cluster does not answer.
func (c *computation) leave(ctx context.Context, key client.ObjectKey) error {
	if heir := c.order.Heir(key); heir != nil {
		return c.handOver(ctx, key, heir)
	}
	gone, err := c.takeAway(ctx, key, c.begin(key), v1alpha1.ServiceStateDeleting)
	if gone {
		c.order.Gone(key)
	}
	return err
}

// handOver leaves a service to another set that lists it, and forgets it once that has it: until then nobody else would know of
// what is on the cluster.
func (c *computation) handOver(ctx context.Context, key client.ObjectKey, heir *v1alpha1.ServiceSet) error {
	state := c.begin(key)
	kept := false
	for _, by := range c.whoHas(key) {
		result, err := c.compute(ctx, by, c.removal(key))
		switch {
		case c.ends(ctx, err):
			return err
		case err != nil:
			c.operate(statemanager.Operation{Service: key, Err: err})
			kept = true
		case result.Found != nil && isOf(result.Found, c.set.ServiceSet):
			kept = true
		}
	}
	if !kept || c.order.Deployed(heir, key) {
		c.work.Notes = append(c.work.Notes, fmt.Sprintf("service %s is handed over to ServiceSet %s", key, heir.Name))
		return nil
	}
	message := fmt.Sprintf("is handed over to ServiceSet %s, which has not taken it yet", heir.Name)
	state.State = cmp.Or(state.State, v1alpha1.ServiceStateDeployed)
	c.tell(&state, ConditionWaiting, metav1.ConditionTrue, ReasonOtherSet, message)
	c.enter(key, state)
	c.work.Notes = append(c.work.Notes, fmt.Sprintf("service %s %s", key, message))
	return nil
}

// uninstalled works out how a service is taken away whose entry says that it should not be there.
func (c *computation) uninstalled(ctx context.Context, key client.ObjectKey, entry *v1alpha1.ServiceWithValues) error {
	state := c.begin(key)
	state.Template, state.Version = entry.Template, entry.Version
	if template := c.set.Templates[entry.Template]; template != nil && state.Type == "" {
		state.Type = typeOf(template)
	}
	gone, err := c.takeAway(ctx, key, state, v1alpha1.ServiceStateDeleting)
	if err == nil && gone {
		state.State, state.LastDeployed, state.Conditions = v1alpha1.ServiceStateDeleted, nil, nil
		c.enter(key, state)
	}
	return err
}

// takeAway works out how a service is taken away, by everyone who may have put it there, and tells whether it is gone.
func (c *computation) takeAway(ctx context.Context, key client.ObjectKey, state v1alpha1.ServiceState, phase v1alpha1.ServicePhase) (gone bool, err error) {
	state.State = phase
	if waits := c.order.Before(key); len(waits) > 0 && !c.dryRun() {
		message := "waits until these services, which depend on it, are gone: " + names(waits)
		c.tell(&state, ConditionWaiting, metav1.ConditionTrue, ReasonDependents, message)
		c.enter(key, state)
		c.operate(statemanager.Operation{Service: key, Notes: []string{fmt.Sprintf("service %s %s", key, message)}})
		return false, nil
	}
	gone = true
	for _, by := range c.whoHas(key) {
		service := c.removal(key)
		result, err := c.compute(ctx, by, service)
		switch {
		case c.ends(ctx, err):
			return false, err
		case err != nil:
			gone = false
			fail(&state, err.Error())
			c.operate(statemanager.Operation{Service: key, Err: err})
			continue
		case result.Found == nil && len(result.Changes) == 0:
			continue
		}
		if rival := c.rival(service, result.Found); rival != nil {
			// It is what another set of the same name needs.
			c.work.Notes = append(c.work.Notes, fmt.Sprintf("service %s stays: %s", key, statemanager.FirstLine(rival.Error())))
			continue
		}
		if heir := c.takenBy(key, result.Found); heir != nil {
			// Another set has taken it over and takes it away itself.
			c.work.Notes = append(c.work.Notes, fmt.Sprintf("service %s is left to ServiceSet %s", key, heir.Name))
			continue
		}
		gone = false
		c.tellHealth(&state, result.Health)
		if result.Health.Message != "" {
			c.work.Notes = append(c.work.Notes, fmt.Sprintf("service %s is not gone: %s", key, statemanager.FirstLine(result.Health.Message)))
		}
		c.carry(&state, by, service, result, window.Removals)
	}
	if !gone {
		c.enter(key, state)
	}
	return gone, nil
}

// dryRun tells whether nothing may be taken away. The deletion of a set is meant as it is said.
func (c *computation) dryRun() bool {
	return c.set.Config.SyncMode == v1alpha1.SyncModeDryRun && c.set.ServiceSet.DeletionTimestamp == nil
}

// whoHas returns the carriers that may have a service on the cluster.
func (c *computation) whoHas(key client.ObjectKey) []carrier.Carrier {
	all := []carrier.Carrier{c.manager.config.Helm, c.manager.config.Manifests}
	types := c.typesOf(key)
	if len(types) == 0 {
		return all
	}
	var some []carrier.Carrier
	for _, by := range all {
		for _, kind := range types {
			if c.manager.carrierOf(kind) == by {
				some = append(some, by)
				break
			}
		}
	}
	return some
}

// carry adds the operation of a removal, with its last failure in the state.
func (c *computation) carry(state *v1alpha1.ServiceState, by carrier.Carrier, service *resolved, result *carrier.Result, what window.What, notes ...string) {
	operation := statemanager.Operation{
		Service: service.Key, Changes: result.Changes, Notes: append(notes, result.Notes...),
		Payload: &payload{by: by, service: service, result: result},
	}
	if c.dryRun() {
		c.tellPlan(state, result.Changes, result.Notes)
		if before := c.order.State(service.Key); before != nil {
			state.State = before.State
		}
		operation.Changes, operation.Payload = nil, nil
	}
	kept := c.memory.service(service.Key)
	switch last := kept.failed(service.Fingerprint); {
	case last == nil:
	case len(result.Changes) == 0 && !result.UnderWay:
		kept.failure = nil
	default:
		fail(state, last.Message)
		if framework.IsPermanent(last.err) && last.generation == c.set.ServiceSet.Generation && c.set.ServiceSet.DeletionTimestamp == nil {
			operation.Changes, operation.Payload, operation.Err = nil, nil, last.err
		}
		c.pause(service, last, &operation)
	}
	c.withhold(state, &operation)
	if c.waitForWindow(state, &operation, what) && operation.Err != nil {
		fail(state, operation.Err.Error())
	}
	c.operate(operation)
}

// holder returns the other set to which a service is left although this one lists it: the one that put it there, as long as it lists
// it; and of a service that is not there yet, the one that comes first.
func (c *computation) holder(key client.ObjectKey, found *carrier.Found) *v1alpha1.ServiceSet {
	for _, other := range c.set.Others {
		if !c.order.Lists(other, key) {
			continue
		}
		if found != nil && isOf(found, other) || found == nil && statemanager.Precedes(other, c.set.ServiceSet) {
			return other
		}
	}
	return nil
}

// takenBy returns the other set that has taken a service over, and lists it or takes it away itself.
func (c *computation) takenBy(key client.ObjectKey, found *carrier.Found) *v1alpha1.ServiceSet {
	for _, other := range c.set.Others {
		if found != nil && isOf(found, other) && c.order.Has(other, key) {
			return other
		}
	}
	return nil
}

// isOf tells whether a set has put something on the cluster.
func isOf(found *carrier.Found, set *v1alpha1.ServiceSet) bool {
	return found.Owner.Namespace == set.Namespace && found.Owner.Name == set.Name
}

// leftTo enters a service that another set has: nothing is done for it, and its state is how it is there.
func (c *computation) leftTo(state *v1alpha1.ServiceState, heir *v1alpha1.ServiceSet, service *resolved, shown carrier.Result) {
	c.as(state, service.Entry, shown.Found, shown.Health)
	if shown.Found == nil {
		state.State = v1alpha1.ServiceStatePending
	}
	if state.State == v1alpha1.ServiceStateFailed {
		fail(state, shown.Health.Message)
	}
	message := fmt.Sprintf("is left to ServiceSet %s, which lists it too", heir.Name)
	c.tell(state, ConditionWaiting, metav1.ConditionTrue, ReasonOtherSet, message)
	c.enter(service.Key, *state)
	c.operate(statemanager.Operation{Service: service.Key, Notes: []string{fmt.Sprintf("service %s %s", service.Key, message)}})
}
