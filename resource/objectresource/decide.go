package objectresource

import (
	"context"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/context/requeuecontext"
	"github.com/operatorkit/operatorkit/framework/identity"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/resource/internal/serverside"
)

// comparisons is how often an object is compared with what applying it would give while others are writing it.
const comparisons = 3

// decide returns what has to happen to a desired object: an item with the action Create or Update, or with none.
//
// An object that was not found is looked up first: it may be new to the store, or belong to somebody else. One that was
// found and covers what is desired is left as it is, without a request. Only when it does not, which may be a matter of
// defaults and notation, the server is asked what applying would change.
func (r *resource[O]) decide(ctx context.Context, own ownership, have item, found bool, want item) (item, error) {
	if !found {
		u, exists, err := r.lookUp(ctx, want.key)
		if err != nil {
			return item{}, err
		}
		if !exists {
			r.settled.forget(want.key)
			return creation(want), nil
		}
		have = item{key: want.key, content: u, live: true}
	}
	c, err := r.claim(own, want.key, have.content)
	if err != nil {
		return item{}, err
	}
	if c.IsFormer() {
		identity.Take(ctx, want.key.String())
	}
	if have.terminating() {
		requeuecontext.SetAfter(ctx, vanishing)
		return item{}, nil
	}
	if coversObject(have.content.Object, want.content.Object) {
		r.settled.forget(want.key)
		return item{}, nil
	}
	pair, err := serverside.PairOf(have.content.Object, want.content.Object)
	if err != nil {
		return item{}, fmt.Errorf("compare %s: %w", want.key, err)
	}
	if r.settled.is(want.key, pair) {
		return item{}, nil
	}

	change, at, err := r.ask(ctx, own, have, want)
	if err == nil && change.action == "" && at == have.content.GetResourceVersion() {
		r.settled.remember(want.key, pair)
	}
	return change, err
}

// creation is the change that creates an object.
func creation(want item) item {
	fields := maps.Clone(withoutEmptyStructs(want.given, want.content.Object))
	delete(fields, "apiVersion")
	delete(fields, "kind")
	if metadata, ok := fields["metadata"].(map[string]any); ok {
		metadata = maps.Clone(metadata)
		delete(metadata, "name")
		delete(metadata, "namespace")
		fields["metadata"] = metadata
	}
	want.action = plan.Create
	want.fields = withoutBookkeeping(plan.Diff(nil, fields))
	if want.sensitive {
		plan.Hide(want.fields, plan.ShownOfSecret)
	}
	return want
}

// ask finds out from the API server what applying would change, by a dry run, which writes nothing. It returns the
// change, and the resource version of the object that it holds for.
func (r *resource[O]) ask(ctx context.Context, own ownership, have, want item) (change item, at string, err error) {
	for attempt := 1; ; attempt++ {
		if !have.live {
			u, exists, err := r.lookUp(ctx, want.key)
			if err != nil {
				return item{}, "", err
			}
			if !exists {
				return creation(want), "", nil
			}
			have = item{key: want.key, content: u, live: true}
		}
		c, err := r.claim(own, want.key, have.content)
		if err != nil {
			return item{}, "", err
		}
		if have.terminating() {
			requeuecontext.SetAfter(ctx, vanishing)
			return item{}, "", nil
		}

		applied := pinned(want.content, have.content)
		err = r.writeAs(ctx, r.managerOf(own, have.content), applied, client.ForceOwnership, client.DryRunAll)
		if apierrors.IsConflict(err) && attempt < comparisons {
			have.live = false
			continue
		}
		var change item
		switch {
		case err == nil:
			if change = updating(have.content, applied, want); change.action == "" {
				r.tellNotKept(ctx, want, applied)
			}
		case apierrors.IsInvalid(err) && slices.Contains(r.replaced, want.key.GVK):
			if change, err = r.replacement(ctx, own, have.content, want, err); err != nil {
				return item{}, "", requestError("compare", want, err)
			}
		default:
			return item{}, "", requestError("compare", want, err)
		}
		if c.IsFormer() {
			err = r.takeOver(own, c, have.content, &change)
		}
		return change, have.content.GetResourceVersion(), err
	}
}

// pinned returns what is applied to u, and to no other object or version of it.
func pinned(content, u *unstructured.Unstructured) *unstructured.Unstructured {
	content = content.DeepCopy()
	content.SetUID(u.GetUID())
	content.SetResourceVersion(u.GetResourceVersion())
	return content
}

// updating is the change that makes u what applied is, without an action if that is the same. It has no fields if others are set than were
// applied last, and their values are there already.
func updating(u, applied *unstructured.Unstructured, want item) item {
	fields := plan.Diff(serverside.Stable(u.Object), serverside.Stable(applied.Object))
	if len(fields) == 0 {
		return item{}
	}
	fields = withoutBookkeeping(fields)
	if want.sensitive {
		plan.Hide(fields, plan.ShownOfSecret)
	}
	want.action = plan.Update
	want.version = u.GetResourceVersion()
	want.fields = fields
	want.content = pinned(want.content, u)
	return want
}
