package deploymentresource

import (
	"slices"
	"strconv"
	"strings"

	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/resource/deployment"
	"github.com/operatorkit/operatorkit/resource/deployment/scheduler"
)

// Kinds of what changes on a machine. In changes, the namespace is the name of the machine.
const (
	KindContainer = "Container"
	KindVolume    = "Volume"
	KindImage     = "Image"
)

// describer makes changes of operations.
type describer struct {
	state   *scheduler.ClusterState
	changes []plan.Change
	// shown are the fields that were shown last, and of what: they are not shown again.
	shown []plan.FieldChange
	of    plan.Object
}

func changesOf(work *Work) []plan.Change {
	d := &describer{state: work.State}
	for _, leaf := range work.Plan.Describe().Leaves() {
		d.operation(leaf)
	}
	return d.changes
}

func (d *describer) operation(what deployment.Description) {
	switch what.Operation {
	case "pull":
		d.add(plan.Create, KindImage, what.MachineID, what.Image, "pull it")
	case "create-volume":
		d.add(plan.Create, KindVolume, what.MachineID, what.Volume, "")
	case "pre-deploy":
		d.add(plan.Create, KindContainer, what.MachineID, what.ContainerName, "run the pre-deploy hook to its end")
	case "job":
		if what.Running {
			d.add(plan.Update, KindContainer, what.MachineID, what.ContainerName, "wait until the job has ended")
			break
		}
		d.add(plan.Create, KindContainer, what.MachineID, what.ContainerName, "run the job to its end", what.Attributes...)
	case "run":
		d.add(plan.Create, KindContainer, what.MachineID, what.ContainerName, "", what.Attributes...)
	case "start":
		text := "start it"
		if what.Running {
			text = "wait until it works"
		}
		d.add(plan.Update, KindContainer, what.MachineID, what.ContainerName, text)
	case "stop":
		d.add(plan.Update, KindContainer, what.MachineID, what.ContainerName, "stop it")
	case "update":
		d.add(plan.Update, KindContainer, what.MachineID, what.ContainerName, "in place", what.Changes...)
	case "replace":
		d.add(plan.Update, KindContainer, what.MachineID, what.ContainerName, d.replaceText(what), what.Changes...)
	case "remove":
		d.add(plan.Delete, KindContainer, what.MachineID, what.ContainerName, what.Reason)
	}
}

// add adds a change. Fields that are those of the change before are only referred to.
func (d *describer) add(action plan.Action, kind, machineID, name, description string, attributes ...deployment.AttributeChange) {
	change := plan.Change{
		Action: action, Object: plan.Object{Kind: kind, Namespace: d.state.MachineName(machineID), Name: name}, Description: description,
	}
	for _, a := range attributes {
		change.Fields = append(change.Fields, plan.FieldChange{
			Path: a.Path, Old: value(a.Old), New: value(a.New), Sensitive: a.Old == secret || a.New == secret,
		})
	}
	switch {
	case len(change.Fields) == 0:
	case slices.Equal(change.Fields, d.shown):
		change.Fields = nil
		same := "the same as for " + d.of.Namespace + "/" + d.of.Name
		change.Description = strings.TrimPrefix(description+"; "+same, "; ")
	default:
		d.shown, d.of = change.Fields, change.Object
	}
	d.changes = append(d.changes, change)
}

// secret is what deployment.AttributeChange has in the place of a value that is secret.
const secret = "(hidden)"

// value is the value of a field: nothing for what is not there, and a text without the quotes that it has in a line.
func value(text string) any {
	if text == "" {
		return nil
	}
	if bare, err := strconv.Unquote(text); err == nil {
		return bare
	}
	return text
}

// replaceText says whose place a container takes, what comes first, and why.
func (d *describer) replaceText(what deployment.Description) string {
	text := "replaces " + what.Replaced(d.state) + ", " + string(what.Order)
	if what.Reason != "" {
		text += ": " + what.Reason
	}
	return text
}
