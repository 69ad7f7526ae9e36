package statusresource

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer/notfound"
	"github.com/operatorkit/operatorkit/internal/statusmap"
)

// Write writes what differs between the statuses of two states of an object, as a resource with Config.Custom does: only what
// differs, and never over what somebody else has written meanwhile. It returns the object as it is then, or after itself when nothing
// differs. It is for statuses that are written outside of a reconciliation, such as those of a framework.PlanReporter. The error is one
// for which apierrors.IsConflict holds when somebody else has written meanwhile, and apierrors.IsNotFound when it is gone.
func Write[O client.Object](ctx context.Context, c client.Client, before, after O) (O, error) {
	changed, err := newChange(ctx, c, before, after)
	if err != nil || changed.empty() {
		return after, err
	}
	_, written, err := write(ctx, writer{client: notfound.Checked(c)}, before, changed, nil)
	if err == nil && written == nil {
		err = apierrors.NewNotFound(schema.GroupResource{Resource: changed.object.Kind}, before.GetName())
	}
	if err != nil {
		return after, err
	}
	return *written, nil
}

// writer writes statuses as a field manager, or as that of its client.
type writer struct {
	// client tells what is gone from what somebody answers 404 to (notfound.Checked).
	client  client.Client
	manager string
	// owners says whose conditions are not to be written. It may be nil.
	owners *owners
}

// errOther says that an object is not the one any more that a status is about.
var errOther = errors.New("it was replaced, or has another generation")

// write changes the status of an object, and returns what it has written over, and the object as it is then, or nil when it is gone.
// When somebody else has written meanwhile, again says how the newest status is to change, if it is about the same generation. Without
// again that is a conflict.
func write[O client.Object](ctx context.Context, w writer, obj O, c change, again func(newest O) (change, error)) (from O, written *O, err error) {
	look := again != nil && w.owners.concerned(c)
	seen, what := obj, c.object
	conflict := func(err error) bool { return again != nil && apierrors.IsConflict(err) && !errors.Is(err, errOther) }
	err = retry.OnError(retry.DefaultRetry, conflict, func() (err error) {
		if look {
			if obj, err = newestOf(ctx, w, seen, c); err != nil {
				return err
			}
			if c, err = again(obj); err != nil {
				return err
			}
		}
		look = true
		if c.empty() {
			written = &obj
			return nil
		}
		result, err := patch(ctx, w, obj, c)
		if err != nil {
			return err
		}
		written = &result
		return w.stored(result, c)
	})
	switch {
	case apierrors.IsNotFound(err), errors.Is(err, notfound.ErrDoubtful):
		return obj, nil, whyNotFound(ctx, w, seen, c)
	case err != nil:
		return obj, nil, fmt.Errorf("write the status of %s: %w", what, err)
	}
	return obj, written, nil
}

// patch sends a merge patch of a status, which applies only to the very object that it was made for.
func patch[O client.Object](ctx context.Context, w writer, obj O, c change) (O, error) {
	result := blank(obj)
	body, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": obj.GetUID(), "resourceVersion": obj.GetResourceVersion()}, "status": c.patch(metav1.Now()),
	})
	if err != nil {
		return result, err
	}
	var options []client.SubResourcePatchOption
	if w.manager != "" {
		options = append(options, client.FieldOwner(w.manager))
	}
	err = w.client.Status().Patch(ctx, result, client.RawPatch(types.MergePatchType, body), options...)
	result.GetObjectKind().SetGroupVersionKind(obj.GetObjectKind().GroupVersionKind())
	return result, err
}

// blank returns an object that is called like another one.
func blank[O client.Object](of O) O {
	o := reflect.New(reflect.TypeOf(of).Elem()).Interface().(O)
	o.GetObjectKind().SetGroupVersionKind(of.GetObjectKind().GroupVersionKind())
	o.SetNamespace(of.GetNamespace())
	o.SetName(of.GetName())
	return o
}

// live returns an object as it is now. That it is gone is true: the client of w is a notfound.Checked.
func live[O client.Object](ctx context.Context, w writer, obj O) (O, error) {
	now := blank(obj)
	err := w.client.Get(ctx, client.ObjectKeyFromObject(obj), now)
	now.GetObjectKind().SetGroupVersionKind(obj.GetObjectKind().GroupVersionKind())
	return now, err
}

// newestOf returns the object as it is now, if it is of the same life and generation, and nobody else's conditions are to be written.
func newestOf[O client.Object](ctx context.Context, w writer, seen O, c change) (O, error) {
	newest, err := live(ctx, w, seen)
	if err != nil {
		return newest, err
	}
	if newest.GetUID() != seen.GetUID() || newest.GetGeneration() != seen.GetGeneration() {
		conflict := apierrors.NewConflict(schema.GroupResource{Resource: c.object.Kind}, seen.GetName(), errOther)
		return newest, fmt.Errorf("%w: %w", errOther, conflict)
	}
	return newest, w.owners.allow(newest, c)
}

// stored is an error when the definition of the kind has no place for what was written.
func (w writer) stored(result client.Object, c change) error {
	if w.owners == nil {
		return nil
	}
	status, err := statusmap.Of(result)
	if err != nil {
		return err
	}
	conditions, _ := statusmap.Conditions(status)
	for t, condition := range c.conditions() {
		if condition != nil && conditions[t] == nil {
			return framework.Permanent(fmt.Errorf("the API server has dropped condition %s: add status.conditions, a list of metav1.Condition, to the definition of %s", t, c.object.Kind))
		}
	}
	if c.after["observedGeneration"] != nil && status["observedGeneration"] == nil {
		return framework.Permanent(fmt.Errorf("the API server has dropped it: add status.observedGeneration, an integer, to the definition of %s", c.object.Kind))
	}
	return nil
}

// whyNotFound is nil for an object that is gone, which needs no status. That of one that is there is tried again: the answer may have been
// wrong.
func whyNotFound[O client.Object](ctx context.Context, w writer, obj O, c change) error {
	now, err := live(ctx, w, obj)
	switch {
	case apierrors.IsNotFound(err), err == nil && now.GetUID() != obj.GetUID():
		return nil
	case err != nil:
		return fmt.Errorf("look for %s after its status was not found: %w", c.object, err)
	}
	return fmt.Errorf("the status of %s is not found: if it stays so, add the status subresource to the definition of its kind (+kubebuilder:subresource:status)", c.object)
}
