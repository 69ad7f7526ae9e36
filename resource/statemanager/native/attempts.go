package native

import (
	"errors"

	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
)

// The attempts of services with maxAttempts are counted in the status of the set too, so that a new process goes on counting. There the
// count is safe from who may write to the target cluster, and goes with the set. What the attempts were made for is told by versions, not by
// contents: values of Secrets could be tried out with a hash of them.

// attemptsOf stands for what attempts to put a service there are made for now.
func (c *computation) attemptsOf(entry *v1alpha1.ServiceWithValues) (string, error) {
	now, template := trialOf(c.set, entry), c.set.Templates[entry.Template]
	alone := &v1alpha1.ServiceSet{ObjectMeta: c.set.ServiceSet.ObjectMeta}
	alone.Spec.Cluster, alone.Spec.Services = c.set.ServiceSet.Spec.Cluster, []v1alpha1.ServiceWithValues{*entry}
	versions := c.memory.objects.versions(statemanager.References(alone, c.set.Templates))
	return statemanager.Fingerprint(now.entry, now.asked, template.UID, template.Generation, versions)
}

// recallAttempts takes what another process has counted for what it is, unless the cluster was away since.
func (c *computation) recallAttempts(service *resolved) {
	kept, before := c.memory.service(service.Key), c.order.State(service.Key)
	if service.Entry.MaxAttempts == 0 || kept.failure != nil || before == nil || before.FailedAttempts == nil || c.memory.wasAway() {
		return
	}
	if of, err := c.attemptsOf(service.Entry); err != nil || before.FailedAttempts.Of != of {
		return
	}
	kept.failure = &failure{
		Failure: carrier.Failure{Message: before.FailureMessage, Time: c.now, Count: int(before.FailedAttempts.Count)},
		err:     errors.New(before.FailureMessage), fingerprint: service.Fingerprint, generation: c.set.ServiceSet.Generation,
		trial: trialOf(c.set, service.Entry), failures: int(before.FailedAttempts.Count), since: c.memory.progress(0), givenUpWith: before.FailureMessage,
	}
}

// tellAttempts tells in a state how often it was tried in vain.
func (c *computation) tellAttempts(state *v1alpha1.ServiceState, service *resolved) {
	state.FailedAttempts = nil
	last := c.memory.service(service.Key).failed(service.Fingerprint)
	if last == nil || last.Count == 0 || service.Entry.MaxAttempts == 0 {
		return
	}
	if of, err := c.attemptsOf(service.Entry); err == nil {
		state.FailedAttempts = &v1alpha1.FailedAttempts{Count: int32(last.Count), Of: of}
	}
}
