package informer

import (
	"context"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// OwnerOption changes [OwnerMap].
type OwnerOption uint8

const (
	// ControllerOnly uses only the owner reference that is marked as the controller.
	ControllerOnly OwnerOption = iota + 1
	// OwnerWithoutNamespace is for owners of a cluster-scoped kind. By default an owner is in the
	// namespace of the object it owns.
	OwnerWithoutNamespace
)

// OwnerMap returns a [MapFunc] from an object to its owners of this kind, in any version, according
// to its owner references.
func OwnerMap(owner schema.GroupKind, options ...OwnerOption) MapFunc {
	controllerOnly := slices.Contains(options, ControllerOnly)
	withoutNamespace := slices.Contains(options, OwnerWithoutNamespace)
	return func(_ context.Context, obj any) []Key {
		o, ok := obj.(interface {
			GetNamespace() string
			GetOwnerReferences() []metav1.OwnerReference
		})
		if !ok {
			return nil
		}
		var keys []Key
		for _, ref := range o.GetOwnerReferences() {
			group, _, _ := strings.Cut(ref.APIVersion, "/")
			if !strings.Contains(ref.APIVersion, "/") {
				group = ""
			}
			switch {
			case ref.Kind != owner.Kind || group != owner.Group:
				continue
			case controllerOnly && (ref.Controller == nil || !*ref.Controller):
				continue
			}
			key := Key{Namespace: o.GetNamespace(), Name: ref.Name}
			if withoutNamespace {
				key.Namespace = ""
			}
			keys = append(keys, key)
		}
		return keys
	}
}

// OwnerNames are the labels or annotations by which an object names its owner where an owner
// reference is not possible: across namespaces or clusters, and for owners that are not Kubernetes
// objects.
type OwnerNames struct {
	// Key is the name of the annotation, or else the label, that holds the owner's key:
	// "namespace/name", or "name" for an owner without a namespace. It must be set.
	Key string
	// Kind is the name of the annotation, or else the label, that holds the owner's kind. Default:
	// kinds are not compared.
	Kind string
}

// LabelMap returns a [MapFunc] from an object to the owner that its annotations or labels name, if
// that owner is of this kind.
func LabelMap(names OwnerNames, kind string) MapFunc {
	return func(_ context.Context, obj any) []Key {
		o, ok := obj.(interface {
			GetLabels() map[string]string
			GetAnnotations() map[string]string
		})
		if !ok {
			return nil
		}
		read := func(name string) string {
			if value, ok := o.GetAnnotations()[name]; ok {
				return value
			}
			return o.GetLabels()[name]
		}
		if names.Kind != "" && read(names.Kind) != kind {
			return nil
		}
		key, ok := parseKey(read(names.Key))
		if !ok {
			return nil
		}
		return []Key{key}
	}
}

// parseKey parses the string form of a Key, or a bare name. It returns false for any other text.
func parseKey(text string) (Key, bool) {
	namespace, name, found := strings.Cut(text, "/")
	if !found {
		namespace, name = "", text
	}
	return Key{Namespace: namespace, Name: name}, name != "" && !strings.Contains(name, "/")
}
