package natscontroller

import (
	"context"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/informer/natsinformer"
)

// Secondary is a source of objects that the controller makes for its primaries, and what is needed to collect those whose
// primary is gone. Make one with Kube or Entities. The objects name their primary, and say who made them: see SetOwner.
type Secondary struct {
	source liveSource
	// bucket is where the entries are, and nil for objects of Kubernetes.
	bucket bucket
	// remove removes an object if it is exactly the one that was read.
	remove func(ctx context.Context, obj any) error
}

// liveSource is a source that can read past its store.
type liveSource interface {
	informer.Source
	informer.LiveReader
}

// secondarySource is a source of secondaries as the framework sees it: HandleSecondary finds the event that it is called for.
type secondarySource struct {
	informer.Source
	// handled are the events that are being handled, each a *handledEvent, by the objects in them.
	handled *sync.Map
}

// handledEvent is an event that HandleSecondary is called for: with the object as it is now, and as it was.
type handledEvent struct {
	informer.Event
	// owners are the keys of the primaries that have been told. One that both states name is told once: a worker may have begun with it
	// before the second call.
	owners sync.Map
}

// wake calls wake if the event is a reason to reconcile the primary, and it was not called for it yet.
func (h *handledEvent) wake(framework any, key informer.Key, wake func()) {
	if _, told := h.owners.LoadOrStore(key, true); !told {
		h.Wake(framework, key, wake)
	}
}

// Subscribe implements informer.Source.
func (s *secondarySource) Subscribe(h informer.Handler) (unsubscribe func()) {
	return s.Source.Subscribe(func(e informer.Event) {
		event := &handledEvent{Event: e}
		for _, obj := range []any{e.Object, e.Old} {
			if obj != nil {
				s.handled.Store(obj, event)
				defer s.handled.Delete(obj)
			}
		}
		h(e)
	})
}

// Kube is a Secondary of Kubernetes objects, marked by SetOwner. The client deletes garbage, and needs the verb delete.
func Kube(source *informer.Kubernetes, c client.Writer) Secondary {
	return Secondary{source: source, remove: func(ctx context.Context, obj any) error {
		o := obj.(client.Object)
		uid, version := o.GetUID(), o.GetResourceVersion()
		err := c.Delete(ctx, o, client.PropagationPolicy(metav1.DeletePropagationBackground),
			client.Preconditions{UID: &uid, ResourceVersion: &version})
		return client.IgnoreNotFound(err)
	}}
}

// EntitiesOption changes Entities.
type EntitiesOption uint8

// RequestDeletion asks for the deletion of garbage (natsinformer.Bucket.RequestDeletion) instead of purging it, for entries
// that another controller reconciles, which has to clean up after them.
const RequestDeletion EntitiesOption = 1

// Entities is a Secondary of entries in a bucket, marked by SetEntityOwner or made by package natsresource. Garbage is purged; for entries with
// finalizers, the deletion is asked for. The source forgets what is deleted (natsinformer.Source.ForgetDeleted), unless it is the Primary of
// a controller too.
func Entities[S natsinformer.Entity](source *natsinformer.Source[S], options ...EntitiesOption) Secondary {
	bucket := source.Bucket()
	source.ForgetDeleted()
	purges := !slices.Contains(options, RequestDeletion)
	return Secondary{source: source, bucket: bucket, remove: func(ctx context.Context, obj any) error {
		entity := obj.(S)
		if purges && len(entity.GetFinalizers()) == 0 {
			return bucket.Purge(ctx, entity)
		}
		now := metav1.Now()
		entity.EntityMeta().DeletionTimestamp = &now
		err := bucket.Update(ctx, entity)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	}}
}
