package deployment

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/operatorkit/operatorkit/resource/deployment/api"
	"github.com/operatorkit/operatorkit/resource/deployment/scheduler"
)

// Plan is what brings a service to its specification. One without operations says that everything is as it should be, as far as can be
// seen.
type Plan struct {
	ServiceID   string
	ServiceName string
	// Strategy is the type of the strategy that made it.
	Strategy string
	SequenceOperation
	// Notes say what stays as it is, and why, such as what waits for a machine to be seen again.
	Notes []string
	// TakenOver says which containers carry a former name of the operator, the framework or the resource, because a container's labels
	// stay what they are. They count as all others do: none is replaced for that.
	TakenOver []string
	// Undrained says what stays on machines that are drained, and why there is no place elsewhere.
	Undrained []string
	// Over says which containers have failed and are not started again, because their restart policy leaves them so.
	Over []string
	// Completed says of a job that it has completed.
	Completed bool
	// Report says of each machine whether it could take another container, and why not.
	Report scheduler.Report
	// Basis is what it depends on. Run refuses a plan when that has changed; a plan without it is not refused.
	Basis *scheduler.Basis

	names NameResolver
	// spec is the specification, resolved.
	spec api.ServiceSpec
}

// Empty tells whether there is nothing to do.
func (p *Plan) Empty() bool { return len(p.Operations) == 0 }

// Machines returns the IDs of the machines on which something is done, each once.
func (p *Plan) Machines() []string {
	seen := map[string]bool{}
	for _, op := range leaves(p.Operations) {
		seen[op.machine()] = true
		if replace, ok := op.(*ReplaceContainerOperation); ok {
			for i := range replace.Old {
				seen[replace.Old[i].MachineID] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// Format returns the plan for people. Without a resolver it shows the names that were there when it was made.
func (p *Plan) Format(resolver NameResolver) string {
	if resolver == nil {
		resolver = p.names
	}
	var b strings.Builder
	b.WriteString("service " + p.ServiceName + ", " + p.Strategy + ": " + p.Describe().summary() + "\n")
	if !p.Empty() {
		b.WriteString(p.SequenceOperation.Format(resolver) + "\n")
	}
	for _, note := range slices.Concat(p.Notes, p.TakenOver, p.Undrained, p.Over) {
		b.WriteString("! " + note + "\n")
	}
	return b.String()
}

// String returns the plan in one line.
func (p *Plan) String() string {
	return "service " + p.ServiceName + ", " + p.Strategy + ": " + p.SequenceOperation.String()
}

// MarshalJSON returns the plan for programs.
func (p *Plan) MarshalJSON() ([]byte, error) {
	var fingerprint string
	if p.Basis != nil {
		fingerprint = p.Basis.Fingerprint()
	}
	return json.Marshal(struct {
		ServiceID   string           `json:"serviceID"`
		ServiceName string           `json:"serviceName"`
		Strategy    string           `json:"strategy"`
		Operations  []Description    `json:"operations"`
		Notes       []string         `json:"notes,omitempty"`
		TakenOver   []string         `json:"takenOver,omitempty"`
		Undrained   []string         `json:"undrained,omitempty"`
		Over        []string         `json:"over,omitempty"`
		Completed   bool             `json:"completed,omitempty"`
		Report      scheduler.Report `json:"report,omitempty"`
		Fingerprint string           `json:"fingerprint,omitempty"`
	}{p.ServiceID, p.ServiceName, p.Strategy, descriptions(p.Operations), p.Notes, p.TakenOver, p.Undrained, p.Over, p.Completed, p.Report, fingerprint})
}
