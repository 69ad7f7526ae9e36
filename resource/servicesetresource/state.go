package servicesetresource

import (
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/resource/serviceset"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// State is the ServiceSets of a cluster, and what has to be done with each.
type State struct{ operations []serviceset.OwnerOperation }

// Changes implements plan.Changer: a change for each entry.
func (s State) Changes() []plan.Change {
	var changes []plan.Change
	for _, o := range s.operations {
		changes = append(changes, plan.Change{
			Object: plan.Object{
				APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.ServiceSetKind, Namespace: o.Key.Namespace, Name: o.Key.Name,
			},
		})
	}
	return changes
}

// Notes implements plan.Noter: a sentence for each service that waits or is blocked.
func (s State) Notes() []string {
	var notes []string
	for _, o := range s.operations {
		if o.Err != nil {
			notes = append(notes, o.Err.Error())
			continue
		}
		if o.Operation.Resolution == nil {
			continue
		}
		for i := range o.Operation.Resolution.Decisions {
			d := &o.Operation.Resolution.Decisions[i]
			if d.Blocked() || len(d.WaitsFor) > 0 {
				notes = append(notes, d.String())
			}
		}
	}
	return notes
}
