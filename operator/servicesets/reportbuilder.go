package servicesets

import (
	"cmp"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/internal/cut"
	"github.com/operatorkit/operatorkit/resource/serviceset"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// maxFailureMessage is how much of what a state manager says about a failure is told on, in bytes.
const maxFailureMessage = 1024

// unresolved is what a service says about itself when nothing can be resolved: the whole of it stands once, for all.
const unresolved = "can't be resolved together with the other services: see the condition Blocked of their owner"

// reportBuilder adds services to a report.
type reportBuilder struct {
	*report
	operation *serviceset.Operation // nil if nothing was resolved
	states    map[client.ObjectKey]*v1alpha1.ServiceState
	listed    map[client.ObjectKey]*v1alpha1.Service
	entered   map[client.ObjectKey]*v1alpha1.ServiceWithValues
	added     map[client.ObjectKey]bool
}

func newReportBuilder(r *report, states map[client.ObjectKey]*v1alpha1.ServiceState) *reportBuilder {
	b := &reportBuilder{
		report: r, states: states, added: map[client.ObjectKey]bool{},
		listed:  make(map[client.ObjectKey]*v1alpha1.Service, len(r.owner.Services)),
		entered: make(map[client.ObjectKey]*v1alpha1.ServiceWithValues, len(r.entries)),
	}
	for i := range r.owner.Services {
		s := &r.owner.Services[i]
		b.listed[s.Key()] = s
	}
	for i := range r.entries {
		s := &r.entries[i]
		b.entered[s.Key()] = s
	}
	return b
}

// add adds a service, unless it is there already.
func (b *reportBuilder) add(s serviceReport) {
	if b.added[s.key] {
		return
	}
	b.added[s.key] = true
	b.services = append(b.services, s)
}

// start begins a report on a service with what is known of it.
func (b *reportBuilder) start(key client.ObjectKey) serviceReport {
	s := serviceReport{key: key, state: v1alpha1.ServiceState{Name: key.Name, Namespace: key.Namespace, State: v1alpha1.ServiceStatePending}}
	if known := b.states[key]; known != nil {
		s.state = *known.DeepCopy()
		s.state.Namespace = key.Namespace
		s.state.FailureMessage = cut.Text(s.state.FailureMessage, maxFailureMessage)
	}
	entry, service := b.entered[key], b.listed[key]
	if entry != nil {
		s.dependsOn = entry.DependsOn
		if s.state.Template == "" {
			s.state.Template, s.state.Version = entry.Template, entry.Version
		}
	}
	if service != nil {
		s.desired = !service.Disable
		s.dependsOn = service.DependsOn
	}
	switch {
	case s.state.LastDeployed != nil:
		s.versions[0] = s.state.LastDeployed.ServiceVersion
	case s.state.State == v1alpha1.ServiceStateDeployed:
		s.versions[0] = v1alpha1.ServiceVersion{Template: s.state.Template, Version: s.state.Version}
	}
	return s
}

// addDecision adds a service of which something was decided.
func (b *reportBuilder) addDecision(d *serviceset.Decision) {
	s := b.start(d.Service)
	s.reason, s.message, s.waitsFor, s.blocked = d.Reason, d.Message, d.WaitsFor, d.Blocked()
	s.versions[1], s.versions[2] = d.To, d.Desired
	entry := b.entered[d.Service]
	switch d.Reason {
	case v1alpha1.ReasonStepping, v1alpha1.ReasonInFlight:
		s.reason, s.message = v1alpha1.ReasonInFlight, label(d.To)+" is on its way"
		if entry != nil && entry.UpgradingTo != nil {
			s.reason, s.message = v1alpha1.ReasonStepping, s.message+", a step to "+label(*entry.UpgradingTo)
		}
	case v1alpha1.ReasonWaiting:
		s.message = "waits for " + strings.Join(names(d.WaitsFor), ", ") + because(d)
	case v1alpha1.ReasonRemoving:
		b.addRemoval(s, because(d))
		return
	case v1alpha1.ReasonOverridden:
		s.desired = false
	case v1alpha1.ReasonDisabled:
		s.message = "is disabled and left as it is"
		if entry == nil {
			s.message = "is disabled and not installed"
		}
		s.ready = entry != nil && s.state.State == entry.Done()
	case v1alpha1.ReasonDeployed:
		s.message, s.ready = cmp.Or(d.Message, label(d.To)+" is deployed"), true
	}
	if (s.ready || s.reason == v1alpha1.ReasonFailed || s.reason == v1alpha1.ReasonStepFailed) && entry != nil && !b.operation.Observed(entry) {
		s.reason, s.message = v1alpha1.ReasonInFlight, label(d.To)+" is on its way"
		s.ready, s.blocked = false, false
	}
	b.add(s)
}

// because says why a service waits if it does not say so itself.
func because(d *serviceset.Decision) string {
	if d.Because == "" {
		return ""
	}
	return " (" + d.Because + ")"
}

// addRemoval adds a service that is on its way out.
func (b *reportBuilder) addRemoval(s serviceReport, because string) {
	s.reason, s.desired = v1alpha1.ReasonRemoving, false
	s.message = "is being removed"
	if len(s.waitsFor) > 0 {
		s.message = "is removed after " + strings.Join(names(s.waitsFor), ", ") + because
	} else if b.states[s.key] == nil {
		s.state.State = v1alpha1.ServiceStateDeleting
	}
	b.add(s)
}

// addRemovals adds services that were taken out of the ServiceSet before.
func (b *reportBuilder) addRemovals(removing []v1alpha1.ServiceRemoval) {
	for i := range removing {
		s := b.start(removing[i].Key())
		s.dependsOn = removing[i].DependsOn
		b.addRemoval(s, "")
	}
}

// addLeaving adds the services of a ServiceSet that is being deleted.
func (b *reportBuilder) addLeaving() {
	for key := range b.entered {
		b.addRemoval(b.start(key), "")
	}
}

// addUnresolved adds the services of an owner whose services contradict each other. What runs already is told by what can be
// known without resolving.
func (b *reportBuilder) addUnresolved(f *fault) {
	for key, service := range b.listed {
		s := b.start(key)
		s.reason, s.message, s.blocked = f.reason, unresolved, true
		s.versions[2] = v1alpha1.ServiceVersion{Template: service.Template, Version: service.Version}
		if entry := b.entered[key]; entry != nil {
			s.versions[1] = v1alpha1.ServiceVersion{Template: entry.Template, Version: entry.Version}
			s.ready = s.state.State == entry.Done() && s.state.Template == entry.Template && s.state.Version == entry.Version &&
				(service.Template == "" || service.Template == entry.Template) && (service.Version == "" || service.Version == entry.Version)
		}
		b.add(s)
	}
}
