package carrier

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/operatorkit/operatorkit/framework/identity"
)

// Keeper is who puts services onto clusters: a state manager of a framework, at work for the ServiceSets of one management cluster.
// What one keeper has put onto a cluster, no other one changes or takes away.
type Keeper struct {
	// Mark has the operator, the framework and, as its resource, the state manager.
	identity.Mark
	// Origin stands for the management cluster: another one may have the same names.
	Origin string
}

// String returns the keeper as it stands in errors and annotations.
func (k Keeper) String() string {
	return fmt.Sprintf("state manager %q of %s, at work for the management cluster %q",
		k.Resource, identity.Identity{Operator: k.Operator, Framework: k.Framework}, k.Origin)
}

// id is what the values of OwnerLabel begin with.
func (k Keeper) id() string { return k.Hash(k.Origin) + "." }

// Owner is whose a service is: a ServiceSet, and its keeper.
type Owner struct {
	Keeper
	// Namespace, Name and UID are those of the ServiceSet.
	Namespace, Name string
	UID             types.UID
}

// ID returns what stands for an owner in OwnerLabel: a hash of its keeper, a dot, and SetID.
func (o Owner) ID() string { return o.id() + SetID(o.Namespace, o.Name) }

// String returns the owner as it stands in errors and annotations.
func (o Owner) String() string {
	return fmt.Sprintf("ServiceSet %s/%s by %s", o.Namespace, o.Name, o.Keeper)
}

// SetID returns the part of an Owner's ID that stands for a ServiceSet, whoever its keeper is.
func SetID(namespace, name string) string {
	return strings.TrimPrefix(identity.Mark{}.Hash(namespace, name), identity.Form+"-")
}

// SetOf returns the SetID in a value of OwnerLabel.
func SetOf(id string) string {
	_, set, _ := strings.Cut(id, ".")
	return set
}

// Claim is how something on a cluster stands to a service.
type Claim int

// What carries no mark is nobody's. What carries that of the service's owner is its own. What its keeper has put there for another
// ServiceSet, or under a former name, may be taken over. All else is foreign, marks of an unknown form too.
const (
	Unclaimed Claim = iota
	Own
	Inherited
	Foreign
)

// ClaimOn returns how something with these labels stands to the service.
func (s *Service) ClaimOn(labels map[string]string) Claim {
	id, marked := labels[OwnerLabel]
	if !marked && labels[ServiceLabel] == "" {
		return Unclaimed
	}
	if id == s.Owner.ID() {
		return Own
	}
	for _, keeper := range append([]Keeper{s.Owner.Keeper}, s.Former...) {
		if strings.HasPrefix(id, keeper.id()) {
			return Inherited
		}
	}
	return Foreign
}

// Has tells whether something with these labels belongs to the service, as its own or to be taken over.
func (s *Service) Has(labels map[string]string) bool {
	claim := s.ClaimOn(labels)
	return labels[ServiceLabel] == s.Key.Name && labels[ServiceNamespaceLabel] == s.Key.Namespace && (claim == Own || claim == Inherited)
}

// IDs returns the values of OwnerLabel that an owner has and had.
func (o Owner) IDs(former []Keeper) []string {
	ids := []string{o.ID()}
	for _, keeper := range former {
		ids = append(ids, Owner{Keeper: keeper, Namespace: o.Namespace, Name: o.Name}.ID())
	}
	return ids
}

// Whose says whose something is that is marked.
func Whose(object metav1.Object) string {
	said, id := object.GetAnnotations()[OwnerAnnotation], object.GetLabels()[OwnerLabel]
	switch {
	case !strings.HasPrefix(id, identity.Form+"-"):
		return fmt.Sprintf("an owner whose mark has an unknown form (its label %s is %q)", OwnerLabel, id)
	case said == "":
		return fmt.Sprintf("an owner who is not named (its label %s is %q)", OwnerLabel, id)
	}
	return said
}
