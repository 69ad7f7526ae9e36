package operator

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework/identity"
	"github.com/operatorkit/operatorkit/framework/plan"
)

// managersOf returns the managers, other than the resource's own, that write fields of an object,
// with the times of their last writes. The last writer is first. It returns none if the object
// can't be read, or if the fields have no other manager. It reads only the metadata.
func (d *Dependencies) managersOf(
	ctx context.Context, resource string, o plan.Object, fields []string,
) (managers []string) {
	if o.APIVersion == "" || o.Kind == "" || o.Name == "" {
		return nil
	}
	have := &metav1.PartialObjectMetadata{}
	have.SetGroupVersionKind(schema.FromAPIVersionAndKind(o.APIVersion, o.Kind))
	key := client.ObjectKey{Namespace: o.Namespace, Name: o.Name}
	if err := d.Client.Get(ctx, key, have); err != nil {
		return nil
	}
	own := identity.From(ctx).Mark(resource).FieldManager()
	entries := slices.DeleteFunc(have.ManagedFields, func(e metav1.ManagedFieldsEntry) bool {
		return e.Manager == own || !owns(e, fields)
	})
	slices.SortStableFunc(entries, func(a, b metav1.ManagedFieldsEntry) int {
		return timeOf(b).Compare(timeOf(a))
	})
	for _, e := range entries {
		at := timeOf(e).UTC().Format(time.RFC3339)
		managers = append(managers, fmt.Sprintf("%q (%s)", e.Manager, at))
	}
	return managers
}

func timeOf(e metav1.ManagedFieldsEntry) time.Time {
	return cmp.Or(e.Time, &metav1.Time{}).Time
}

// owns reports whether an entry of managedFields has one of the fields, or a part of one, or one
// that it is a part of. No fields are all.
func owns(e metav1.ManagedFieldsEntry, fields []string) bool {
	var tree map[string]any
	if e.FieldsV1 == nil || json.Unmarshal(e.FieldsV1.GetRawBytes(), &tree) != nil {
		return false
	}
	within := func(path, other string) bool {
		rest, found := strings.CutPrefix(path, other)
		return found && (rest == "" || rest[0] == '.' || rest[0] == '[')
	}
	return len(fields) == 0 || slices.ContainsFunc(ownedPaths("", tree), func(owned string) bool {
		return slices.ContainsFunc(fields, func(field string) bool {
			return within(owned, field) || within(field, owned)
		})
	})
}

// ownedPaths returns the paths of the leaves of managedFields, in the form of plans.
func ownedPaths(path string, tree map[string]any) (paths []string) {
	for name, below := range tree {
		kind, rest, _ := strings.Cut(name, ":")
		at := path
		switch kind {
		case "f":
			at = strings.TrimPrefix(path+plan.Segment(rest), ".")
		case "k":
			at += elementSegment(rest)
		case "v", "i":
			at += "[" + rest + "]"
		default:
			continue // The value itself, of which others may own parts.
		}
		if children, _ := below.(map[string]any); len(children) > 0 {
			paths = append(paths, ownedPaths(at, children)...)
		} else {
			paths = append(paths, at)
		}
	}
	return paths
}

// elementSegment returns the path segment of an element of a list, such as [name=web], for the JSON
// of its key.
func elementSegment(key string) string {
	var values map[string]any
	if json.Unmarshal([]byte(key), &values) != nil {
		return "[" + key + "]"
	}
	var pairs []string
	for name, value := range values {
		pairs = append(pairs, fmt.Sprint(name, "=", value))
	}
	slices.Sort(pairs)
	return "[" + strings.Join(pairs, ",") + "]"
}
