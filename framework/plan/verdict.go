package plan

import (
	"fmt"
	"slices"
	"strings"
)

// ApprovedAnnotation approves changes that a guard holds. It is an annotation of the object that is
// reconciled. Its value is the fingerprint of the changes; commas separate several.
const ApprovedAnnotation = "operatorkit.io/approved"

// maxNamed is how many changes of a verdict are named in a text.
const maxNamed = 5

// GuardVerdict is the decision of a guard about changes of a resource.
type GuardVerdict struct {
	// Guard is the name of the guard.
	Guard string `json:"guard"`
	// Action is what the guard does.
	Action GuardAction `json:"action"`
	// Changes are those that the guard matches. They have only their Action and Object.
	Changes []Change `json:"changes"`
	// Fingerprint identifies the changes for an approval.
	Fingerprint string `json:"fingerprint,omitempty"`
	// Message says why, in words.
	Message string `json:"message,omitempty"`
}

// GuardAction is what a guard does about a change.
type GuardAction string

// The actions of guards.
const (
	// Denied: the resource would fail, and change nothing.
	Denied GuardAction = "deny"
	// Unapproved: nothing would be changed before somebody approves it.
	Unapproved GuardAction = "approve"
	// Warned: the change would be made, with a warning.
	Warned GuardAction = "warn"
	// Limited: the change would be made unless a limit is reached by then.
	Limited GuardAction = "limit"
)

// phrase says what the guard does.
func (v GuardVerdict) phrase() string {
	switch v.Action {
	case Denied:
		return fmt.Sprintf("denied by guard %q", v.Guard)
	case Unapproved:
		return fmt.Sprintf("waits for approval by guard %q, annotate %s=%s", v.Guard, ApprovedAnnotation, v.Fingerprint)
	case Limited:
		return fmt.Sprintf("counts for the limit of guard %q", v.Guard)
	}
	return fmt.Sprintf("warning of guard %q", v.Guard)
}

// About names the changes, five at most.
func (v GuardVerdict) About() string {
	var names []string
	for _, c := range v.Changes[:min(len(v.Changes), maxNamed)] {
		names = append(names, fmt.Sprintf("%s %s", c.Action, c.Object))
	}
	about := strings.Join(names, ", ")
	if more := len(v.Changes) - len(names); more > 0 {
		about += fmt.Sprintf(" and %d more", more)
	}
	return about
}

// String returns the verdict on one line, without escaping.
func (v GuardVerdict) String() string {
	return strings.TrimSuffix(fmt.Sprintf("%s: %s: %s", v.phrase(), v.About(), v.Message), ": ")
}

// Denied reports whether a guard would deny a change.
func (p *Plan) Denied() bool {
	return slices.ContainsFunc(p.Resources, func(r Resource) bool {
		return slices.ContainsFunc(r.Verdicts, func(v GuardVerdict) bool { return v.Action == Denied })
	})
}
