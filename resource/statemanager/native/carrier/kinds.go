package carrier

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Identity tells objects apart, in whichever version of their group they are written.
type Identity struct {
	Kind schema.GroupKind
	client.ObjectKey
}

// IdentityOf returns the identity of an object.
func IdentityOf(object client.Object) Identity {
	return Identity{Kind: object.GetObjectKind().GroupVersionKind().GroupKind(), ObjectKey: client.ObjectKeyFromObject(object)}
}

// DefinitionKind is the kind of custom resource definitions.
var DefinitionKind = schema.GroupKind{Group: apiextensionsv1.GroupName, Kind: "CustomResourceDefinition"}

// Definitions are custom resource definitions that come with a service: they say how kinds are mapped that a cluster does not have yet.
type Definitions []*unstructured.Unstructured

// DefinitionsIn returns the custom resource definitions among objects.
func DefinitionsIn(objects []*unstructured.Unstructured) Definitions {
	var found Definitions
	for _, object := range objects {
		if object.GroupVersionKind().GroupKind() == DefinitionKind {
			found = append(found, object)
		}
	}
	return found
}

// Define reports whether one of the definitions defines a kind.
func (d Definitions) Define(kind schema.GroupKind) bool {
	return slices.ContainsFunc(d, func(definition *unstructured.Unstructured) bool { return DefinedBy(definition) == kind })
}

// DefinedBy is the kind that a custom resource definition defines.
func DefinedBy(definition *unstructured.Unstructured) schema.GroupKind {
	group, _, _ := unstructured.NestedString(definition.Object, "spec", "group")
	kind, _, _ := unstructured.NestedString(definition.Object, "spec", "names", "kind")
	return schema.GroupKind{Group: group, Kind: kind}
}

// ServedBy are the versions of its kind that a custom resource definition has an API server serve.
func ServedBy(definition *unstructured.Unstructured) []schema.GroupVersionKind {
	versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	var kinds []schema.GroupVersionKind
	for _, each := range versions {
		version, _ := each.(map[string]any)
		if served, _ := version["served"].(bool); served {
			name, _ := version["name"].(string)
			kinds = append(kinds, DefinedBy(definition).WithVersion(name))
		}
	}
	return kinds
}

// Mapping returns how a kind is mapped to a resource, by the cluster or else by the definitions.
func (d Definitions) Mapping(mapper meta.RESTMapper, kind schema.GroupVersionKind) (*meta.RESTMapping, error) {
	mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err == nil || !meta.IsNoMatchError(err) {
		return mapping, err
	}
	for _, definition := range d {
		if DefinedBy(definition) != kind.GroupKind() {
			continue
		}
		plural, _, _ := unstructured.NestedString(definition.Object, "spec", "names", "plural")
		scope, _, _ := unstructured.NestedString(definition.Object, "spec", "scope")
		mapping := &meta.RESTMapping{Resource: kind.GroupVersion().WithResource(plural), GroupVersionKind: kind, Scope: meta.RESTScopeNamespace}
		if scope == string(apiextensionsv1.ClusterScoped) {
			mapping.Scope = meta.RESTScopeRoot
		}
		return mapping, nil
	}
	return nil, err
}

// AfterDefinition describes what a plan could not try out, because the definition of its kind changes before.
const AfterDefinition = "after its definition"

// Served returns the version in which a cluster serves a kind: the one that is given, or else another one of the kind.
func Served(mapper meta.RESTMapper, kind schema.GroupVersionKind) (schema.GroupVersionKind, error) {
	mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if meta.IsNoMatchError(err) {
		mapping, err = mapper.RESTMapping(kind.GroupKind())
	}
	if err != nil {
		return schema.GroupVersionKind{}, err
	}
	return mapping.GroupVersionKind, nil
}

// Merged is what a stored object becomes when another one is applied to it, as far as that is known without the API server: maps are merged,
// all else is replaced.
func Merged(live, applied map[string]any) map[string]any {
	merged := maps.Clone(live)
	for name, value := range applied {
		inner, isMap := value.(map[string]any)
		if outer, ok := merged[name].(map[string]any); ok && isMap {
			value = Merged(outer, inner)
		}
		merged[name] = value
	}
	return merged
}

// AwaitKinds waits until custom resource definitions are established and a mapper, which asks the same cluster, knows kinds. Errors call
// a definition what name does.
func AwaitKinds(
	ctx context.Context, reader client.Reader, mapper meta.RESTMapper, timeout time.Duration, definitions Definitions, kinds []schema.GroupVersionKind,
	name func(*unstructured.Unstructured) string,
) error {
	var last error
	forgotten := false
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, timeout, true, func(ctx context.Context) (bool, error) {
		for len(definitions) > 0 {
			if err := established(ctx, reader, definitions[0], name); err != nil {
				// A look that the end of the wait has cut off says less than the one before.
				if last == nil || ctx.Err() == nil {
					last = err
				}
				return false, nil //nolint:nilerr // It is looked at again.
			}
			definitions = definitions[1:]
		}
		if last = Unknown(mapper, kinds); last == nil {
			return true, nil
		}
		// From here on the kinds are served. A mapper that forgets once is enough: it asks again for what it does not know.
		if resettable, ok := mapper.(meta.ResettableRESTMapper); ok && !forgotten {
			resettable.Reset()
			forgotten = true
		}
		return false, nil
	})
	if err != nil && last != nil {
		return last
	}
	return err
}

// Unknown returns why a mapper does not know the first of some kinds that it does not know; nil is none.
func Unknown(mapper meta.RESTMapper, kinds []schema.GroupVersionKind) error {
	for _, kind := range kinds {
		if _, err := mapper.RESTMapping(kind.GroupKind(), kind.Version); err != nil {
			return err
		}
	}
	return nil
}

// established tells whether an API server serves what a definition defines, as an error if it does not.
func established(ctx context.Context, reader client.Reader, definition *unstructured.Unstructured, name func(*unstructured.Unstructured) string) error {
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(definition.GroupVersionKind())
	if err := reader.Get(ctx, client.ObjectKeyFromObject(definition), live); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("read %s: %w", name(definition), err)
	}
	conditions, _, _ := unstructured.NestedSlice(live.Object, "status", "conditions")
	for _, each := range conditions {
		switch condition, _ := each.(map[string]any); {
		case condition["type"] == "Established" && condition["status"] == "True":
			return nil
		case condition["type"] == "NamesAccepted" && condition["status"] == "False":
			return fmt.Errorf("%s is not established: %v", name(definition), condition["message"])
		}
	}
	return fmt.Errorf("%s is not established yet: its objects wait for it", name(definition))
}

// FormatKinds writes kinds, each once, as "Deployment.v1.apps".
func FormatKinds(kinds []schema.GroupVersionKind) []string {
	texts := make([]string, len(kinds))
	for i, kind := range kinds {
		texts[i] = kind.Kind + "." + kind.Version + "." + kind.Group
	}
	slices.Sort(texts)
	return slices.Compact(texts)
}

// ParseKinds reads what FormatKinds has written.
func ParseKinds(texts []string) (kinds []schema.GroupVersionKind) {
	for _, text := range texts {
		if kind, _ := schema.ParseKindArg(text); kind != nil {
			kinds = append(kinds, *kind)
		}
	}
	return kinds
}
