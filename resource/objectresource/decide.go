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
// An object that covers what is desired is left as it is, without a request. Only when it does not, which may be a matter of
// defaults and notation, the server is asked by a dry run, which writes nothing, what applying would change.
func (r *objects[O]) Compare(ctx context.Context, existing *item, want item) (change item, err error) {
	if existing == nil {
		r.settled.forget(want.Key())
		return creation(want), nil
	}
	have := *existing
	if have.terminating() {
		requeuecontext.SetAfter(ctx, keyed.Vanishing)
		return item{}, nil
	}
	if have.key == want.key && coversObject(have.content.Object, want.content.Object) {
		r.settled.forget(want.Key())
		return item{}, nil
	}
	pair, err := serverside.PairOf(have.content.Object, want.content.Object)
	if err != nil {
		return item{}, fmt.Errorf("compare %s: %w", want.key, err)
	}
	if r.settled.is(want.Key(), pair) {
		return item{}, nil
	}
	if !have.live || have.key != want.key {
		live, found, err := r.Find(ctx, want)
		if err != nil {
			return item{}, err
		}
		if !found || live.content.GetResourceVersion() != have.content.GetResourceVersion() {
			return item{}, keyed.ErrStale
		}
		have = live
	}

	applied := pinned(want.content, have.content)
	err = r.writeAs(ctx, r.managerOf(have.content), applied, client.ForceOwnership, client.DryRunAll)
	switch {
	case err == nil:
		change = updating(have, applied, want)
	case apierrors.IsConflict(err):
		return item{}, fmt.Errorf("%w: %w", keyed.ErrStale, requestError("compare", want, err))
	case apierrors.IsInvalid(err) && slices.Contains(r.replaced, want.key.GVK):
		change, err = r.replacement(ctx, have, want, err)
	}
	if err != nil {
		return item{}, requestError("compare", want, err)
	}
	if change.action == "" {
		r.tellNotKept(ctx, want, applied)
		r.settled.remember(want.Key(), pair)
		return item{}, nil
	}
	return change, r.takeOver(have.content, &change)
}

// creation is the change that creates an object.
func creation(want item) item {
	fields := want.content.DeepCopy().Object
	if _, ok := want.given.(*unstructured.Unstructured); !ok {
		omission{empty: true}.from(reflect.ValueOf(want.given), fields)
	}
	delete(fields, "apiVersion")
	delete(fields, "kind")
	unstructured.RemoveNestedField(fields, "metadata", "name")
	unstructured.RemoveNestedField(fields, "metadata", "namespace")
	want.action = plan.Create
	want.fields = withoutBookkeeping(plan.Diff(nil, fields))
	if want.sensitive {
		plan.Hide(want.fields, plan.ShownOfSecret)
	}
	return want
}

// pinned returns what is applied to u, and to no other object or version of it.
func pinned(content, u *unstructured.Unstructured) *unstructured.Unstructured {
	content = content.DeepCopy()
	content.SetUID(u.GetUID())
	content.SetResourceVersion(u.GetResourceVersion())
	return content
}

// updating is the change that makes an object what applied is, without an action if that is the same. It has no fields if others are set than were
// applied last, and their values are there already.
func updating(have item, applied *unstructured.Unstructured, want item) item {
	fields := plan.Diff(serverside.Stable(have.content.Object), serverside.Stable(applied.Object))
	if len(fields) == 0 {
		return item{}
	}
	fields = withoutBookkeeping(fields)
	if want.sensitive {
		plan.Hide(fields, plan.ShownOfSecret)
	}
	want.action, want.claim, want.fields = plan.Update, have.claim, fields
	want.version = have.content.GetResourceVersion()
	want.content = pinned(want.content, have.content)
	return want
}

// Deletion implements keyed.Backend.
func (r *objects[O]) Deletion(have item) (item, bool) {
	if !have.terminating() {
		have.action = plan.Delete
		have.version = have.content.GetResourceVersion()
	}
	return have, r.config.WaitForDeletion
}
