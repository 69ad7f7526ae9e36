package serviceset

import (
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// Decision says what becomes of one service in this reconciliation, and why.
type Decision struct {
	// Service is the service.
	Service client.ObjectKey
	// Reason is one of the reasons of package v1alpha1: v1alpha1.ReasonDeployed and so on.
	Reason string
	// From is what is in the ServiceSet before, empty for a service that is not in it.
	From v1alpha1.ServiceVersion
	// To is what is in the ServiceSet after, empty for a service that is not in it.
	To v1alpha1.ServiceVersion
	// Desired is what the owner wants, empty for a service that is being removed.
	Desired v1alpha1.ServiceVersion
	// Steps is how many steps it takes from From to Desired, the one to To included. It is 0 where no step is taken.
	Steps int
	// WaitsFor are the services that have to be ready, or gone, before this one is touched: those it depends on directly,
	// or, for one that is being removed, those that depend on it.
	WaitsFor []client.ObjectKey
	// Because says which MultiClusterServices depend on each other, if that is why some of WaitsFor are there.
	Because string
	// Message says the rest in words, for a condition or a plan.
	Message string
}

// Blocked tells whether a person has to act before the service can become what is desired.
func (d *Decision) Blocked() bool {
	switch d.Reason {
	case v1alpha1.ReasonDeployed, v1alpha1.ReasonStepping, v1alpha1.ReasonInFlight, v1alpha1.ReasonWaiting,
		v1alpha1.ReasonRemoving, v1alpha1.ReasonDisabled, v1alpha1.ReasonOverridden:
		return false
	}
	return true
}

// String says the decision on one line, for example "default/cert-manager 1.14.2 → 1.15.0 (step 1 of 3 to 1.17.1)".
func (d *Decision) String() string {
	return d.Service.String() + " " + d.what()
}

func (d *Decision) what() string {
	switch {
	case d.Message != "":
		return d.Message
	case d.Reason == v1alpha1.ReasonStepping && d.From.Template == "":
		return "is installed in version " + label(d.To)
	case d.Reason == v1alpha1.ReasonStepping && d.Steps > 1:
		return fmt.Sprintf("%s (step 1 of %d to %s)", change(d.From, d.To), d.Steps, label(d.Desired))
	case d.Reason == v1alpha1.ReasonStepping:
		return change(d.From, d.To)
	case d.Reason == v1alpha1.ReasonWaiting:
		return "waits for " + joinKeys(d.WaitsFor, ", ") + inBrackets(d.Because)
	case d.Reason == v1alpha1.ReasonRemoving && len(d.WaitsFor) > 0:
		return "is removed after " + joinKeys(d.WaitsFor, ", ") + inBrackets(d.Because)
	case d.Reason == v1alpha1.ReasonRemoving:
		return "is removed"
	case d.Reason == v1alpha1.ReasonDisabled && d.To.Template == "":
		return "is disabled and not installed"
	case d.Reason == v1alpha1.ReasonDisabled:
		return "is disabled and left as it is"
	case d.Reason == v1alpha1.ReasonInFlight:
		return label(d.To) + " is on its way"
	}
	return label(d.To) + " is deployed"
}

func inBrackets(text string) string {
	if text == "" {
		return ""
	}
	return " (" + text + ")"
}

// change says from what to what a service goes. Where only the template's name changes, it says the names.
func change(from, to v1alpha1.ServiceVersion) string {
	if label(from) == label(to) {
		return from.Template + " → " + to.Template
	}
	return label(from) + " → " + label(to)
}

// label returns what a person calls a version.
func label(v v1alpha1.ServiceVersion) string {
	if v.Version == "" {
		return v.Template
	}
	return v.Version
}
