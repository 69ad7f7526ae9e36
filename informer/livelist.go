package informer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// livePage is how many objects ListLive asks for at once.
const livePage = 500

// HasAll waits for events of what the source lacked, this long and looking this often.
const (
	eventsWithin = time.Second
	eventsEach   = 10 * time.Millisecond
)

// errListedOld is what a server lags with, or a proxy that answers for it.
var errListedOld = errors.New("the listing is older than an answer before it")

// ListLive implements [LiveLister]: it lists the metadata of what the source selects, and believes a listing only that is as new as what a
// list of one, which is not kept for anybody, was answered with before.
func (k *Kubernetes) ListLive(ctx context.Context, yield func(key Key, obj any)) error {
	selector, err := k.selector()
	if err != nil {
		return fmt.Errorf("list %s: %w", k.Name(), err)
	}
	for _, namespace := range k.namespaces() {
		now, err := k.listLive(ctx, &client.ListOptions{Namespace: namespace, Limit: 1})
		if err != nil {
			return err
		}
		options := &client.ListOptions{
			Namespace: namespace, Limit: livePage,
			LabelSelector: k.config.LabelSelector, FieldSelector: k.config.FieldSelector,
			Raw: &metav1.ListOptions{ShardSelector: selector},
		}
		for page := now; options.Continue != "" || page == now; options.Continue = page.Continue {
			if page, err = k.listLive(ctx, options); err != nil {
				return err
			}
			if order, err := resourceversion.CompareResourceVersion(page.ResourceVersion, now.ResourceVersion); err != nil || order < 0 {
				return errors.Join(fmt.Errorf("list %s: %w", k.Name(), errListedOld), err)
			}
			for i := range page.Items {
				if !k.Holds(page.Items[i].Namespace) {
					continue
				}
				yield(client.ObjectKeyFromObject(&page.Items[i]), &page.Items[i])
			}
		}
	}
	return nil
}

// HasAll tells whether the source has everything that the other side had when it was called, and each object at least as new: what a list
// lacked, or an event that is late, is missing. It waits a second for events. Who lets something go because no object in the source
// uses it asks this first, and looks into the source after it.
func (k *Kubernetes) HasAll(ctx context.Context) (bool, error) {
	behind := map[Key]string{}
	err := k.ListLive(ctx, func(key Key, obj any) { behind[key] = obj.(*metav1.PartialObjectMetadata).ResourceVersion })
	if err != nil {
		return false, err
	}
	err = wait.PollUntilContextTimeout(ctx, eventsEach, eventsWithin, true, func(context.Context) (bool, error) {
		for key, version := range behind {
			has, err := k.hasVersion(key, version)
			if err != nil {
				return false, err
			}
			if has {
				delete(behind, key)
			}
		}
		return len(behind) == 0, nil
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		err = nil
	}
	return err == nil && len(behind) == 0, err
}

// hasVersion tells whether the source has an object as it is in a version, or newer.
func (k *Kubernetes) hasVersion(key Key, version string) (bool, error) {
	obj, exists, err := k.Get(key)
	if err != nil || !exists {
		return false, err
	}
	has, err := meta.Accessor(obj)
	if err != nil {
		return false, err
	}
	order, err := resourceversion.CompareResourceVersion(has.GetResourceVersion(), version)
	return order >= 0, err
}

func (k *Kubernetes) listLive(ctx context.Context, options *client.ListOptions) (*metav1.PartialObjectMetadataList, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(k.gvk.GroupVersion().WithKind(k.gvk.Kind + "List"))
	if err := k.client.List(ctx, list, options); err != nil {
		return nil, fmt.Errorf("list %s: %w", k.Name(), err)
	}
	return list, nil
}
