package native

import (
	"cmp"
	"context"
	"errors"
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

// entry works out what has to be done for a service that the set lists. An error says that the cluster does not answer.
func (c *computation) entry(ctx context.Context, entry *v1alpha1.ServiceWithValues) error {
	key := entry.Key()
	if entry.HelmAction == v1alpha1.HelmActionUninstall {
		return c.uninstalled(ctx, key, entry)
	}
	service, err := c.memory.objects.resolve(ctx, c.set, entry)
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		c.unresolved(entry, err)
		return nil
	}
	service.Owner, service.Former, service.Account = c.owner, c.former, c.manager.accountOf(c.set, key)
	waits := c.waits(entry)
	begun := c.order.State(key)
	if len(waits) > 0 && (begun == nil || begun.State == v1alpha1.ServiceStatePending) && len(c.found[key]) == 0 {
		c.pending(key, service, waits)
		return nil
	}
	if done, err := c.otherType(ctx, service); done || err != nil {
		return err
	}
	c.recallAttempts(service)
	kept := c.memory.service(key)
	if failed := kept.failed(service.Fingerprint); failed != nil {
		service.Failure = &failed.Failure
	}
	result, err := c.computeEntry(ctx, service)
	if c.ends(ctx, err) {
		return err
	}
	if result != nil {
		c.requeue(result.Requeue)
		kept.kinds = slices.Clone(result.Missing)
		if result.Found != nil {
			kept.kinds = append(kept.kinds, result.Found.Kinds...)
		}
	}
	if err == nil {
		err = c.rival(service, result.Found)
	}
	if err != nil {
		c.failed(service, result, service.hider.Error(err))
		return nil
	}
	c.computed(service, result, waits)
	return nil
}

// rival is the error for a service that this set had, and that another one of the same name has taken since: it lives, be it in another
// management cluster, and would take the service again whenever this one does. One that is gone, such as before a restore, takes nothing.
func (c *computation) rival(service *resolved, found *carrier.Found) error {
	if found == nil || !isOf(found, c.set.ServiceSet) || found.Owner.UID == "" {
		return nil
	}
	kept := c.memory.service(service.Key)
	if found.Owner.UID == c.set.ServiceSet.UID {
		kept.owner = found.Owner.UID
		return nil
	}
	if kept.owner != c.set.ServiceSet.UID {
		return nil
	}
	return fmt.Errorf("service %s was taken by another %s, with UID %s: this one has UID %s. Two management clusters with the same Origin "+
		"put it there: give one of them another Origin, or take the service out of one of the sets: %w",
		service.Key, found.Owner, found.Owner.UID, c.set.ServiceSet.UID, carrier.ErrConflict)
}

// waits returns what a service waits for. In the mode DryRun it waits for nothing: nothing would ever come.
func (c *computation) waits(entry *v1alpha1.ServiceWithValues) []client.ObjectKey {
	if c.set.Config.SyncMode == v1alpha1.SyncModeDryRun {
		return nil
	}
	return c.order.Waits(entry, c.states)
}

// unresolved tells of a service that something which it is made of can't be read. While its entry says what was Deployed last, it
// stays as it is.
func (c *computation) unresolved(entry *v1alpha1.ServiceWithValues, err error) {
	key := entry.Key()
	state := c.begin(key)
	same := saysWhatWasDeployed(entry, state.LastDeployed)
	if !same {
		state.Template, state.Version = entry.Template, entry.Version
	}
	c.hold(key, state, same && !framework.IsPermanent(err), err)
}

// failed tells of a service that its carrier can't say what has to be done; result is what it could find out, or nil. What runs as
// it should stays as it is, unless it belongs to somebody else.
func (c *computation) failed(service *resolved, result *carrier.Result, err error) {
	state := c.begin(service.Key)
	if result != nil {
		shown := service.hider.Result(result)
		c.tellHealth(&state, shown.Health)
		c.tellDrift(&state, shown.Drift)
	}
	same := c.isThere(service, state.LastDeployed, result) && !errors.Is(err, carrier.ErrConflict) || carrier.Unanswered(err)
	if !same {
		state.Template, state.Version, state.Type = service.Entry.Template, service.Entry.Version, typeOf(service.Template)
	}
	c.conflicts(service.Key, err)
	c.hold(service.Key, state, same, err)
}

// isThere tells whether a service was Deployed last as it should be, as far as that is known.
func (c *computation) isThere(service *resolved, last *v1alpha1.LastDeployed, result *carrier.Result) bool {
	switch known := c.memory.service(service.Key).deployed; {
	case last == nil:
		return false
	case result != nil && result.Found != nil && result.Found.Seal != "":
		return result.Found.Fingerprint == service.Fingerprint
	case known != "":
		return known == service.Fingerprint
	}
	return saysWhatWasDeployed(service.Entry, last)
}

