package manifest

import (
	"fmt"
	"maps"
	"slices"

	"github.com/fluxcd/pkg/ssa"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
)

// String names a manifest in messages, with the file that it comes from.
func (m manifest) String() string {
	return fmt.Sprintf("%s of %s", referTo(m.Object), m.File)
}

// created are the fields that creating the object sets, as a plan shows them.
func (m manifest) created() []plan.FieldChange {
	fields := maps.Clone(m.Object.Object)
	delete(fields, "apiVersion")
	delete(fields, "kind")
	if metadata, ok := fields["metadata"].(map[string]any); ok {
		metadata = maps.Clone(metadata)
		delete(metadata, "name")
		delete(metadata, "namespace")
		fields["metadata"] = metadata
	}
	return m.hide(plan.Diff(nil, fields))
}

// ours are the fields that may always be shown.
var ours = []string{
	"metadata.labels" + plan.Segment(carrier.OwnerLabel),
	"metadata.labels" + plan.Segment(carrier.ServiceLabel),
	"metadata.labels" + plan.Segment(carrier.ServiceNamespaceLabel),
	"metadata.annotations" + plan.Segment(carrier.OwnerAnnotation),
}

// hide takes away what must not be shown. It changes the fields.
func (m manifest) hide(fields []plan.FieldChange) []plan.FieldChange {
	if m.Sensitive {
		plan.Hide(fields, func(path string) bool { return plan.Below(path, ours...) })
	}
	return fields
}

// prepare makes manifests what is applied, in the order in which it is: with the marks of the service and the right
// namespace.
func prepare(cluster carrier.Cluster, service *carrier.Service, manifests []manifest) ([]manifest, error) {
	defined := definitionsIn(manifests)
	prepared := make([]manifest, len(manifests))
	from := map[carrier.Identity]string{}
	for i, m := range manifests {
		object := m.Object.DeepCopy()
		namespaced, err := isNamespaced(cluster, defined, object.GroupVersionKind())
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m, err)
		}
		switch {
		case !namespaced:
			object.SetNamespace("")
		case object.GetNamespace() == "":
			object.SetNamespace(service.Key.Namespace)
		}
		carrier.Dress(object, service)
		prepared[i] = manifest{File: m.File, Sensitive: m.Sensitive, Object: object}
		if first, twice := from[carrier.IdentityOf(object)]; twice {
			return nil, fmt.Errorf("%s is there twice, the other one is in %s: keep one of them", prepared[i], first)
		}
		from[carrier.IdentityOf(object)] = m.File
	}
	slices.SortStableFunc(prepared, func(a, b manifest) int { return order(groupKind(a.Object), groupKind(b.Object)) })
	return prepared, nil
}

func groupKind(object *unstructured.Unstructured) schema.GroupKind {
	return object.GroupVersionKind().GroupKind()
}

// order is the order in which kinds are applied.
func order(a, b schema.GroupKind) int {
	switch {
	case stageOf(a) != stageOf(b):
		return int(stageOf(a)) - int(stageOf(b))
	case ssa.Equals(a, b):
		return 0
	case ssa.IsLessThan(a, b):
		return -1
	}
	return 1
}

// stage is what has to be there, or gone, before the next one is touched.
type stage int

const (
	// definitions are what others can't be without: definitions, namespaces, classes, and the rights of controllers.
	definitions stage = iota
	// builtIn are the kinds that every cluster has, among them the controllers of other kinds.
	builtIn
	// custom are all others, and webhooks.
	custom
)

// stageOf returns the stage of a kind, from the places that Flux gives to kinds.
func stageOf(kind schema.GroupKind) stage {
	switch at := slices.Index(ssa.ReconcileOrder.First, kind.Kind); {
	case at < 0:
		return custom
	case at <= slices.Index(ssa.ReconcileOrder.First, "ClusterRoleBinding"):
		return definitions
	}
	return builtIn
}

// definitionsIn returns the custom resource definitions among manifests.
func definitionsIn(manifests []manifest) carrier.Definitions {
	objects := make([]*unstructured.Unstructured, len(manifests))
	for i, m := range manifests {
		objects[i] = m.Object
	}
	return carrier.DefinitionsIn(objects)
}

// isNamespaced tells whether objects of a kind have a namespace. One that nobody knows yet is taken to have one: it can't be
// applied before it is known.
func isNamespaced(cluster carrier.Cluster, defined carrier.Definitions, gvk schema.GroupVersionKind) (bool, error) {
	mapping, err := defined.Mapping(cluster.RESTMapper(), gvk)
	if meta.IsNoMatchError(err) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("find out about the kind %s: %w", gvk.Kind, err)
	}
	return mapping.Scope.Name() == meta.RESTScopeNameNamespace, nil
}
