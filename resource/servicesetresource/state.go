package servicesetresource

import (
	"fmt"

	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/resource/serviceset"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// State is what has to be done with the ServiceSets of a cluster: all of it as the desired state, and as a part of a patch what
// that does.
type State struct{ operations []serviceset.OwnerOperation }

// Changes implements plan.Changer. A set that is created or deleted, or that changes beside its services, is a change; then
// come its services.
func (s State) Changes() []plan.Change {
	var changes []plan.Change
	for i := range s.operations {
		changes = append(changes, changesOf(&s.operations[i])...)
	}
	return changes
}

// Notes implements plan.Noter: a sentence for each service that waits or is blocked, and for each owner that has something
// to mend.
func (s State) Notes() []string {
	var notes []string
	for i := range s.operations {
		notes = append(notes, notesOf(&s.operations[i])...)
	}
	return notes
}

func notesOf(o *serviceset.OwnerOperation) []string {
	switch {
	case o.Err != nil:
		return []string{fmt.Sprintf("ServiceSet %s is left alone: %s", o.Key, o.Err)}
	case o.Operation == nil:
		return nil
	case o.Operation.Before != nil && o.Operation.Before.DeletionTimestamp != nil:
		return []string{fmt.Sprintf("ServiceSet %s is being deleted: its services go first", o.Key)}
	}
	return append(decisionNotes(o), removalNotes(o.Operation)...)
}

// decisionNotes are those on services that are not taken away.
func decisionNotes(o *serviceset.OwnerOperation) []string {
	if o.Operation.Resolution == nil {
		return nil
	}
	said := map[plan.Object]string{}
	for _, c := range changesOf(o) {
		said[c.Object] = c.Description
	}
	var notes []string
	for i := range o.Operation.Resolution.Decisions {
		d := &o.Operation.Resolution.Decisions[i]
		description, changes := said[serviceObject(o, d.Service)]
		if noteworthy(d, changes) && (!changes || description != phrase(d)) {
			notes = append(notes, d.String())
		}
	}
	return notes
}

// removalNotes are those on services that the state manager has not taken away yet.
func removalNotes(o *serviceset.Operation) []string {
	if o.Before == nil || o.Operation == v1alpha1.ServiceSetOperationDelete {
		return nil
	}
	before := removing(o.Before)
	var notes []string
	for i := range o.ServiceSet.Spec.Removing {
		if key := o.ServiceSet.Spec.Removing[i].Key(); before[key] {
			notes = append(notes, key.String()+" is being removed")
		}
	}
	return notes
}

// noteworthy tells whether a decision says what stays as it is although it should not. Of a service that changes that is so
// only if it is blocked: it gets new values, and stays in its version.
func noteworthy(d *serviceset.Decision, changes bool) bool {
	switch {
	case d.Blocked():
		return true
	case changes, d.Reason == v1alpha1.ReasonDeployed:
		return false
	case d.Reason == v1alpha1.ReasonDisabled:
		return d.From != d.Desired
	}
	return true
}
