package statemanagerresource

import (
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/resource/statemanager"
)

// State is what has to be done for the services of a set: all of it as the desired state, and as a part of a patch what that
// does.
type State struct {
	set  *statemanager.Set
	work *statemanager.Work
	// operations are those of work, or some of them.
	operations []*statemanager.Operation
}

// Changes implements plan.Changer: the objects on the cluster that change, in the order in which they do.
func (s State) Changes() []plan.Change {
	var changes []plan.Change
	for _, o := range s.operations {
		if pending(o) {
			changes = append(changes, o.Changes...)
		}
	}
	return changes
}

// Notes implements plan.Noter: what stays as it is, and what can't be worked out.
func (s State) Notes() []string {
	var notes []string
	for _, o := range s.operations {
		notes = append(notes, o.Notes...)
		if o.Err != nil {
			notes = append(notes, fmt.Sprintf("%s is left alone: %s", subject(o), o.Err))
		}
	}
	return notes
}

// pending tells whether there is something to carry out.
func pending(o *statemanager.Operation) bool { return o.Err == nil && len(o.Changes) > 0 }

// subject names what an operation is for.
func subject(o *statemanager.Operation) string {
	if o.Service == (client.ObjectKey{}) {
		return "the service set"
	}
	return "service " + o.Service.String()
}
