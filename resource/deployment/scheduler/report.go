package scheduler

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Report says of each machine, by name, whether a container of a service could be put there, and if not why.
type Report []MachineReport

// MachineReport is what a report says of one machine.
type MachineReport struct {
	MachineID   string `json:"machineID"`
	MachineName string `json:"machineName"`
	Eligible    bool   `json:"eligible"`
	// Reasons are all that speaks against it.
	Reasons []string `json:"reasons,omitempty"`
}

// Report says how things stand, with what was taken so far.
func (s *Scheduler) Report() Report {
	report := make(Report, len(s.candidates))
	for i, c := range s.candidates {
		reasons := slices.Clone(c.reasons)
		if c.closed != "" {
			reasons = append(reasons, c.closed)
		}
		if s.full(c) {
			reasons = append(reasons, "a container of the service has the port "+s.spec.HostPorts()[0].String()+" already")
		}
		if s.elsewhere(c) {
			reasons = append(reasons, fmt.Sprintf("volume %s is on %s", names(s.newVolumes), s.pinned.machine.Name))
		}
		report[i] = MachineReport{MachineID: c.machine.ID, MachineName: c.machine.Name, Eligible: len(reasons) == 0, Reasons: reasons}
	}
	return report
}

// Reasons says in one line why machines are not eligible, those with the same reasons together.
func (r Report) Reasons() string {
	if len(r) == 0 {
		return "the cluster has no machines"
	}
	var order []string
	machines := map[string][]string{}
	for _, m := range r {
		if m.Eligible {
			continue
		}
		why := strings.Join(m.Reasons, ", ")
		if machines[why] == nil {
			order = append(order, why)
		}
		machines[why] = append(machines[why], m.MachineName)
	}
	parts := make([]string, len(order))
	for i, why := range order {
		parts[i] = names(machines[why]) + ": " + why
	}
	return strings.Join(parts, "; ")
}

// String has a line for each machine.
func (r Report) String() string {
	var b strings.Builder
	for _, m := range r {
		verdict := "eligible"
		if !m.Eligible {
			verdict = strings.Join(m.Reasons, ", ")
		}
		_, _ = fmt.Fprintf(&b, "%s: %s\n", m.MachineName, verdict)
	}
	return b.String()
}

// names lists at most three.
func names(all []string) string {
	if len(all) <= 3 {
		return strings.Join(all, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(all[:3], ", "), len(all)-3)
}

func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }
