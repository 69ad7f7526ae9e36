package deploymentresource

import (
	"fmt"
	"slices"

	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/resource/deployment"
	"github.com/operatorkit/operatorkit/resource/deployment/api"
)

// State is what there is to do for a service: as the desired state all that is known of it, as a part of a patch the plan that is
// carried out.
type State struct{ work *Work }

// Changes implements plan.Changer: the operations of the plan in the order in which they begin, each with the container, volume or
// image that it is about.
func (s State) Changes() []plan.Change {
	if s.work == nil {
		return nil
	}
	return changesOf(s.work)
}

// Notes implements plan.Noter: what stays as it is, what was taken over, what waits, and what happens when containers fail.
func (s State) Notes() []string {
	if s.work == nil {
		return nil
	}
	notes := slices.Concat(s.work.Plan.Notes, s.work.Plan.TakenOver, s.work.Plan.Undrained, s.work.Plan.Over)
	for _, left := range s.work.Left {
		if s.work.Plan.Empty() {
			notes = append(notes, "waits for "+left)
		}
	}
	if s.work.Hold != "" {
		return append(notes, s.work.Hold)
	}
	for _, op := range s.work.Plan.Operations {
		if rollout, ok := op.(*deployment.RolloutOperation); ok {
			notes = append(notes, describeRollout(rollout))
		}
	}
	return notes
}

// describeRollout says in how many steps containers change, and what happens when some fail.
func describeRollout(o *deployment.RolloutOperation) string {
	text := "all at once"
	if n := len(o.Waves); n > 1 {
		text = fmt.Sprintf("in %d steps", n)
	}
	if o.MaxFailurePercent > 0 {
		text += fmt.Sprintf("; if more than %d%% fail, ", o.MaxFailurePercent)
	} else {
		text += "; if one fails, "
	}
	switch o.FailureAction {
	case api.FailureContinue:
		return text + "it goes on with the others"
	case api.FailureRollback:
		return text + "all of this is undone"
	}
	return text + "it stops there"
}

// pending tells whether there is a plan to carry out.
func (s State) pending() bool {
	return s.work != nil && s.work.Hold == "" && !s.work.Plan.Empty()
}
