package serviceprovider

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/informer/notfound"
	"github.com/operatorkit/operatorkit/internal/statusmap"
)

// statusChange is how a reconciliation changes a status. Everything that it does not name stays as it is: what others have
// written, and what the Go type does not know.
type statusChange struct {
	// fields is a merge patch of all but the conditions.
	fields map[string]any
	// conditions are those that were set, by type, and nil for those that were removed.
	conditions map[string]map[string]any
	// order has the types as they stand in the object.
	order []string
}

func (c statusChange) empty() bool { return len(c.fields) == 0 && len(c.conditions) == 0 }

// changeOf compares the status of an object with that before.
func changeOf(before, after map[string]any) statusChange {
	c := statusChange{fields: statusmap.FieldPatch(before, after), conditions: map[string]map[string]any{}}
	was, _ := statusmap.Conditions(before)
	is, order := statusmap.Conditions(after)
	c.order = order
	for t, condition := range is {
		condition = sinceThen(was[t], condition)
		if !reflect.DeepEqual(was[t], condition) {
			c.conditions[t] = condition
		}
	}
	for t := range was {
		if is[t] == nil {
			c.conditions[t] = nil
		}
	}
	return c
}

// sinceThen is a condition with the time of the last transition: that of the one before while it says the same.
func sinceThen(before, condition map[string]any) map[string]any {
	if before == nil || before["status"] != condition["status"] || before["lastTransitionTime"] == nil {
		return condition
	}
	condition = maps.Clone(condition)
	condition["lastTransitionTime"] = before["lastTransitionTime"]
	return condition
}

// against is the merge patch of the status for the object as the API server has it: a list can only be sent as a whole.
func (c statusChange) against(raw *unstructured.Unstructured) map[string]any {
	patch := maps.Clone(c.fields)
	if len(c.conditions) == 0 {
		return patch
	}
	status, _ := raw.Object["status"].(map[string]any)
	theirs, order := statusmap.Conditions(status)
	list := []any{}
	for _, t := range order {
		ours, changed := c.conditions[t]
		switch {
		case !changed:
			list = append(list, theirs[t])
		case ours != nil:
			list = append(list, sinceThen(theirs[t], ours))
		}
	}
	for _, t := range c.order {
		if ours := c.conditions[t]; ours != nil && theirs[t] == nil {
			list = append(list, ours)
		}
	}
	patch["conditions"] = list
	return patch
}

// writeStatus writes what the reconciliation has changed in the status, if anything, in one request. When somebody else
// changes the object at the same moment it is written to what the object is then. It tells whether that has come about; an
// object that is gone needs none.
func (r *APIReconciler[T, C]) writeStatus(ctx context.Context, o *object[T]) (written bool, err error) {
	after, err := statusmap.Of(o.obj)
	if err != nil {
		return false, err
	}
	change := changeOf(o.before, statusmap.Scrub(ctx, o.before, after))
	if change.empty() {
		return true, nil
	}
	err = retry.OnError(retry.DefaultBackoff, func(err error) bool { return errors.Is(err, errChanged) }, func() error {
		err := r.patchStatus(ctx, o, change.against(o.raw))
		if !errors.Is(err, errChanged) {
			return err
		}
		return errors.Join(err, r.refresh(ctx, o))
	})
	switch {
	case o.gone:
		return true, nil
	case errors.Is(err, errChanged):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("write the status: %w", err)
	}
	return true, nil
}

func (r *APIReconciler[T, C]) patchStatus(ctx context.Context, o *object[T], status map[string]any) error {
	if o.gone {
		return nil
	}
	body, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": o.raw.GetUID(), "resourceVersion": o.raw.GetResourceVersion()},
		"status":   status,
	})
	if err != nil {
		return err
	}
	err = r.onboarding.Client().Status().Patch(ctx, r.blank(o.request), client.RawPatch(types.MergePatchType, body))
	if apierrors.IsConflict(err) {
		return fmt.Errorf("%w: %w", errChanged, err)
	}
	if !apierrors.IsNotFound(err) && !errors.Is(err, notfound.ErrDoubtful) {
		return err
	}
	// Without a status subresource the answer is 404 too.
	refreshErr := r.refresh(ctx, o)
	if refreshErr != nil || o.gone {
		return refreshErr
	}
	return fmt.Errorf("the definition of %s has no status subresource; add one: %w", r.kind.Kind, err)
}
