package carrier

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Applying is how an object is applied: by Send, under the name of a field manager.
type Applying struct {
	Client  client.Client
	Manager string
	// DryRun tells that Send asks only.
	DryRun bool
	Send   func(*unstructured.Unstructured) error
}

// Apply applies an object, which becomes what the API server made of it. Where that calls the outcome invalid, what stays of another branch of
// a choice is taken away with it: the rollingUpdate that a Deployment was given by default does not go by itself when its type becomes
// Recreate, because nobody has applied it. What another manager has stays. That an object is invalid is told in brief.
func (a Applying) Apply(ctx context.Context, object *unstructured.Unstructured) error {
	sent := object.DeepCopy()
	err := a.Send(sent)
	if apierrors.IsInvalid(err) {
		again, done := a.without(ctx, object)
		if !done {
			return brief(err)
		}
		sent, err = again, nil
	}
	if err == nil {
		object.Object = sent.Object
	}
	return err
}

// without applies an object without the branches that are left over, and tells whether it could.
func (a Applying) without(ctx context.Context, object *unstructured.Unstructured) (*unstructured.Unstructured, bool) {
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(object.GroupVersionKind())
	if a.Client.Get(ctx, client.ObjectKeyFromObject(object), live) != nil {
		return nil, false
	}
	cleared := object.DeepCopy()
	claims := clearBranches(cleared, live, a.Manager)
	version := object.GetResourceVersion()
	if len(claims) == 0 || version != "" && version != live.GetResourceVersion() {
		return nil, false
	}
	body, err := cleared.MarshalJSON()
	if err != nil || a.Client.Patch(ctx, cleared, client.RawPatch(types.MergePatchType, body), client.DryRunAll, client.FieldOwner(a.Manager)) != nil {
		return nil, false
	}
	if a.DryRun {
		return cleared, true
	}
	if a.claim(ctx, live, claims) != nil {
		return nil, false
	}
	sent := object.DeepCopy()
	if version != "" {
		sent.SetResourceVersion(live.GetResourceVersion())
	}
	return sent, a.Send(sent) == nil
}

// claim gives fields to the manager that nobody has, so that its next apply takes them away.
func (a Applying) claim(ctx context.Context, live *unstructured.Unstructured, claims []branch) error {
	managed := live.GetManagedFields()
	i := slices.IndexFunc(managed, func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager == a.Manager && entry.Operation == metav1.ManagedFieldsOperationApply && entry.Subresource == ""
	})
	if i < 0 || managed[i].FieldsV1 == nil {
		return errors.New("the manager has applied nothing")
	}
	var fields map[string]any
	if err := json.Unmarshal(managed[i].FieldsV1.GetRawBytes(), &fields); err != nil {
		return err
	}
	for _, c := range claims {
		within := fields
		for _, name := range c.path {
			inner, ok := within[name].(map[string]any)
			if !ok {
				inner = map[string]any{}
				within[name] = inner
			}
			within = inner
		}
		maps.Copy(within, fieldsOf(c.value))
	}
	raw, err := json.Marshal(fields)
	if err != nil {
		return err
	}
	managed[i].FieldsV1 = metav1.NewFieldsV1(string(raw))
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": live.GetUID(), "resourceVersion": live.GetResourceVersion(), "managedFields": managed,
	}})
	if err != nil {
		return err
	}
	return a.Client.Patch(ctx, live, client.RawPatch(types.MergePatchType, body), client.FieldOwner(a.Manager))
}

// fieldsOf are the fields of a value, as a manager has them.
func fieldsOf(value any) map[string]any {
	fields := map[string]any{}
	if inner, ok := value.(map[string]any); ok {
		fields["."] = map[string]any{}
		for name, each := range inner {
			fields["f:"+name] = fieldsOf(each)
		}
	}
	return fields
}

// longest is how long what is wrong with one field may be told, in bytes: an API server tells whole pod templates.
const longest = 200

