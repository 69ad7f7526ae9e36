package statusresource

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/internal/statusmap"
)

// change is how a status changes: before and after as JSON has them. What they hold is shared with others.
type change struct {
	object        plan.Object
	before, after map[string]any
}

// newChange returns the change from the status of one object to that of another, whose messages are scrubbed.
func newChange(ctx context.Context, c client.Client, from, to client.Object) (change, error) {
	gvk, err := c.GroupVersionKindFor(from)
	if err != nil {
		return change{}, fmt.Errorf("find the kind of a %T: %w", from, err)
	}
	before, err := statusmap.Of(from)
	if err != nil {
		return change{}, err
	}
	after, err := statusmap.Of(to)
	if err != nil {
		return change{}, err
	}
	return change{
		object: plan.Object{
			APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind, Namespace: from.GetNamespace(), Name: from.GetName(),
			UID: from.GetUID(), Version: from.GetResourceVersion(),
		},
		before: before, after: statusmap.Scrub(ctx, before, after),
	}, nil
}

// set puts conditions into the status afterwards, and takes others away.
func (c *change) set(conditions []metav1.Condition, absent []string) error {
	byType, order := statusmap.Conditions(c.after)
	for i := range conditions {
		condition, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&conditions[i])
		if err != nil {
			return fmt.Errorf("write condition %s: %w", conditions[i].Type, err)
		}
		if byType[conditions[i].Type] == nil {
			order = append(order, conditions[i].Type)
		}
		byType[conditions[i].Type] = condition
	}
	list := []any{}
	for _, t := range order {
		if !slices.Contains(absent, t) {
			list = append(list, byType[t])
		}
	}
	c.after["conditions"] = list
	return nil
}

// fields is the JSON merge patch (RFC 7386) of all but the conditions.
func (c *change) fields() map[string]any {
	return statusmap.FieldPatch(c.before, c.after)
}

// conditions are those that are other ones afterwards, by type, and nil for those that are gone. The times say nothing.
func (c *change) conditions() map[string]map[string]any {
	changed := map[string]map[string]any{}
	was, _ := statusmap.Conditions(c.before)
	is, _ := statusmap.Conditions(c.after)
	for t, condition := range is {
		if was[t] == nil || !reflect.DeepEqual(statusmap.Without(was[t], transition), statusmap.Without(condition, transition)) {
			changed[t] = condition
		}
	}
	for t := range was {
		if is[t] == nil {
			changed[t] = nil
		}
	}
	return changed
}

func (c *change) empty() bool { return len(c.fields())+len(c.conditions()) == 0 }

// patch is the merge patch of the status. A list can only be sent as a whole.
func (c *change) patch(now metav1.Time) map[string]any {
	patch, changed := c.fields(), c.conditions()
	if len(changed) == 0 {
		return patch
	}
	was, order := statusmap.Conditions(c.before)
	_, after := statusmap.Conditions(c.after)
	list := []any{}
	for _, t := range slices.Concat(order, slices.DeleteFunc(after, func(t string) bool { return was[t] != nil })) {
		switch is, changes := changed[t]; {
		case !changes:
			list = append(list, was[t])
		case is != nil:
			list = append(list, since(was[t], is, now))
		}
	}
	patch["conditions"] = list
	return patch
}

// transition is the field of a condition with the time of its last transition.
const transition = "lastTransitionTime"

// since is a condition with the time of its last transition: that of the one before while it says the same, or its own, or now.
func since(before, condition map[string]any, now metav1.Time) map[string]any {
	condition = maps.Clone(condition)
	switch {
	case before["status"] == condition["status"] && before[transition] != nil:
		condition[transition] = before[transition]
	case condition[transition] == nil:
		condition[transition] = now.ToUnstructured()
	}
	return condition
}

// changes says in a plan how a status changes.
func (c *change) changes() []plan.Change {
	if c.after == nil {
		return nil
	}
	fields := plan.Diff(map[string]any{"status": inWords(c.before)}, map[string]any{"status": inWords(c.after)})
	for i := range fields {
		fields[i].Path = strings.ReplaceAll(fields[i].Path, "conditions"+byName, "conditions[")
	}
	return []plan.Change{{Action: plan.Update, Object: c.object, Fields: fields}}
}

// byName begins the names of fields that stand in brackets in the paths of a plan.
const byName = "[name="

// inWords is a status as a plan shows it: each condition on one line, and without times.
func inWords(v any) any {
	switch v := v.(type) {
	case []any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = inWords(v[i])
		}
		return list
	case map[string]any:
		words := make(map[string]any, len(v))
		for name, field := range v {
			if !strings.HasSuffix(name, "TransitionTime") {
				words[name] = inWords(field)
			}
		}
		if conditions, order := statusmap.Conditions(v); len(order) > 0 {
			lines := map[string]any{}
			for t, c := range conditions {
				lines[byName+t+"]"] = strings.TrimSpace(fmt.Sprintf("%s %s %s", text(c["status"]), text(c["reason"]), text(c["message"])))
			}
			words["conditions"] = lines
		}
		return words
	}
	return v
}

func text(v any) string {
	s, _ := v.(string)
	return s
}
