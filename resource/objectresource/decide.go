package objectresource

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/context/requeuecontext"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/resource/internal/keyed"
	"github.com/operatorkit/operatorkit/resource/internal/serverside"
)

// Compare implements keyed.Backend.
//
// An object that covers what is desired is left as it is, without a request. Only when it does not,
// which may be a matter of defaults and notation, the server is asked by a dry run, which writes
// nothing, what applying would change.
func (r *objects[O]) Compare(ctx context.Context, existing *item, want item) (change item, err error) {
	if existing == nil {
		r.settled.forget(want.Key)
		return creation(want), nil
	}
	have := *existing
	if have.Thing.terminating() {
		requeuecontext.SetAfter(ctx, keyed.Vanishing)
		return item{}, nil
	}
	if have.Thing.key == want.Thing.key && coversObject(have.Thing.content.Object, want.Thing.content.Object) {
		r.settled.forget(want.Key)
		return item{}, nil
	}
	pair, err := serverside.PairOf(have.Thing.content.Object, want.Thing.content.Object)
	if err != nil {
		return item{}, fmt.Errorf("compare %s: %w", want.Key, err)
	}
	if r.settled.is(want.Key, pair) {
		return item{}, nil
	}
	if !have.Thing.live || have.Thing.key != want.Thing.key {
		live, found, err := r.Find(ctx, want)
		if err != nil {
			return item{}, err
		}
		if !found || live.Thing.content.GetResourceVersion() != have.Thing.content.GetResourceVersion() {
			return item{}, keyed.ErrStale
		}
		have = live
	}

	applied := pinned(want.Thing.content, have.Thing.content)
	err = r.writeAs(ctx, r.managerOf(have.Thing.content), applied, client.ForceOwnership, client.DryRunAll)
	switch {
	case err == nil:
		change = updating(have, applied, want)
	case apierrors.IsConflict(err):
		return item{}, fmt.Errorf("%w: %w", keyed.ErrStale, requestError("compare", want, err))
	case apierrors.IsInvalid(err) && slices.Contains(r.replaced, want.Thing.key.GVK):
		change, err = r.replacement(ctx, have, want, err)
	}
	if err != nil {
		return item{}, requestError("compare", want, err)
	}
	if change.Change.Action == "" {
		r.tellNotKept(ctx, want, applied)
		r.settled.remember(want.Key, pair)
		return item{}, nil
	}
	return change, r.takeOver(have.Thing.content, &change)
}

// creation is the change that creates an object.
func creation(want item) item {
	creation := want
	creation.Change.Action = plan.Create
	creation.Created = func() []plan.FieldChange { return created(want) }
	return creation
}

// created returns the fields of an object that is created.
func created(want item) []plan.FieldChange {
	fields := want.Thing.content.DeepCopy().Object
	if _, ok := want.Thing.given.(*unstructured.Unstructured); !ok {
		omission{empty: true}.from(reflect.ValueOf(want.Thing.given), fields)
	}
	delete(fields, "apiVersion")
	delete(fields, "kind")
	unstructured.RemoveNestedField(fields, "metadata", "name")
	unstructured.RemoveNestedField(fields, "metadata", "namespace")
	changes := withoutBookkeeping(plan.Diff(nil, fields))
	if want.Sensitive {
		plan.Hide(changes, plan.ShownOfSecret)
	}
	return changes
}

// pinned returns what is applied to u, and to no other object or version of it.
func pinned(content, u *unstructured.Unstructured) *unstructured.Unstructured {
	content = content.DeepCopy()
	content.SetUID(u.GetUID())
	content.SetResourceVersion(u.GetResourceVersion())
	return content
}

// updating is the change that makes an object what applied is, without an action if that is the
// same. It has no fields if others are set than were applied last, and their values are there
// already.
func updating(have item, applied *unstructured.Unstructured, want item) item {
	fields := plan.Diff(serverside.Stable(have.Thing.content.Object), serverside.Stable(applied.Object))
	if len(fields) == 0 {
		return item{}
	}
	fields = withoutBookkeeping(fields)
	if want.Sensitive {
		plan.Hide(fields, plan.ShownOfSecret)
	}
	want.Change = have.Change
	want.Change.Action, want.Change.Fields = plan.Update, fields
	switch {
	case want.Thing.replaces:
		want.Change.Description = plan.Replaced + "deleted, without its dependents, and created anew"
	case len(fields) == 0:
		want.Change.Description = "other fields are set than before, and no value changes"
	}
	want.Thing.content = pinned(want.Thing.content, have.Thing.content)
	return want
}

// Deletion implements keyed.Backend.
func (r *objects[O]) Deletion(have item) (item, bool) {
	if !have.Thing.terminating() {
		have.Change.Action = plan.Delete
	}
	return have, r.config.WaitForDeletion
}
