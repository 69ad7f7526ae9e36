package plan

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"
)

// Event is the event of a reconciliation.
type Event string

// The events.
const (
	// UpdateEvent is for an object that was created or changed, or may have been.
	UpdateEvent Event = "update"
	// DeleteEvent is for an object that is being deleted.
	DeleteEvent Event = "delete"
)

// Outcome is the outcome of planning.
type Outcome string

// The outcomes.
const (
	// Planned: every resource returned its changes.
	Planned Outcome = "planned"
	// Canceled: a resource cancelled the reconciliation; later ones would not run.
	Canceled Outcome = "canceled"
	// Failed: something failed, and the rest is unknown.
	Failed Outcome = "failed"
	// Ignored: the object would be ignored: it is paused, no resource set handles it, or only
	// finalizers of others hold it.
	Ignored Outcome = "ignored"
)

// Plan is what one reconciliation of one object would change.
type Plan struct {
	// Framework is the name of the framework. It is empty outside a framework.
	Framework string `json:"framework,omitempty"`
	// Object is the object that is reconciled.
	Object Object `json:"object"`
	// Event is the event of the reconciliation.
	Event Event `json:"event"`
	// ResourceSet is the name of the resource set that handles the object. It is empty outside a
	// framework.
	ResourceSet string `json:"resourceSet,omitempty"`
	// Outcome is the outcome of planning.
	Outcome Outcome `json:"outcome"`
	// Reason says in words why the outcome is not Planned.
	Reason string `json:"reason,omitempty"`
	// Resources are the resources in their order, including resources that were not reached.
	Resources []Resource `json:"resources,omitempty"`
}

// Object names an object: the reconciled one, or one that changes.
type Object struct {
	// APIVersion and Kind are empty for objects that are not Kubernetes objects and have no kind.
	APIVersion string    `json:"apiVersion,omitempty"`
	Kind       string    `json:"kind,omitempty"`
	Namespace  string    `json:"namespace,omitempty"`
	Name       string    `json:"name"`
	UID        types.UID `json:"uid,omitempty"`
	// Version is the resource version, revision or the like of the planned state.
	Version string `json:"version,omitempty"`
}

// String returns the object in a form for people, such as "ConfigMap default/home".
func (o Object) String() string {
	name := o.Name
	if o.Namespace != "" {
		name = o.Namespace + "/" + o.Name
	}
	switch {
	case o.Kind == "":
		return name
	case name == "":
		return o.Kind
	}
	return o.Kind + " " + name
}

// Resource has the changes of one resource.
type Resource struct {
	// Name is the name of the resource.
	Name string `json:"name"`
	// Changes are in the order in which they would be applied. They are empty if there is nothing
	// to do.
	Changes []Change `json:"changes,omitempty"`
	// Notes say in words what does not change, and why. They are for people: Equal ignores them.
	Notes []string `json:"notes,omitempty"`
	// Opaque is true for a resource that would run but can't predict its changes.
	Opaque bool `json:"opaque,omitempty"`
	// Skipped says why the resource would not run, or not completely.
	Skipped string `json:"skipped,omitempty"`
	// Error is the error of computing the changes. If there are Changes as well, they concern other
	// things, and would be applied.
	Error string `json:"error,omitempty"`
	// Verdicts are the decisions of guards about the changes. Equal ignores them: they depend on
	// more than the plan.
	Verdicts []GuardVerdict `json:"verdicts,omitempty"`
}

// Action is the kind of a change.
type Action string

// The actions.
const (
	Create Action = "create"
	Update Action = "update"
	Delete Action = "delete"
	// Unknown is what guards get for a resource that can't predict its changes. It is in no plan.
	Unknown Action = "unknown"
)

// Change is the change of one thing.
type Change struct {
	// Action is the kind of the change.
	Action Action `json:"action"`
	// Object is the object that changes.
	Object Object `json:"object"`
	// Labels and Annotations are those of the object that changes, if it is a Kubernetes object: as
	// it is, or in a Create as it will be. Annotations that may repeat the values of a Secret are
	// left out. They are for guards: Equal ignores them.
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
	// Fields are the fields that change, sorted by path. A Create has all set fields, a Delete has
	// none.
	Fields []FieldChange `json:"fields,omitempty"`
	// Description describes the change in words, if fields can't.
	Description string `json:"description,omitempty"`
}

// Counts are the numbers of things that would be created, updated and deleted.
type Counts struct {
	Create int `json:"create"`
	Update int `json:"update"`
	Delete int `json:"delete"`
}

// Counts counts the changes of all resources.
func (p *Plan) Counts() Counts {
	var n Counts
	for _, r := range p.Resources {
		for _, c := range r.Changes {
			switch c.Action {
			case Create:
				n.Create++
			case Update:
				n.Update++
			case Delete:
				n.Delete++
			}
		}
	}
	return n
}

// Opaque returns the names of the resources that would run but can't predict their changes, in
// their order.
func (p *Plan) Opaque() []string {
	var names []string
	for _, r := range p.Resources {
		if r.Opaque {
			names = append(names, r.Name)
		}
	}
	return names
}

// MayChange reports whether there is anything to do, or a resource that can't predict its changes.
func (p *Plan) MayChange() bool { return p.Counts().Any() || len(p.Opaque()) > 0 }

// Add returns the sum of both.
func (n Counts) Add(m Counts) Counts {
	return Counts{n.Create + m.Create, n.Update + m.Update, n.Delete + m.Delete}
}

// Any reports whether there is anything to do.
func (n Counts) Any() bool { return n != Counts{} }

// String returns the counts as a sentence without a full stop.
func (n Counts) String() string {
	return fmt.Sprintf("%d to create, %d to update, %d to delete", n.Create, n.Update, n.Delete)
}
