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
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
)

// GetCurrentState implements framework.TypedCRUDResourceOps. It returns the objects that carry the label of the primary
// and this resource, also under its former names, in the order of the kinds and then of their names.
func (r *resource[O]) GetCurrentState(ctx context.Context, obj O) (State, error) {
	own, err := r.ownership(ctx, obj)
	if err != nil {
		return State{}, err
	}
	namespaces := r.namespaces(obj, own.owner)
	var state State
	for _, k := range r.kinds {
		items, err := r.ownedOf(ctx, k, own.labels(), namespaces)
		if err != nil {
			return State{}, err
		}
		mark(ctx, items...)
		slices.SortFunc(items, func(a, b item) int { return strings.Compare(a.key.place(), b.key.place()) })
		state.Items = append(state.Items, items...)
	}
	return state, nil
}

func (r *resource[O]) ownedOf(ctx context.Context, k kind, owned, namespaces []string) ([]item, error) {
	if k.store != nil && k.store.Status().Synced {
		if err := holdsAll(k, namespaces); err != nil {
			return nil, err
		}
		return storedItems(k, owned)
	}
	if namespaced, err := r.config.Client.IsObjectNamespaced(Key{GVK: k.gvk}.empty()); meta.IsNoMatchError(err) {
		return nil, nil // The definition of the kind is not installed: there is nothing of it.
	} else if err != nil {
		return nil, fmt.Errorf("find out whether a %s has a namespace: %w", k.gvk.GroupKind(), err)
	} else if !namespaced || slices.Contains(namespaces, metav1.NamespaceAll) {
		namespaces = []string{metav1.NamespaceAll}
	}

	isOwned, err := labels.NewRequirement(OwnerLabel, selection.In, owned)
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
			u := &list.Items[i]
			u.SetGroupVersionKind(k.gvk)
			items = append(items, item{key: keyOf(k.gvk, u), content: u, live: true, sensitive: isSecret(k.gvk)})
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
func (r *resource[O]) lacked(ctx context.Context, obj O, own ownership, current State) ([]item, error) {
	namespaces := r.namespaces(obj, own.owner)
	var lacked []item
	for _, k := range r.kinds {
		if k.store == nil || r.collected(k, own.owner, namespaces) {
			continue
		}
		items, err := r.ownedOf(ctx, kind{gvk: k.gvk}, own.labels(), namespaces)
		if err != nil {
			return nil, err
		}
		lacked = append(lacked, slices.DeleteFunc(items, func(there item) bool {
			return slices.ContainsFunc(current.Items, func(known item) bool { return known.key.unversioned() == there.key.unversioned() })
		})...)
	}
	mark(ctx, lacked...)
	return lacked, nil
}

// collected tells whether all objects of a kind have an owner reference.
func (r *resource[O]) collected(k kind, owner Owner, namespaces []string) bool {
	namespaced, err := r.config.Client.IsObjectNamespaced(Key{GVK: k.gvk}.empty())
	if err == nil && !namespaced {
		namespaces = []string{metav1.NamespaceNone}
	}
	return err == nil && !slices.ContainsFunc(namespaces, func(namespace string) bool {
		_, referred := owner.reference(namespace)
		return !referred
	})
}

// storedItems reads the objects of a primary from a store.
func storedItems(k kind, owned []string) ([]item, error) {
	var objects []any
	for _, label := range owned {
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
		u.SetGroupVersionKind(k.gvk)
		items = append(items, item{key: keyOf(k.gvk, u), content: u, sensitive: isSecret(k.gvk)})
	}
	return items, nil
}

// lookUp reads an object from the API server. An object of a kind that is not installed is not there.
func (r *resource[O]) lookUp(ctx context.Context, key Key) (*unstructured.Unstructured, bool, error) {
	u := key.empty()
	err := r.config.Client.Get(ctx, client.ObjectKey{Namespace: key.Namespace, Name: key.Name}, u)
	switch {
	case apierrors.IsNotFound(err) || meta.IsNoMatchError(err):
		return nil, false, nil
	case err != nil:
		return nil, false, fmt.Errorf("read %s: %w", key, err)
	}
	u.SetGroupVersionKind(key.GVK)
	return u, true, nil
}
