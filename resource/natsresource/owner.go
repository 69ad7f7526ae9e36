package natsresource

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operatorkit/operatorkit/framework/identity"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/informer/natsinformer"
)

// What tells, besides OwnerKind and OwnerKey, whose an entry is. Every entry that was applied carries these.
const (
	// MadeByAnnotation says which form it has, and names the resource, the framework and the operator that made the entry, such
	// as: v1 resource "routes" of framework "gateways" of operator "gateway-operator".
	MadeByAnnotation = "operatorkit.io/made-by"
	// AppliedAnnotation holds the key of the entry itself, by which a copy of it is told apart, a hash sign, and the names
	// of the labels, annotations, conditions and finalizers that were applied, if there are any, as JSON.
	AppliedAnnotation = "operatorkit.io/applied"
)

// form begins each MadeByAnnotation of the form that is written and known here.
const form = identity.Form + " "

// madeBy returns the MadeByAnnotation of what a resource of this package makes. The names in it are quoted, so that different ones
// never give the same.
func madeBy(m identity.Mark) string { return form + m.String() }

// MadeBy returns the MadeByAnnotation of what is made in a framework by other means than a resource of this package.
func MadeBy(i identity.Identity) string { return form + i.String() }

// IsMadeBy tells whether a MadeByAnnotation is that of something that was made in a framework, by a resource of whatever name or
// without one, under the names that the framework and its operator have now or had before.
func IsMadeBy(annotation string, i identity.Identity) bool {
	s := identity.Scope{Identity: i}
	return slices.ContainsFunc(s.Marks("", nil), func(m identity.Mark) bool {
		own := identity.Identity{Operator: m.Operator, Framework: m.Framework}
		return annotation == MadeBy(own) || strings.HasPrefix(annotation, form) && strings.HasSuffix(annotation, " of "+own.String())
	})
}

// owner is who entries belong to: a primary, and who makes them for it, as MadeByAnnotation says it.
type owner struct {
	kind, key, by string
}

// index is the value of OwnerIndex. An entry of somebody else can have the same, with a NUL in a part: who finds one looks at its parts.
func (o owner) index() string { return o.kind + "\x00" + o.key + "\x00" + o.by }

// OwnerIndex is the name of the index that a Source needs.
const OwnerIndex = "operatorkit.io/owner"

// OwnerIndexers returns the index that a Source needs, for natsinformer.SourceConfig.
func OwnerIndexers() map[string]informer.IndexFunc {
	return map[string]informer.IndexFunc{OwnerIndex: func(obj any) []string {
		e, ok := obj.(natsinformer.Entity)
		if !ok {
			return nil
		}
		m := e.EntityMeta()
		if m.OwnerKind == "" {
			return nil
		}
		return []string{owner{m.OwnerKind, m.OwnerKey, m.Annotations[MadeByAnnotation]}.index()}
	}}
}

// OwnerMap returns the map function for a watch of entries: it names their primary, which has no namespace, if it is
// of the given kind. Entries that another framework or operator made concern nobody: whether one that was in the way has gone is
// found out when the primary is tried again.
func OwnerMap(kind string) informer.MapFunc {
	return ownerMap(kind, func(key string) (informer.Key, bool) { return informer.Key{Name: key}, true })
}

// NamespacedOwnerMap is OwnerMap for primaries that have a namespace.
func NamespacedOwnerMap(kind string) informer.MapFunc {
	return ownerMap(kind, func(key string) (informer.Key, bool) {
		namespace, name, ok := strings.Cut(key, "/")
		return informer.Key{Namespace: namespace, Name: name}, ok
	})
}

func ownerMap(kind string, parse func(key string) (informer.Key, bool)) informer.MapFunc {
	return func(ctx context.Context, obj any) []informer.Key {
		e, ok := obj.(natsinformer.Entity)
		if !ok || e.EntityMeta().OwnerKind != kind || e.EntityMeta().OwnerKey == "" {
			return nil
		}
		if by := e.EntityMeta().Annotations[MadeByAnnotation]; by != "" && !IsMadeBy(by, identity.From(ctx).Identity) {
			return nil
		}
		key, ok := parse(e.EntityMeta().OwnerKey)
		if !ok {
			return nil
		}
		return []informer.Key{key}
	}
}

// applied are the names in AppliedAnnotation.
type applied struct {
	Labels      []string `json:"labels,omitempty"`
	Annotations []string `json:"annotations,omitempty"`
	Conditions  []string `json:"conditions,omitempty"`
	Finalizers  []string `json:"finalizers,omitempty"`
}

// appliedTo returns the key of the entry that AppliedAnnotation was made for, and the names in it. What can't be read says
// nothing. Keys have no hash sign.
func appliedTo(m *natsinformer.Meta) (key, names string, ok bool) {
	return strings.Cut(m.Annotations[AppliedAnnotation], "#")
}

func namesIn(text string) (names applied) {
	if text == "" || json.Unmarshal([]byte(text), &names) != nil {
		return applied{}
	}
	return names
}

// mark writes on an entry whose it is. The annotations are replaced, not changed.
func mark(m *natsinformer.Meta, o owner) error {
	names, err := namesOf(m)
	if err != nil {
		return err
	}
	annotations := make(map[string]string, len(m.Annotations)+2)
	maps.Copy(annotations, m.Annotations)
	annotations[MadeByAnnotation] = o.by
	annotations[AppliedAnnotation] = m.Name + "#" + names
	m.OwnerKind, m.OwnerKey, m.Annotations = o.kind, o.key, annotations
	return nil
}

// namesOf writes down what is there; most entries have nothing of all this.
func namesOf(m *natsinformer.Meta) (string, error) {
	if len(m.Labels)+len(m.Annotations)+len(m.Conditions)+len(m.Finalizers) == 0 {
		return "", nil
	}
	text, err := json.Marshal(applied{
		Labels:      slices.Sorted(maps.Keys(m.Labels)),
		Annotations: slices.Sorted(maps.Keys(m.Annotations)),
		Conditions:  conditionTypes(m.Conditions),
		Finalizers:  m.Finalizers,
	})
	return string(text), err
}

func conditionTypes(conditions []metav1.Condition) []string {
	types := make([]string, 0, len(conditions))
	for _, c := range conditions {
		types = append(types, c.Type)
	}
	return types
}