// brief is an answer that an object is invalid, with the fields and what is wrong with them, and without values that are long.
func brief(err error) error {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil || len(status.Status().Message) <= longest {
		return err
	}
	told := status.Status()
	var faults []string
	for _, cause := range told.Details.Causes {
		message := cause.Message
		if end := strings.LastIndex(message, ": "); len(message) > longest && end > 0 {
			message = message[end+len(": "):]
		}
		if len(message) > longest {
			message = strings.ToValidUTF8(message[:longest], "") + "…"
		}
		faults = append(faults, cause.Field+": "+message)
	}
	if len(faults) == 0 {
		return err
	}
	details := told.Details
	told.Message = fmt.Sprintf("%s %q is invalid: %s", details.Kind, details.Name, strings.Join(faults, ", "))
	if details.Group != "" {
		told.Message = fmt.Sprintf("%s.%s %q is invalid: %s", details.Kind, details.Group, details.Name, strings.Join(faults, ", "))
	}
	return &apierrors.StatusError{ErrStatus: told}
}

// branch is a field of a stored object that is a map, and where it is as managers say it.
type branch struct {
	path  []string
	value any
}

// clearBranches sets a field of an object to null where the stored one has a map that the object does not have, and of which nobody but
// the manager has applied anything. It returns what it cleared.
func clearBranches(object, live *unstructured.Unstructured, manager string) []branch {
	var c clearing
	var all, others []any
	for _, entry := range live.GetManagedFields() {
		var fields map[string]any
		if entry.FieldsV1 == nil || entry.Subresource != "" || json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields) != nil {
			continue
		}
		all = append(all, fields)
		if entry.Manager != manager {
			others = append(others, fields)
		}
	}
	for name, value := range object.Object {
		if !slices.Contains([]string{"apiVersion", "kind", "metadata", "status"}, name) {
			c.clear([]string{"f:" + name}, value, live.Object[name], step(all, "f:"+name), step(others, "f:"+name))
		}
	}
	return c.cleared
}

type clearing struct{ cleared []branch }

// clear is clearBranches for what is in a field. all and others are what all managers, and all but one, have of it.
func (c *clearing) clear(path []string, object, live any, all, others []any) {
	switch o := object.(type) {
	case map[string]any:
		l, _ := live.(map[string]any)
		for name, value := range l {
			below := append(slices.Clone(path), "f:"+name)
			wanted, has := o[name]
			_, isMap := value.(map[string]any)
			switch {
			case has:
				c.clear(below, wanted, value, step(all, "f:"+name), step(others, "f:"+name))
			case isMap && len(step(others, "f:"+name)) == 0:
				o[name] = nil
				c.cleared = append(c.cleared, branch{path: below, value: value})
			}
		}
	case []any:
		l, _ := live.([]any)
		for key := range itemKeys(all) {
			var named map[string]any
			if json.Unmarshal([]byte(strings.TrimPrefix(key, "k:")), &named) != nil {
				continue
			}
			if wanted, value := item(o, named), item(l, named); wanted != nil && value != nil {
				c.clear(append(slices.Clone(path), key), wanted, value, step(all, key), step(others, key))
			}
		}
	}
}

// step goes into a field, or an item of a list, in what managers have.
func step(managed []any, name string) []any {
	var below []any
	for _, fields := range managed {
		if inner, ok := fields.(map[string]any)[name].(map[string]any); ok {
			below = append(below, inner)
		}
	}
	return below
}

// itemKeys are the items of a list that managers have, as they name them.
func itemKeys(managed []any) map[string]bool {
	keys := map[string]bool{}
	for _, fields := range managed {
		for name := range maps.Keys(fields.(map[string]any)) {
			if strings.HasPrefix(name, "k:") {
				keys[name] = true
			}
		}
	}
	return keys
}

// item returns the item of a list that has these fields, nil if there is none.
func item(list []any, named map[string]any) any {
	for _, each := range list {
		fields, ok := each.(map[string]any)
		for name, value := range named {
			ok = ok && fmt.Sprint(fields[name]) == fmt.Sprint(value)
		}
		if ok {
			return fields
		}
	}
	return nil
}
