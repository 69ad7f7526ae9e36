package templating

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager"
)

// Read returns the content of an object of the management cluster, which may be changed by whoever gets it. The error says what does
// not exist.
type Read func(ctx context.Context, ref statemanager.Reference) (map[string]any, error)

// Values returns the values of an entry as YAML: those of one with a valuesTemplate rendered, others as they are. An error says which
// service it is about, and is permanent where only a change of the template, the cluster or an object helps.
func Values(ctx context.Context, set *statemanager.Set, entry *v1alpha1.ServiceWithValues, read Read) (string, error) {
	if entry.ValuesTemplate == nil {
		return entry.Values, nil
	}
	fail := func(err error) (string, error) {
		return "", fmt.Errorf("the values template of service %s: %w", entry.Key(), err)
	}
	cluster, err := clusterOf(set)
	if err != nil {
		return fail(err)
	}
	objects := map[string]any{}
	for _, object := range entry.ValuesTemplate.Objects {
		ref := statemanager.ReferenceTo(set.ServiceSet, object)
		if err := allowed(set, object.As, ref); err != nil {
			return fail(framework.Permanent(err))
		}
		content, err := read(ctx, ref)
		if err != nil {
			return fail(fmt.Errorf("read its object %s: %w", object.As, err))
		}
		objects[object.As] = content
	}
	rendered, err := render(entry.Values, map[string]any{"Cluster": cluster, "Objects": objects})
	if err != nil {
		return fail(framework.Permanent(err))
	}
	return rendered, nil
}

// allowed returns an error for an object that templates must not be filled with.
func allowed(set *statemanager.Set, as string, ref statemanager.Reference) error {
	kind := ref.GroupVersionKind()
	switch {
	case kind == corev1.SchemeGroupVersion.WithKind(statemanager.KindSecret):
		return fmt.Errorf("its object %s is a Secret, whose values would be in plans: name the Secret in valuesFrom, with a targetPath", as)
	case kind != corev1.SchemeGroupVersion.WithKind(statemanager.KindConfigMap) && !slices.Contains(set.ValueKinds, kind):
		return fmt.Errorf("its object %s is of the kind %s in %s, which the operator does not read: name a ConfigMap, or have the kind put into the "+
			"operator's ValueKinds", as, kind.Kind, kind.GroupVersion())
	case ref.Name == "":
		return fmt.Errorf("its object %s has no name, and the management cluster has none that could stand for it: set it", as)
	}
	return nil
}

// clusterOf returns what templates see of the cluster of a set.
func clusterOf(set *statemanager.Set) (map[string]any, error) {
	labels, annotations := map[string]any{}, map[string]any{}
	metadata := map[string]any{"labels": labels, "annotations": annotations}
	cluster := map[string]any{"metadata": metadata, "spec": map[string]any{}}
	if set.Cluster == nil {
		if name := set.ServiceSet.Spec.Cluster; name != "" {
			return nil, fmt.Errorf("ClusterDeployment %s/%s does not exist", set.ServiceSet.Namespace, name)
		}
		return cluster, nil
	}
	metadata["name"], metadata["namespace"] = set.Cluster.Name, set.Cluster.Namespace
	for name, value := range set.Cluster.Labels {
		labels[name] = value
	}
	for name, value := range set.Cluster.Annotations {
		annotations[name] = value
	}
	own := set.Cluster.Spec
	own.ServiceSpec = v1alpha1.ServiceSpec{}
	spec, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&own)
	if err != nil {
		return nil, fmt.Errorf("read the spec of ClusterDeployment %s: %w", set.Cluster.Name, err)
	}
	delete(spec, "serviceSpec")
	cluster["spec"] = spec
	return cluster, nil
}
