package carrier

import (
	"context"
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
	// Origin stands for the management cluster: another one may have the same names. It is empty for what is on that cluster itself.
	Origin string
}

// String returns the keeper as it stands in errors and annotations.
func (k Keeper) String() string {
	name := fmt.Sprintf("state manager %q of %s", k.Resource, identity.Identity{Operator: k.Operator, Framework: k.Framework})
	if k.Origin != "" {
		name += fmt.Sprintf(", at work for the management cluster %q", k.Origin)
	}
	return name
}

// Keepers returns the keeper that a state manager is, by the framework that the context belongs to, and those that it was under former
// names.
func Keepers(ctx context.Context, manager string, formerNames []string, origin string) (now Keeper, former []Keeper) {
	scope := identity.From(ctx)
	for _, mark := range scope.Former(manager, formerNames) {
		former = append(former, Keeper{Mark: mark, Origin: origin})
	}
	return Keeper{Mark: scope.Mark(manager), Origin: origin}, former
}

// Managers returns the field managers of keepers.
func Managers(keepers []Keeper) []string {
	names := make([]string, len(keepers))
	for i, k := range keepers {
		names[i] = k.FieldManager()
	}
	return names
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

// Marked tells whether something has the mark of the owner. Where somebody has removed the label, the annotation says it.
func (o Owner) Marked(object metav1.Object) bool {
	id := object.GetLabels()[OwnerLabel]
	return id == o.ID() || id == "" && object.GetAnnotations()[OwnerAnnotation] == o.String()
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

// Whose says whose something is, by its marks.
func Whose(object metav1.Object) string {
	said, id := object.GetAnnotations()[OwnerAnnotation], object.GetLabels()[OwnerLabel]
	switch {
	case id == "" && said == "":
		return fmt.Sprintf("somebody else (it has no label %s)", OwnerLabel)
	case id != "" && !strings.HasPrefix(id, identity.Form+"-"):
		return fmt.Sprintf("an owner whose mark has an unknown form (its label %s is %q)", OwnerLabel, id)
	case said == "":
		return fmt.Sprintf("an owner who is not named (its label %s is %q)", OwnerLabel, id)
	}
	return said
}
