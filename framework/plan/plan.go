package plan

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"
)

// Event is what a reconciliation is about.
type Event string

// The events.
const (
	// UpdateEvent is an object that is to stay: it was created, or changed, or may have.
	UpdateEvent Event = "update"
	// DeleteEvent is an object that is being deleted.
	DeleteEvent Event = "delete"
)

// Outcome is how far a plan got.
type Outcome string

// The outcomes.
const (
	// Planned: every resource told what it would change.
	Planned Outcome = "planned"
	// Canceled: a resource cancelled the reconciliation; those after it would not run.
	Canceled Outcome = "canceled"
	// Failed: something went wrong, and what comes after it is not known.
	Failed Outcome = "failed"
	// Ignored: the object would be left alone: it is paused, no resource set handles it, or somebody else's
	// finalizers are all that holds it.
	Ignored Outcome = "ignored"
)

// Plan is what one reconciliation of one object would change.
type Plan struct {
	// Framework is the name of the framework, and empty outside of one.
	Framework string `json:"framework,omitempty"`
	// Object is the object that is reconciled.
	Object Object `json:"object"`
	// Event is what the reconciliation is about.
	Event Event `json:"event"`
	// ResourceSet is the name of the resource set that handles the object, and empty outside of a framework.
	ResourceSet string `json:"resourceSet,omitempty"`
	// Outcome is how far the plan got.
	Outcome Outcome `json:"outcome"`
	// Reason says in words why the outcome is not Planned.
	Reason string `json:"reason,omitempty"`
	// Resources are the resources in their order, those that were not reached too.
	Resources []Resource `json:"resources,omitempty"`
}

// Object names an object: the one that is reconciled, or one that changes.
type Object struct {
	// APIVersion and Kind are empty for what is not a Kubernetes object and has no kind of its own.
	APIVersion string    `json:"apiVersion,omitempty"`
	Kind       string    `json:"kind,omitempty"`
	Namespace  string    `json:"namespace,omitempty"`
	Name       string    `json:"name"`
	UID        types.UID `json:"uid,omitempty"`
	// Version is the resource version, revision or the like of the state that the plan is for.
	Version string `json:"version,omitempty"`
}

// String returns the object as people write it, such as "ConfigMap default/home".
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

// Resource is what one resource would change.
type Resource struct {
	// Name is the name of the resource.
	Name string `json:"name"`
	// Changes are in the order in which they would be applied. They are empty when there is nothing to do.
	Changes []Change `json:"changes,omitempty"`
	// Notes say in words what stays as it is, and why. They are for people: plans with other notes are the same plan.
	Notes []string `json:"notes,omitempty"`
	// Opaque is true for a resource that would run but can't tell what it would do.
	Opaque bool `json:"opaque,omitempty"`
	// Skipped says why the resource would not run, or not to its end.
	Skipped string `json:"skipped,omitempty"`
	// Error is what went wrong while the changes were computed. Changes beside it concern other things, and would be applied.
	Error string `json:"error,omitempty"`
}

// Action is what a change does.
type Action string

// The actions.
const (
	Create Action = "create"
	Update Action = "update"
	Delete Action = "delete"
)

// Change is what happens to one thing.
type Change struct {
	// Action is what happens.
	Action Action `json:"action"`
	// Object is what it happens to.
	Object Object `json:"object"`
	// Fields are the fields that change, sorted by path. For Create they are all that is set, for Delete there are none.
	Fields []FieldChange `json:"fields,omitempty"`
	// Description says in words what happens, for changes that fields don't tell.
	Description string `json:"description,omitempty"`
}

// Counts are how many things would be created, updated and deleted.
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

// Opaque returns the names of the resources that would run but can't tell what they would do, in their order.
func (p *Plan) Opaque() []string {
	var names []string
	for _, r := range p.Resources {
		if r.Opaque {
			names = append(names, r.Name)
		}
	}
	return names
}

// MayChange tells whether there is anything to do, or a resource that can't tell whether there is.
func (p *Plan) MayChange() bool { return p.Counts().Any() || len(p.Opaque()) > 0 }

// Add returns the sum of both.
func (n Counts) Add(m Counts) Counts {
	return Counts{n.Create + m.Create, n.Update + m.Update, n.Delete + m.Delete}
}

// Any tells whether there is anything to do.
func (n Counts) Any() bool { return n != Counts{} }

// String returns the counts as a sentence without a full stop.
func (n Counts) String() string {
	return fmt.Sprintf("%d to create, %d to update, %d to delete", n.Create, n.Update, n.Delete)
}
