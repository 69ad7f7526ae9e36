package helm

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
)

// offer adds what the definitions that are still to be applied will serve to what the cluster can do.
func (r *rendering) offer() {
	for _, definition := range r.applied {
		for _, kind := range carrier.ServedBy(definition) {
			version := kind.GroupVersion().String()
			for _, name := range []string{version, version + "/" + kind.Kind} {
				if !r.capabilities.APIVersions.Has(name) {
					r.capabilities.APIVersions = append(r.capabilities.APIVersions, name)
				}
			}
		}
	}
}

// lookup finds nothing of a kind that the cluster gets with the chart. One that the cluster has in another version only is looked up in that.
func (r *rendering) lookup(mapper meta.RESTMapper, find func(_, _, _, _ string) (map[string]any, error)) func(_, _, _, _ string) (map[string]any, error) {
	return func(apiVersion, kind, namespace, name string) (map[string]any, error) {
		wanted := schema.FromAPIVersionAndKind(apiVersion, kind)
		comes := slices.ContainsFunc(r.applied, func(d *unstructured.Unstructured) bool { return slices.Contains(carrier.ServedBy(d), wanted) })
		if !comes {
			return find(apiVersion, kind, namespace, name)
		}
		served, err := carrier.Served(mapper, wanted)
		switch {
		case meta.IsNoMatchError(err) && name != "":
			return map[string]any{}, nil
		case meta.IsNoMatchError(err):
			return map[string]any{"apiVersion": apiVersion, "kind": kind + "List", "items": []any{}}, nil
		case err != nil:
			return nil, err
		}
		return find(served.GroupVersion().String(), kind, namespace, name)
	}
}
