package serviceset

import "github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"

// Input is all that [Resolve] looks at. None of it is changed, and results may share parts of it.
type Input struct {
	// Owner is whose services are resolved.
	Owner Owner
	// Others are the other owners with services on the same cluster, in any order. An owner that is being deleted is listed
	// without services, as long as it has a ServiceSet.
	Others []Owner
	// Templates and Chains are the ServiceTemplates and ServiceTemplateChains of the ServiceSet's namespace, by name.
	Templates map[string]*v1alpha1.ServiceTemplate
	Chains    map[string]*v1alpha1.ServiceTemplateChain
}

// Resolution is what one owner's ServiceSet should have now.
type Resolution struct {
	// Services are what the ServiceSet should have, by key: services whose dependencies are ready, each in the version that it
	// should have now, and what is in the set and stays there as it is.
	Services []v1alpha1.ServiceWithValues
	// Removing are the services that are on their way out, by key.
	Removing []v1alpha1.ServiceRemoval
	// Decisions say what becomes of each service, and why, by key. Services that are being removed are among them.
	Decisions []Decision
}

// Waiting tells whether anything will change by itself: steps that were taken or will be.
func (r *Resolution) Waiting() bool {
	for i := range r.Decisions {
		switch r.Decisions[i].Reason {
		case v1alpha1.ReasonStepping, v1alpha1.ReasonInFlight, v1alpha1.ReasonWaiting, v1alpha1.ReasonRemoving:
			return true
		}
	}
	return false
}

// Blocked returns the decisions on services that a person has to see to.
func (r *Resolution) Blocked() []Decision {
	var blocked []Decision
	for i := range r.Decisions {
		if r.Decisions[i].Blocked() {
			blocked = append(blocked, r.Decisions[i])
		}
	}
	return blocked
}
