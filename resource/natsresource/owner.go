package natsresource

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/informer/natsinformer"
)

// What tells, besides OwnerKind and OwnerKey, whose an entry is. Every entry that was applied carries these.
const (
	// ResourceAnnotation is the name of the resource that applied the entry.
	ResourceAnnotation = "operatorkit.io/resource"
	// AppliedAnnotation holds the key of the entry itself, by which a copy of it is told apart, a hash sign, and the names
	// of the labels, annotations, conditions and finalizers that were applied, if there are any, as JSON.
	AppliedAnnotation = "operatorkit.io/applied"
)

// owner is who entries belong to: a primary, and the resource that applies them for it.
type owner struct {
	kind, key, resource string
}

// String returns the owner as it stands in errors.
func (o owner) String() string { return o.kind + " " + o.key }

// index is the value of OwnerIndex. None of its parts can hold a NUL.
func (o owner) index() string { return o.kind + "\x00" + o.key + "\x00" + o.resource }

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
		return []string{owner{m.OwnerKind, m.OwnerKey, m.Annotations[ResourceAnnotation]}.index()}
	}}
}

// OwnerMap returns the map function for a watch of entries: it names their primary, which has no namespace, if it is
// of the given kind.
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
	return func(_ context.Context, obj any) []informer.Key {
		e, ok := obj.(natsinformer.Entity)
		if !ok || e.EntityMeta().OwnerKind != kind || e.EntityMeta().OwnerKey == "" {
			return nil
		}
		key, ok := parse(e.EntityMeta().OwnerKey)
		if !ok {
			return nil
		}
		return []informer.Key{key}
	}
}

// ownerKey is the default of Config.OwnerKey.
func ownerKey(obj any) (string, error) {
	m, ok := obj.(informer.Meta)
	if !ok {
		return "", fmt.Errorf("a %T has no metadata: set OwnerKey", obj)
	}
	if m.GetNamespace() != "" {
		return m.GetNamespace() + "/" + m.GetName(), nil
	}
	return m.GetName(), nil
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
	annotations[ResourceAnnotation] = o.resource
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