// hold enters a state that stays as it is, or has failed, because of an error.
func (c *computation) hold(key client.ObjectKey, state v1alpha1.ServiceState, same bool, err error) {
	message := statemanager.FirstLine(err.Error())
	reason := ReasonUnavailable
	if missing := (*missingError)(nil); errors.As(err, &missing) {
		reason = ReasonMissing
	} else if carrier.IsConflict(err) {
		reason = ReasonConflict
	}
	c.tell(&state, ConditionResolved, metav1.ConditionFalse, reason, message)
	if !same || state.State == "" || state.State == v1alpha1.ServiceStateFailed {
		fail(&state, message)
	}
	c.enter(key, state)
	c.operate(statemanager.Operation{Service: key, Err: err})
}

// pending enters a service that is not begun before others are Deployed.
func (c *computation) pending(key client.ObjectKey, service *resolved, waits []client.ObjectKey) {
	state := c.begin(key)
	state.State, state.Type = v1alpha1.ServiceStatePending, typeOf(service.Template)
	state.Template, state.Version = service.Entry.Template, service.Entry.Version
	message := "waits until these services are Deployed: " + names(waits)
	c.tell(&state, ConditionWaiting, metav1.ConditionTrue, ReasonDependencies, message)
	c.enter(key, state)
	c.operate(statemanager.Operation{Service: key, Notes: []string{fmt.Sprintf("service %s %s", key, message)}})
}

// otherType takes away what a service was made of before, if that was something else: a chart can't become manifests.
// It tells whether that has to be done first.
func (c *computation) otherType(ctx context.Context, service *resolved) (first bool, err error) {
	wanted := c.manager.carrierOf(typeOf(service.Template))
	was := c.typesOf(service.Key)
	for _, kind := range was {
		by := c.manager.carrierOf(kind)
		if by == wanted {
			continue
		}
		result, err := c.compute(ctx, by, c.removal(service.Key))
		switch {
		case c.ends(ctx, err):
			return true, err
		case err != nil:
			c.stuck(service, fmt.Errorf("take away what it was made of before: %w", err))
			return true, nil
		}
		if result.Found == nil && len(result.Changes) == 0 {
			continue
		}
		state := c.begin(service.Key)
		state.State = v1alpha1.ServiceStateProvisioning
		note := fmt.Sprintf("service %s was %s and becomes %s: it is taken away first", service.Key, kind, typeOf(service.Template))
		c.carry(&state, by, c.removal(service.Key), result, window.Changes, note)
		c.enter(service.Key, state)
		return true, nil
	}
	return false, nil
}

// stuck tells of a service that what it was made of before can't be looked at. The state keeps the type of that, which nothing else
// remembers.
func (c *computation) stuck(service *resolved, err error) {
	state := c.begin(service.Key)
	same := c.isThere(service, state.LastDeployed, nil) && !errors.Is(err, carrier.ErrConflict)
	if !same {
		state.Template, state.Version = service.Entry.Template, service.Entry.Version
	}
	c.conflicts(service.Key, err)
	c.hold(service.Key, state, same, err)
}

// typesOf returns what a service is made of on the cluster, as far as it is known.
func (c *computation) typesOf(key client.ObjectKey) []v1alpha1.ServiceType {
	var types []v1alpha1.ServiceType
	for _, found := range c.found[key] {
		types = append(types, found.Type)
	}
	if state := c.order.State(key); state != nil && state.Type != "" && state.State != v1alpha1.ServiceStatePending {
		types = append(types, state.Type)
	}
	return types
}

// computed enters what a carrier found out about a service that the set lists.
func (c *computation) computed(service *resolved, result *carrier.Result, waits []client.ObjectKey) {
	shown := service.hider.Result(result)
	entry, found := service.Entry, result.Found
	state := c.begin(service.Key)
	state.Type = typeOf(service.Template)
	c.tellHealth(&state, shown.Health)
	c.tellDrift(&state, shown.Drift)
	if heir := c.holder(service.Key, found); heir != nil {
		c.leftTo(&state, heir, service, shown)
		return
	}
	operation := statemanager.Operation{Service: service.Key, Changes: shown.Changes, Notes: shown.Notes}
	operation.Payload = &payload{by: c.manager.carrierOf(state.Type), service: service, result: result}
	asWanted := found != nil && found.Fingerprint == service.Fingerprint
	begins := len(result.Changes) > 0 && !asWanted
	switch {
	case c.set.Config.SyncMode == v1alpha1.SyncModeDryRun:
		c.tellPlan(&state, shown.Changes, shown.Notes)
		operation.Changes, operation.Payload = nil, nil
		c.as(&state, entry, found, shown.Health)
		if found == nil {
			state.State = v1alpha1.ServiceStatePending
		}
	case begins && len(waits) > 0:
		message := "waits until these services are Deployed: " + names(waits)
		c.tell(&state, ConditionWaiting, metav1.ConditionTrue, ReasonDependencies, message)
		operation.Changes, operation.Payload = nil, nil
		operation.Notes = append(operation.Notes, fmt.Sprintf("service %s %s", service.Key, message))
		c.held(&state, entry, found, shown.Health)
	case !result.UnderWay && c.waitForWindow(&state, &operation, window.Changes):
		if c.held(&state, entry, found, shown.Health); asWanted {
			c.deployed(&state, service, found, shown.Health)
		}
		if operation.Err != nil {
			fail(&state, operation.Err.Error())
		}
	case begins:
		state.State, state.Template, state.Version = v1alpha1.ServiceStateProvisioning, entry.Template, entry.Version
	case asWanted:
		c.deployed(&state, service, found, shown.Health)
	default:
		// Something else is there, and stays for now: the mode is OneTime, or the carrier waits or has given up.
		c.as(&state, entry, found, shown.Health)
	}
	if state.State == v1alpha1.ServiceStateFailed && state.FailureMessage == "" {
		fail(&state, shown.Health.Message)
	}
	c.remember(&state, service, &operation, asWanted)
	c.tellAttempts(&state, service)
	if c.withhold(&state, &operation) && found == nil {
		state.State = v1alpha1.ServiceStatePending
	}
	c.enter(service.Key, state)
	c.operate(operation)
}

