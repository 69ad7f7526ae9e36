package objectresource

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/resource/internal/keyed"
)

// List implements keyed.Backend. It returns the objects that carry the label of the primary and
// this resource, also under its former names, in the order of the kinds and then of their names. Of
// an object whose kind is named in several versions, it returns that in the first of them in which
// the API server has it.
func (r *objects[O]) List(ctx context.Context) (state State, err error) {
	seen := map[Key]bool{}
	for _, k := range r.kinds {
		items, err := r.ownedOf(ctx, k)
		if err != nil {
			return state, err
		}
		slices.SortFunc(items, func(a, b item) int { return strings.Compare(a.Thing.key.place(), b.Thing.key.place()) })
		for _, it := range items {
			if !seen[it.Key] {
				seen[it.Key] = true
				state.Items = append(state.Items, it)
			}
		}
	}
	mark(ctx, state.Items...)
	return state, nil
}

// found returns an object that exists.
func (r *objects[O]) found(gvk schema.GroupVersionKind, u *unstructured.Unstructured, live bool) item {
	it := newItem(gvk, object{content: u, live: live})
	it.Claim = r.claimOn(u)
	return it
}

func (r *objects[O]) ownedOf(ctx context.Context, k kind) ([]item, error) {
	namespaces := r.namespaces
	if k.store != nil && k.store.Status().Synced {
		if err := holdsAll(k, namespaces); err != nil {
			return nil, err
		}
		return r.stored(k)
	}
	if namespaced, err := r.config.Client.IsObjectNamespaced(Key{GVK: k.gvk}.empty()); meta.IsNoMatchError(err) {
		return nil, nil // The definition of the kind is not installed: there is nothing of it.
	} else if err != nil {
		return nil, fmt.Errorf("find out whether a %s has a namespace: %w", k.gvk.GroupKind(), err)
	} else if !namespaced || slices.Contains(namespaces, metav1.NamespaceAll) {
		namespaces = []string{metav1.NamespaceAll}
	}

	isOwned, err := labels.NewRequirement(OwnerLabel, selection.In, r.labels())
	if err != nil {
		return nil, fmt.Errorf("select the objects of kind %s: %w", k.gvk.GroupKind(), err)
	}
	var items []item
	for _, namespace := range namespaces {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(k.gvk.GroupVersion().WithKind(k.gvk.Kind + "List"))
		err := r.config.Client.List(ctx, list, client.InNamespace(namespace),
			client.MatchingLabelsSelector{Selector: labels.NewSelector().Add(*isOwned)})
		if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("list the objects of kind %s: %w", k.gvk.GroupKind(), err)
		}
		for i := range list.Items {
			items = append(items, r.found(k.gvk, &list.Items[i], true))
		}
	}
	return items, nil
}

// holdsAll returns an error if a store holds a part of what there may be of a primary.
func holdsAll(k kind, namespaces []string) error {
	part, ok := k.store.(interface{ Holds(namespace string) bool })
	if !ok {
		return nil
	}
	for _, namespace := range namespaces {
		if !part.Holds(namespace) {
			return fmt.Errorf("objects of kind %s may be in the namespaces %q, and replicas share the work, so that the store holds those of some namespaces only: "+
				"give Stores and Watches what Dependencies.Own(…).InAllNamespaces() returns, or call HoldAll of the source", k.gvk.GroupKind(), namespaces)
		}
	}
	return nil
}

// lacked returns the objects of a primary that the API server has and a store has not, because a list left them out or their events are late,
// as far as nothing takes them away once the primary is gone: Kubernetes does that with those that have an owner reference.
func (r *objects[O]) lacked(ctx context.Context, current State) (lacked []item, err error) {
	known := current.ByKey()
	for _, k := range r.kinds {
		if k.store == nil || r.collected(k) {
			continue
		}
		items, err := r.ownedOf(ctx, kind{gvk: k.gvk})
		if err != nil {
			return nil, err
		}
		for _, it := range items {
			if _, found := known[it.Key]; !found && it.Claim.Holder == keyed.Ours {
				lacked = append(lacked, it)
			}
		}
	}
	mark(ctx, lacked...)
	return lacked, nil
}

// collected tells whether all objects of a kind have an owner reference.
func (r *objects[O]) collected(k kind) bool {
	namespaces := r.namespaces
	namespaced, err := r.config.Client.IsObjectNamespaced(Key{GVK: k.gvk}.empty())
	if err == nil && !namespaced {
		namespaces = []string{metav1.NamespaceNone}
	}
	return err == nil && !slices.ContainsFunc(namespaces, func(namespace string) bool {
		_, referred := r.owner.reference(namespace)
		return !referred
	})
}

// stored reads the objects from a store.
func (r *objects[O]) stored(k kind) ([]item, error) {
	var objects []any
	for _, label := range r.labels() {
		found, err := k.store.ByIndex(OwnerIndex, label)
		if err != nil {
			return nil, framework.Permanent(fmt.Errorf("read the store of %s: %w: give it the index of OwnerIndexers", k.gvk.GroupKind(), err))
		}
		objects = append(objects, found...)
	}
	items := make([]item, 0, len(objects))
	for _, o := range objects {
		var u *unstructured.Unstructured
		switch o := o.(type) {
		case *unstructured.Unstructured:
			u = o
		case *metav1.PartialObjectMetadata:
			return nil, framework.Permanent(fmt.Errorf("the store of %s holds metadata only: have it hold whole objects", k.gvk.GroupKind()))
		default:
			fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
			if err != nil {
				return nil, framework.Permanent(fmt.Errorf("convert a %T of the store of %s: %w", o, k.gvk.GroupKind(), err))
			}
			u = &unstructured.Unstructured{Object: fields}
		}
		items = append(items, r.found(k.gvk, u, false))
	}
	return items, nil
}

// Find implements keyed.Backend. It reads an object from the API server. An object of a kind that
// is not installed is not there.
func (r *objects[O]) Find(ctx context.Context, want item) (item, bool, error) {
	u := want.Thing.key.empty()
	err := r.config.Client.Get(ctx, client.ObjectKeyFromObject(u), u)
	switch {
	case apierrors.IsNotFound(err) || meta.IsNoMatchError(err):
		return item{}, false, nil
	case err != nil:
		return item{}, false, fmt.Errorf("read %s: %w", want.Key, err)
	}
	return r.found(want.Thing.key.GVK, u, true), true, nil
}
