package deployment

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/operatorkit/operatorkit/resource/deployment/api"
)

// Description says what an operation does. Everything that is shown of one is made of it, and in JSON it is the operation for programs.
// There is nothing secret in it, and so not everything that it would take to carry it out.
type Description struct {
	// Operation is pull, create-volume, pre-deploy, job, run, start, stop, update, replace or remove, or one of those that have others within:
	// sequence, parallel or rollout.
	Operation string `json:"operation"`
	// MachineID is where it happens, and the other fields are what it is about.
	MachineID     string   `json:"machineID,omitempty"`
	ServiceID     string   `json:"serviceID,omitempty"`
	ContainerID   string   `json:"containerID,omitempty"`
	ContainerName string   `json:"containerName,omitempty"`
	Image         string   `json:"image,omitempty"`
	Volume        string   `json:"volume,omitempty"`
	Command       []string `json:"command,omitempty"`
	// Running tells of a start, or a job, that the container is there and only waited for.
	Running bool `json:"-"`
	// Order, Reason and Replaces say what comes first, why, and whose place a container takes.
	Order    api.UpdateOrder `json:"order,omitempty"`
	Reason   string          `json:"reason,omitempty"`
	Replaces []Replaced      `json:"replaces,omitempty"`
	// Changes are the attributes that differ, and Attributes those of a container that is run.
	Changes    []AttributeChange `json:"changes,omitempty"`
	Attributes []AttributeChange `json:"-"`
	// FailureAction and MaxFailurePercent say of a rollout what is done when containers fail.
	FailureAction     api.FailureAction `json:"failureAction,omitempty"`
	MaxFailurePercent int               `json:"maxFailurePercent,omitempty"`
	// Waves, and Operations, are what is within. Limit is how many of them go on at once.
	Waves      []WaveDescription `json:"waves,omitempty"`
	Limit      int               `json:"limit,omitempty"`
	Operations []Description     `json:"operations,omitempty"`

	// machineName is shown for the machine without a resolver.
	machineName string
}

// Replaced is a container whose place another one takes.
type Replaced struct {
	MachineID     string `json:"machineID"`
	ContainerID   string `json:"containerID"`
	ContainerName string `json:"containerName"`
}

// WaveDescription is a Wave.
type WaveDescription struct {
	Operations   []Description `json:"operations"`
	PauseSeconds float64       `json:"pauseSeconds,omitempty"`
	Verify       bool          `json:"verify,omitempty"`
}

func descriptions(operations []Operation) []Description {
	out := make([]Description, len(operations))
	for i, op := range operations {
		out[i] = op.Describe()
	}
	return out
}

// Leaves returns the operations within that have no others within, in their order, or the operation itself.
func (d Description) Leaves() []Description {
	within := slices.Clone(d.Operations)
	for _, w := range d.Waves {
		within = append(within, w.Operations...)
	}
	if len(within) == 0 {
		return []Description{d}
	}
	var leaves []Description
	for _, w := range within {
		leaves = append(leaves, w.Leaves()...)
	}
	return leaves
}

// Format returns it for people, in one or more lines without a newline at the end. Without a resolver it shows IDs.
func (d Description) Format(resolver NameResolver) string {
	switch d.Operation {
	case "sequence", "parallel":
		lines := make([]string, len(d.Operations))
		for i := range d.Operations {
			lines[i] = d.Operations[i].Format(resolver)
		}
		return strings.Join(lines, "\n")
	case "rollout":
		return d.rollout(resolver)
	}
	lines := []string{d.line(resolver)}
	for _, c := range d.Changes {
		lines = append(lines, "    "+c.String())
	}
	return strings.Join(lines, "\n")
}

// String returns it in one line, with IDs.
func (d Description) String() string {
	switch d.Operation {
	case "sequence":
		return "in order: " + joined(d.Operations)
	case "parallel":
		return fmt.Sprintf("%d at once: %s", d.Limit, joined(d.Operations))
	case "rollout":
		waves := make([]string, len(d.Waves))
		for i, wave := range d.Waves {
			waves[i] = joined(wave.Operations)
		}
		return fmt.Sprintf("roll out: %s; %s", strings.Join(waves, " then "), d.policy())
	}
	return d.line(nil)
}

func joined(operations []Description) string {
	texts := make([]string, len(operations))
	for i := range operations {
		texts[i] = operations[i].String()
	}
	return "[" + strings.Join(texts, ", ") + "]"
}