// deployed makes a state that of a service which is on the cluster as it is wanted.
func (c *computation) deployed(state *v1alpha1.ServiceState, service *resolved, found *carrier.Found, health carrier.Health) {
	entry := service.Entry
	state.Template, state.Version = entry.Template, entry.Version
	state.State = cmp.Or(health.Phase, v1alpha1.ServiceStateProvisioning)
	if state.State == v1alpha1.ServiceStateDeployed {
		c.memory.service(service.Key).deployed = service.Fingerprint
		// What entries say has been read as JSON.
		fingerprint, _ := deployedAs(entry, found)
		state.LastDeployed = &v1alpha1.LastDeployed{
			ServiceVersion: v1alpha1.ServiceVersion{Template: entry.Template, Version: entry.Version}, Fingerprint: fingerprint,
		}
	}
}

// as makes a state that of what is found on the cluster.
func (c *computation) as(state *v1alpha1.ServiceState, entry *v1alpha1.ServiceWithValues, found *carrier.Found, health carrier.Health) {
	state.State = cmp.Or(health.Phase, v1alpha1.ServiceStateProvisioning)
	switch {
	case found == nil:
		state.Template, state.Version = entry.Template, entry.Version
	case found.Template != "":
		state.Template, state.Version = found.Template, found.Version
	}
}

// held makes a state that of a service which must not be touched yet: of another template it is what it is; of the same one, what is
// wanted is not there.
func (c *computation) held(state *v1alpha1.ServiceState, entry *v1alpha1.ServiceWithValues, found *carrier.Found, health carrier.Health) {
	c.as(state, entry, found, health)
	if state.Template == "" || state.Template == entry.Template && state.Version == entry.Version {
		state.State, state.Template, state.Version = v1alpha1.ServiceStateProvisioning, entry.Template, entry.Version
		if found == nil {
			state.State = v1alpha1.ServiceStatePending
		}
	}
}

// remember tells of the last failure, and forgets it when what failed is there.
func (c *computation) remember(state *v1alpha1.ServiceState, service *resolved, operation *statemanager.Operation, asWanted bool) {
	kept := c.memory.service(service.Key)
	last := kept.failed(service.Fingerprint)
	switch {
	case last == nil:
		return
	case len(operation.Changes) == 0 && asWanted:
		kept.failure = nil
		return
	}
	fail(state, last.Message)
	c.conflicts(service.Key, last.err)
	if framework.IsPermanent(last.err) && last.generation == c.set.ServiceSet.Generation {
		operation.Changes, operation.Payload, operation.Err = nil, nil, last.err
	}
	if err := last.givenUp(c.set, service.Entry); err != nil && len(operation.Changes) > 0 {
		fail(state, err.Error())
		operation.Changes, operation.Payload, operation.Err = nil, nil, err
	}
	c.pause(service, last, operation)
}

// pause holds an operation back until the pause after the last failure is over, unless it is the rest of one that has begun.
func (c *computation) pause(service *resolved, last *failure, operation *statemanager.Operation) {
	left := c.memory.paused(last, c.now)
	if left == 0 || last.begun || len(operation.Changes) == 0 || last.trial != trialOf(c.set, service.Entry) {
		return
	}
	c.requeue(left)
	operation.Changes, operation.Payload, operation.Err = nil, nil, framework.Permanent(last.err)
}

// withhold tells whether a conflict with another service holds changes back.
func (c *computation) withhold(state *v1alpha1.ServiceState, operation *statemanager.Operation) bool {
	if c.conflict == nil || *c.conflict == operation.Service || len(operation.Changes) == 0 {
		return false
	}
	c.tell(state, ConditionWaiting, metav1.ConditionTrue, ReasonConflict, fmt.Sprintf("waits until nobody else manages the objects of service %s", c.conflict))
	return true
}
