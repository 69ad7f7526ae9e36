package deploymentresource

import (
	"slices"
	"strconv"
	"strings"

	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/resource/deployment"
	"github.com/operatorkit/operatorkit/resource/deployment/api"
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
	d.all(work.Plan.Operations)
	return d.changes
}

func (d *describer) all(operations []deployment.Operation) {
	for _, op := range operations {
		d.operation(op)
	}
}

func (d *describer) operation(op deployment.Operation) {
	switch o := op.(type) {
	case *deployment.SequenceOperation:
		d.all(o.Operations)
	case *deployment.ParallelOperation:
		d.all(o.Operations)
	case *deployment.RolloutOperation:
		for _, w := range o.Waves {
			d.all(w.Operations)
		}
	case *deployment.PullImageOperation:
		d.add(plan.Create, KindImage, o.MachineID, o.Image, "pull it")
	case *deployment.CreateVolumeOperation:
		d.add(plan.Create, KindVolume, o.MachineID, o.VolumeSpec.Name, "")
	case *deployment.PreDeployOperation:
		d.add(plan.Create, KindContainer, o.MachineID, o.ContainerName, "run the pre-deploy hook to its end")
	case *deployment.RunContainerOperation:
		d.add(plan.Create, KindContainer, o.MachineID, o.ContainerName, "", deployment.ContainerSpecChanges(api.ServiceSpec{}, o.Spec)...)
	case *deployment.StartContainerOperation:
		d.add(plan.Update, KindContainer, o.MachineID, o.Container.Name, startText(o))
	case *deployment.StopContainerOperation:
		d.add(plan.Update, KindContainer, o.MachineID, o.Container.Name, "stop it")
	case *deployment.UpdateContainerOperation:
		d.add(plan.Update, KindContainer, o.MachineID, o.Container.Name, "in place", o.Changes...)
	case *deployment.ReplaceContainerOperation:
		d.add(plan.Update, KindContainer, o.New.MachineID, o.New.ContainerName, d.replaceText(o), o.Changes...)
	case *deployment.RemoveContainerOperation:
		d.add(plan.Delete, KindContainer, o.MachineID, o.Container.Name, o.Reason)
	default:
		text, _, _ := strings.Cut(op.Format(d.state), "\n")
		d.changes = append(d.changes, plan.Change{Action: plan.Update, Object: plan.Object{Kind: "Operation"}, Description: text})
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

func startText(o *deployment.StartContainerOperation) string {
	if o.Running {
		return "wait until it works"
	}
	return "start it"
}

// replaceText says whose place a container takes, what comes first, and why.
func (d *describer) replaceText(o *deployment.ReplaceContainerOperation) string {
	old := make([]string, len(o.Old))
	for i := range o.Old {
		old[i] = o.Old[i].Name
		if o.Old[i].MachineID != o.New.MachineID {
			old[i] += " on " + d.state.MachineName(o.Old[i].MachineID)
		}
	}
	text := "replaces " + strings.Join(old, " and ") + ", " + string(o.Order)
	if o.Reason != "" {
		text += ": " + o.Reason
	}
	return text
}
