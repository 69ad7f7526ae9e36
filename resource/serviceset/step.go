package serviceset

import (
	"fmt"

	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// position is a service on its way: what is desired, what is in the ServiceSet, and what the cluster says.
type position struct {
	desired *v1alpha1.Service
	goal    v1alpha1.ServiceVersion // what that stands for
	stored  *v1alpha1.ServiceWithValues
	state   *v1alpha1.ServiceState
	unseen  bool // the state is not about what is stored
	ways    ways
}

// ways knows the ways between the templates of a service.
type ways interface {
	// installable returns why a service can't be installed in a version, nil if it can.
	installable(s *v1alpha1.Service, goal v1alpha1.ServiceVersion) *fault
	// way returns the next template on the way of a service from one version to another, and how many steps are left with
	// it, or why there is no way.
	way(s *v1alpha1.Service, from, goal v1alpha1.ServiceVersion) (next v1alpha1.AvailableUpgrade, steps int, why *fault)
}

// fault is why something can't be done.
type fault struct {
	reason  string // of package v1alpha1
	message string
}

// step returns what the ServiceSet should have of a service whose dependencies are ready. Where it should have nothing, the
// decision's To is empty.
//
//   - A service that is not there is installed in the desired version.
//   - One that is in flight stays at the version of the ServiceSet, with new values.
//   - One that failed may go back to what it last had Deployed, and on where something else is desired than when the step
//     was taken; a step that failed on a way that is still desired is not skipped.
//   - Any other takes the next step.
func (p *position) step() (v1alpha1.ServiceWithValues, Decision) {
	goal := p.goal
	from := p.from()
	d := Decision{Service: p.desired.Key(), From: from, Desired: goal}
	switch {
	case from.Template == "":
		return p.install(goal, &d)
	case equalServiceVersions(from, goal):
		return p.arrived(goal, &d)
	case !p.settled(from):
		return p.keep(from, &d, v1alpha1.ReasonInFlight, "")
	case p.failed() && p.lastDeployed(goal):
		return p.take(goal, &d)
	case p.desired.TemplateChain == "", from.Template == goal.Template:
		return p.take(goal, &d)
	case p.failed() && p.sameWay(goal):
		return p.keep(from, &d, v1alpha1.ReasonStepFailed,
			fmt.Sprintf("step %s to %s failed%s", label(from), label(goal), p.failure()))
	}
	return p.advance(from, goal, &d)
}

// install puts a service there that is not.
func (p *position) install(goal v1alpha1.ServiceVersion, d *Decision) (v1alpha1.ServiceWithValues, Decision) {
	if why := p.ways.installable(p.desired, goal); why != nil {
		d.Reason, d.Message = why.reason, why.message
		return v1alpha1.ServiceWithValues{}, *d
	}
	return p.take(goal, d)
}

// advance takes the next step along the chain.
func (p *position) advance(from, goal v1alpha1.ServiceVersion, d *Decision) (v1alpha1.ServiceWithValues, Decision) {
	next, steps, why := p.ways.way(p.desired, from, goal)
	if why != nil {
		return p.keep(from, d, why.reason, why.message)
	}
	d.Reason, d.Steps, d.To = v1alpha1.ReasonStepping, steps, goal
	if next.Name == goal.Template {
		return entry(p.desired, goal, nil), *d
	}
	d.To = v1alpha1.ServiceVersion{Template: next.Name, Version: next.Version}
	if d.To.Version == "" {
		d.To.Version = next.Name
	}
	return entry(p.desired, d.To, &goal), *d
}

// take goes to the desired version at once.
func (p *position) take(goal v1alpha1.ServiceVersion, d *Decision) (v1alpha1.ServiceWithValues, Decision) {
	d.Reason, d.Steps, d.To = v1alpha1.ReasonStepping, 1, goal
	return entry(p.desired, goal, nil), *d
}

// arrived keeps a service at the desired version.
func (p *position) arrived(goal v1alpha1.ServiceVersion, d *Decision) (v1alpha1.ServiceWithValues, Decision) {
	d.To = goal
	switch {
	case !p.settled(goal):
		d.Reason = v1alpha1.ReasonInFlight
	case p.failed():
		d.Reason = v1alpha1.ReasonFailed
		d.Message = fmt.Sprintf("%s failed%s", label(goal), p.failure())
	default:
		d.Reason = v1alpha1.ReasonDeployed
		if p.state.State == v1alpha1.ServiceStateDeleted {
			d.Message = label(goal) + " is uninstalled"
		}
	}
	return entry(p.desired, goal, nil), *d
}

// keep stays at a version, with the desired values.
func (p *position) keep(at v1alpha1.ServiceVersion, d *Decision, reason, message string) (v1alpha1.ServiceWithValues, Decision) {
	d.To, d.Reason, d.Message = at, reason, message
	var upgradingTo *v1alpha1.ServiceVersion
	if p.stored != nil {
		upgradingTo = p.stored.UpgradingTo
	}
	return entry(p.desired, at, upgradingTo), *d
}

// from returns where the service is: where the ServiceSet says, or else where the cluster does, for a service that was taken
// out of the list and put back before it was gone.
func (p *position) from() v1alpha1.ServiceVersion {
	if p.stored != nil {
		return versionOf(p.stored)
	}
	if p.state == nil {
		return v1alpha1.ServiceVersion{}
	}
	switch p.state.State {
	case v1alpha1.ServiceStateDeployed, v1alpha1.ServiceStateFailed, v1alpha1.ServiceStateProvisioning:
		return v1alpha1.ServiceVersion{Template: p.state.Template, Version: p.state.Version}
	}
	return v1alpha1.ServiceVersion{}
}

// settled tells whether the state manager is done with a version, well or not.
func (p *position) settled(at v1alpha1.ServiceVersion) bool {
	return !p.unseen && isSettled(at, p.stored, p.state)
}

// isSettled tells whether the state of an entry says that the state manager is done with a version. stored is nil for a service that has no
// entry any more.
func isSettled(at v1alpha1.ServiceVersion, stored *v1alpha1.ServiceWithValues, state *v1alpha1.ServiceState) bool {
	if state == nil || state.State != stored.Done() && state.State != v1alpha1.ServiceStateFailed {
		return false
	}
	reported := v1alpha1.ServiceVersion{Template: state.Template, Version: state.Version}
	if reported.Template == "" {
		reported.Template = at.Template
	}
	return equalServiceVersions(at, reported)
}

// isDone tells whether a version runs, or is gone where that is what its entry asks for.
func isDone(at v1alpha1.ServiceVersion, stored *v1alpha1.ServiceWithValues, state *v1alpha1.ServiceState) bool {
	return isSettled(at, stored, state) && state.State == stored.Done()
}

func (p *position) failed() bool { return p.state.State == v1alpha1.ServiceStateFailed }

func (p *position) lastDeployed(goal v1alpha1.ServiceVersion) bool {
	last := p.state.LastDeployed
	return last != nil && equalServiceVersions(last.ServiceVersion, goal)
}

// sameWay tells whether the version in the ServiceSet is a step to what is desired still.
func (p *position) sameWay(goal v1alpha1.ServiceVersion) bool {
	return p.stored != nil && p.stored.UpgradingTo != nil && equalServiceVersions(*p.stored.UpgradingTo, goal)
}

func (p *position) failure() string {
	if p.state.FailureMessage == "" {
		return ""
	}
	return ": " + p.state.FailureMessage
}

func goalOf(s *v1alpha1.Service) v1alpha1.ServiceVersion {
	return v1alpha1.ServiceVersion{Template: s.Template, Version: s.Version}
}

func versionOf(s *v1alpha1.ServiceWithValues) v1alpha1.ServiceVersion {
	return v1alpha1.ServiceVersion{Template: s.Template, Version: s.Version}
}

// entry returns a service of a ServiceSet in a version, with what is desired otherwise. It shares lists with the service.
func entry(s *v1alpha1.Service, at v1alpha1.ServiceVersion, upgradingTo *v1alpha1.ServiceVersion) v1alpha1.ServiceWithValues {
	return v1alpha1.ServiceWithValues{
		Name:               s.Name,
		Namespace:          s.Key().Namespace,
		Template:           at.Template,
		Version:            at.Version,
		UpgradingTo:        upgradingTo,
		Values:             s.Values,
		ValuesTemplate:     s.ValuesTemplate,
		ValuesFrom:         s.ValuesFrom,
		DependsOn:          s.DependsOn,
		HelmOptions:        s.HelmOptions,
		HelmAction:         s.HelmAction,
		Adopt:              s.Adopt,
		MaxAttempts:        s.MaxAttempts,
		ServiceAccountName: s.ServiceAccountName,
		Patches:            s.Patches,
		HealthCheckExprs:   s.HealthCheckExprs,
		IgnoreDifferences:  s.IgnoreDifferences,
	}
}
