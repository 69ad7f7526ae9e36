package operator

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

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
	var owned fieldpath.Set
	if e.FieldsV1 == nil || owned.FromJSON(bytes.NewReader(e.FieldsV1.GetRawBytes())) != nil {
		return false
	}
	found := len(fields) == 0
	owned.Leaves().Iterate(func(p fieldpath.Path) {
		path := pathOf(p)
		found = found || plan.Below(path, fields...) ||
			slices.ContainsFunc(fields, func(field string) bool { return plan.Below(field, path) })
	})
	return found
}

// pathOf returns a path in the form of plans.
func pathOf(p fieldpath.Path) (path string) {
	for _, e := range p {
		switch {
		case e.FieldName != nil:
			path += plan.Segment(*e.FieldName)
		case e.Key != nil:
			var pairs []string
			for _, f := range *e.Key {
				pairs = append(pairs, fmt.Sprint(f.Name, "=", f.Value.Unstructured()))
			}
			path += "[" + strings.Join(pairs, ",") + "]"
		default:
			path += e.String()
		}
	}
	return strings.TrimPrefix(path, ".")
}