// line is all but the changes.
func (d Description) line(resolver NameResolver) string {
	what, at := containerName(resolver, d.ContainerID, d.ContainerName), orIDs(resolver).MachineName(d.MachineID)
	if resolver == nil && d.machineName != "" {
		at = d.machineName
	}
	line := "container " + what + " on " + at
	switch {
	case d.Operation == "pull":
		line = "+ pull image " + d.Image + " on " + at
	case d.Operation == "create-volume":
		line = "+ create volume " + d.Volume + " on " + at
	case d.Operation == "pre-deploy":
		line = "> run pre-deploy hook on " + at + ": " + strings.Join(d.Command, " ")
	case d.Operation == "job" && d.Running:
		line = "> wait for the job of " + line
	case d.Operation == "job":
		line = "> run the job of image " + d.Image + " in " + line
	case d.Operation == "run":
		line = "+ run container " + what + " of image " + d.Image + " on " + at
	case d.Running:
		line = "+ wait for " + line
	case d.Operation == "start":
		line = "+ start " + line
	case d.Operation == "update":
		line = "~ update " + line + " in place"
	case d.Operation == "replace":
		line = fmt.Sprintf("~ replace container %s by %s on %s, %s", d.Replaced(resolver), what, at, d.Order)
	default:
		line = "- " + d.Operation + " " + line
	}
	if d.Reason != "" {
		line += ": " + d.Reason
	}
	return line
}

// Replaced names the containers whose place another one takes, and their machines where it is elsewhere.
func (d Description) Replaced(resolver NameResolver) string {
	old := make([]string, len(d.Replaces))
	for i, r := range d.Replaces {
		old[i] = containerName(resolver, r.ContainerID, r.ContainerName)
		if r.MachineID != d.MachineID {
			old[i] += " on " + orIDs(resolver).MachineName(r.MachineID)
		}
	}
	return strings.Join(old, " and ")
}

// containerName returns the name of a container, by a resolver that may know a better one.
func containerName(resolver NameResolver, id, name string) string {
	if id == "" || resolver == nil || resolver.ContainerName(id) == id {
		return name
	}
	return resolver.ContainerName(id)
}

// doing says what goes on while it is under way.
func (d Description) doing(names NameResolver) string {
	at := " on " + names.MachineName(d.MachineID)
	switch d.Operation {
	case "pull":
		return "pulling " + d.Image + at
	case "create-volume":
		return "creating volume " + d.Volume + at
	case "pre-deploy":
		return "running the pre-deploy hook" + at
	case "replace":
		return "replacing " + d.Replaced(names) + " by " + d.ContainerName + at
	}
	verbs := map[string]string{"job": "running job ", "run": "running ", "start": "starting ", "stop": "stopping ", "update": "updating ", "remove": "removing "}
	return verbs[d.Operation] + containerName(names, d.ContainerID, d.ContainerName) + at
}

// rollout shows changes that are those of the operation before only once.
func (d Description) rollout(resolver NameResolver) string {
	var lines []string
	var last []AttributeChange
	for i, wave := range d.Waves {
		for _, op := range wave.Operations {
			line := op.Format(resolver)
			if len(op.Changes) > 0 {
				if slices.Equal(op.Changes, last) {
					line = op.line(resolver) + "\n    the same changes"
				}
				last = op.Changes
			}
			lines = append(lines, line)
		}
		pause := time.Duration(wave.PauseSeconds * float64(time.Second))
		switch {
		case pause > 0 && wave.Verify:
			lines = append(lines, fmt.Sprintf("  wait %s, then look whether all of them work", pause))
		case wave.Verify:
			lines = append(lines, "  look whether all of them work")
		case pause > 0:
			lines = append(lines, fmt.Sprintf("  wait %s", pause))
		case i < len(d.Waves)-1:
			lines = append(lines, "  then")
		}
	}
	return strings.Join(append(lines, "  "+d.policy()), "\n")
}

// policy says what happens when containers fail.
func (d Description) policy() string {
	when := "if one fails"
	if d.MaxFailurePercent > 0 {
		when = fmt.Sprintf("if more than %d%% fail", d.MaxFailurePercent)
	}
	switch d.FailureAction {
	case api.FailureContinue:
		return when + ", go on with the others"
	case api.FailureRollback:
		return when + ", undo all of this"
	}
	return when + ", stop there"
}

// summary says how many containers are run, started and so on.
func (d Description) summary() string {
	counts := map[string]int{}
	for _, leaf := range d.Leaves() {
		counts[leaf.Operation] += max(1, len(leaf.Replaces))
	}
	var text string
	if counts["job"] > 0 {
		text = ", the job to run"
	}
	for _, verb := range []string{"run", "start", "update", "replace", "stop", "remove"} {
		if counts[verb] > 0 {
			text += fmt.Sprintf(", %d to %s", counts[verb], verb)
		}
	}
	if text == "" {
		return "no container changes"
	}
	return text[2:]
}
