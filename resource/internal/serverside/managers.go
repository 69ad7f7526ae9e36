package serverside

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// TakeFields moves the fields that others have, in whichever version of the API, to what manager has applied, and returns the new
// metadata.managedFields. Nil means that the others have no fields.
func TakeFields(
	entries []metav1.ManagedFieldsEntry, others func(metav1.ManagedFieldsEntry) bool, manager string,
) ([]metav1.ManagedFieldsEntry, error) {
	var rest []metav1.ManagedFieldsEntry
	var applied metav1.ManagedFieldsEntry
	all, taken := &fieldpath.Set{}, false
	for _, entry := range entries {
		own := entry.Manager == manager && entry.Operation == metav1.ManagedFieldsOperationApply
		if entry.Subresource != "" || entry.FieldsV1 == nil || !own && !others(entry) {
			rest = append(rest, entry)
			continue
		}
		fields := &fieldpath.Set{}
		if err := fields.FromJSON(entry.FieldsV1.GetRawReader()); err != nil {
			return nil, fmt.Errorf("read the fields of the field manager %q: %w", entry.Manager, err)
		}
		all = all.Union(fields)
		if own || applied.Manager == "" {
			applied = entry
		}
		taken = taken || !own
	}
	if !taken {
		return nil, nil
	}
	fields, err := all.ToJSON()
	if err != nil {
		return nil, fmt.Errorf("write the fields of the field manager %q: %w", manager, err)
	}
	applied.Manager, applied.Operation = manager, metav1.ManagedFieldsOperationApply
	applied.FieldsV1 = metav1.NewFieldsV1(string(fields))
	return append(rest, applied), nil
}
