package api

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/operatorkit/operatorkit/framework/identity"
)

// DefaultResource is the name of the resource that things are of which were put onto machines outside of a named one.
const DefaultResource = "containers"

// Owner says whose something on a machine is. The zero value is nobody who is known.
type Owner struct {
	Operator  string `json:"operator,omitempty"`
	Framework string `json:"framework,omitempty"`
	Resource  string `json:"resource,omitempty"`
	// Service is the name of the service of a container.
	Service string `json:"service,omitempty"`
	// Cluster is the cluster, if it is another one than that which is looked at.
	Cluster string `json:"cluster,omitempty"`
}

// String returns the names as they stand in errors and plans.
func (o Owner) String() string {
	if o.Mark() == (identity.Mark{}) {
		return "nobody who is known"
	}
	var parts []string
	if o.Service != "" {
		parts = append(parts, fmt.Sprintf("service %q", o.Service))
	}
	if o.Cluster != "" {
		parts = append(parts, fmt.Sprintf("cluster %q", o.Cluster))
	}
	return strings.Join(append(parts, o.Mark().String()), " of ")
}

// Mark returns the mark, which is that of a resource.
func (o Owner) Mark() identity.Mark {
	return identity.Mark{Operator: o.Operator, Framework: o.Framework, Resource: o.Resource}
}

// Ownership is whose work something is. What carries one of its marks is its own; everything else is another's, and is neither
// changed nor taken away.
// +kubebuilder:object:generate=false
type Ownership struct {
	// Mark is on what it makes.
	Mark identity.Mark
	// Former are marks that it had before. What carries one of them is its own for as long as it lives.
	Former []identity.Mark
}

// worker is what WithResource puts into a context.
type worker struct {
	resource string
	former   []string
}

type workerKey struct{}

// WithResource returns a context for the work of a resource that had the former names before.
func WithResource(ctx context.Context, name string, formerNames []string) context.Context {
	return context.WithValue(ctx, workerKey{}, worker{name, formerNames})
}

// OwnershipOf returns whose the work is that ctx belongs to: the operator and the framework are those of identity.From, the resource
// that of WithResource, or else DefaultResource.
func OwnershipOf(ctx context.Context) Ownership {
	w, _ := ctx.Value(workerKey{}).(worker)
	w.resource = cmp.Or(w.resource, DefaultResource)
	scope := identity.From(ctx)
	return Ownership{Mark: scope.Mark(w.resource), Former: scope.Former(w.resource, w.former)}
}

// Owner returns the owner of what it makes for a service.
func (o Ownership) Owner(service string) Owner {
	return Owner{Operator: o.Mark.Operator, Framework: o.Mark.Framework, Resource: o.Mark.Resource, Service: service}
}

// Owns tells whether something is its own.
func (o Ownership) Owns(owner Owner) bool {
	return owner.Cluster == "" && (owner.Mark() == o.Mark || o.TakesOver(owner))
}

// TakesOver tells whether something is its own by a former mark.
func (o Ownership) TakesOver(owner Owner) bool {
	return owner.Cluster == "" && slices.Contains(o.Former, owner.Mark())
}

// Shares tells whether something that the resources of a framework share, such as a volume, is its own, or nobody's.
func (o Ownership) Shares(owner Owner) bool {
	if owner == (Owner{}) {
		return true
	}
	return owner.Cluster == "" && slices.ContainsFunc(append([]identity.Mark{o.Mark}, o.Former...), func(m identity.Mark) bool {
		return m.Operator == owner.Operator && m.Framework == owner.Framework
	})
}
