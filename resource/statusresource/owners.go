package statusresource

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/identity"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/internal/statusmap"
)

// RefusedError says that a condition was not written because it is somebody else's.
type RefusedError struct {
	// Object is whose condition it is, and Condition is its type.
	Object    plan.Object
	Condition string
	// Manager is the field manager that wrote it: the names of an operator, a framework and a resource (see identity.Mark), and Own is
	// that of the resource that was refused.
	Manager, Own string
}

// Error implements error.
func (e *RefusedError) Error() string {
	return fmt.Sprintf("condition %s of %s was written by %s and is not %s's: set a Prefix for one of them; or add former names, if one has become the other; "+
		"or take the condition away, if nobody writes it any more", e.Condition, e.Object, e.Manager, e.Own)
}

// owners says whose conditions are not to be written.
type owners struct {
	// types are those of the resource's own conditions.
	types []string
	// managers are the field managers of the resource: what it is called now, and its former names.
	managers []string
}

func (r *resource[O]) owners(ctx context.Context) *owners {
	o := &owners{}
	for _, t := range []string{ConditionReady, ConditionReconciling, ConditionStalled} {
		o.types = append(o.types, r.config.Prefix+t)
	}
	for _, mark := range identity.From(ctx).Marks(r.config.Name, r.config.FormerNames) {
		o.managers = append(o.managers, mark.FieldManager())
	}
	return o
}

// concerned tells whether a change is about conditions that are there already, so that somebody has written them.
func (o *owners) concerned(c change) bool {
	if o == nil {
		return false
	}
	there, _ := statusmap.Conditions(c.before)
	for t := range c.conditions() {
		if there[t] != nil && slices.Contains(o.types, t) {
			return true
		}
	}
	return false
}

// allow is an error if another resource, of whatever operator, has written a condition that is about to change. People may write them.
func (o *owners) allow(live client.Object, c change) error {
	if o == nil {
		return nil
	}
	changed := c.conditions()
	for _, entry := range live.GetManagedFields() {
		if !strings.HasPrefix(entry.Manager, marked) || slices.Contains(o.managers, entry.Manager) || entry.FieldsV1 == nil {
			continue
		}
		var fields struct {
			Status struct {
				Conditions map[string]json.RawMessage `json:"f:conditions"`
			} `json:"f:status"`
		}
		if err := json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields); err != nil {
			return fmt.Errorf("read which fields of %s belong to %s: %w", c.object, entry.Manager, err)
		}
		for _, t := range o.types {
			_, changes := changed[t]
			if _, theirs := fields.Status.Conditions[fmt.Sprintf(`k:{"type":%q}`, t)]; theirs && changes {
				return framework.Permanent(&RefusedError{Object: c.object, Condition: t, Manager: entry.Manager, Own: o.managers[0]})
			}
		}
	}
	return nil
}

// marked is how field managers begin that are a mark.
const marked = "operatorkit-" + identity.Form + "_"
