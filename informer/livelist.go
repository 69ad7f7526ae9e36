package informer

import (
	"context"
	"fmt"
	"maps"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// livePage is how many objects each page of a metadata list has at most.
const livePage = 500

// How long HasAll waits for the events of missing objects, and how often it checks.
const (
	eventsWithin = time.Second
	eventsEach   = 10 * time.Millisecond
)

// Behind implements [Comparer] by one list of metadata.
func (k *Kubernetes) Behind(ctx context.Context, of func(key Key) bool) (map[Key]Lag, error) {
	unlisted, behind := map[Key]bool{}, map[Key]Lag{}
	for _, key := range k.Keys() {
		if of(key) {
			unlisted[key] = true
		}
	}
	err := k.listLive(ctx, func(key Key, obj *metav1.PartialObjectMetadata) {
		if !of(key) {
			return
		}
		delete(unlisted, key)
		if !k.hasVersion(key, obj.ResourceVersion) {
			behind[key] = Lag{UID: obj.UID, Version: obj.ResourceVersion}
		}
	})
	if err != nil {
		return nil, err
	}
	// While no event is being delivered, the handlers have heard of all deletions that the store shows.
	k.delivery.Lock()
	defer k.delivery.Unlock()
	for key := range unlisted {
		if obj, exists, err := k.Get(key); err == nil && exists {
			behind[key] = Lag{UID: obj.(client.Object).GetUID(), Gone: true}
		}
	}
	return behind, nil
}

// listLive lists the metadata of the objects that the source selects.
func (k *Kubernetes) listLive(ctx context.Context, yield func(key Key, obj *metav1.PartialObjectMetadata)) error {
	for _, namespace := range k.namespaces() {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(k.gvk.GroupVersion().WithKind(k.gvk.Kind + "List"))
		for first := true; first || list.Continue != ""; first = false {
			err := k.client.List(ctx, list, &client.ListOptions{
				Namespace: namespace, Limit: livePage, Continue: list.Continue,
				LabelSelector: k.config.LabelSelector, FieldSelector: k.config.FieldSelector,
			})
			if err != nil {
				return fmt.Errorf("list %s: %w", k.Name(), err)
			}
			for i := range list.Items {
				if k.Holds(list.Items[i].Namespace) {
					yield(client.ObjectKeyFromObject(&list.Items[i]), &list.Items[i])
				}
			}
		}
	}
	return nil
}

// HasAll reports whether the source has all objects that the other side had when HasAll was called,
// each at least as new. An object is missing if a list lacked it or its event is late. HasAll waits
// up to a second for events. A caller that releases something because no object in the source uses
// it calls HasAll first, and reads the source afterwards.
func (k *Kubernetes) HasAll(ctx context.Context) (bool, error) {
	behind, err := k.Behind(ctx, func(Key) bool { return true })
	if err != nil {
		return false, err
	}
	err = wait.PollUntilContextTimeout(ctx, eventsEach, eventsWithin, true, func(context.Context) (bool, error) {
		maps.DeleteFunc(behind, func(key Key, lag Lag) bool { return lag.Gone || k.hasVersion(key, lag.Version) })
		return len(behind) == 0, nil
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		err = nil
	}
	return err == nil && len(behind) == 0, err
}

// hasVersion reports whether the source has an object in this version or a newer one.
func (k *Kubernetes) hasVersion(key Key, version string) bool {
	k.mu.RLock()
	defer k.mu.RUnlock()
	has, exists := k.store.entries[key]
	return exists && !IsOlder(has.version, version)
}
