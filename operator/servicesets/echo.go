package servicesets

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// echoLimit is how long a write waits for the source at most. Without it, the next reconciliation may end in a conflict,
	// which costs a retry and breaks nothing.
	echoLimit = 10 * time.Second
	// echoPeriod is the pause between two looks.
	echoPeriod = 2 * time.Millisecond
)

// echoing is a client whose writes return when the source has them, so that the next reconciliation, which often follows at
// once, does not work things out from what was before.
type echoing struct {
	client.Client
	sources *sources
}

// Create implements client.Client.
func (c *echoing) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	if err := c.Client.Create(ctx, obj, opts...); err != nil {
		return err
	}
	c.sources.awaitEcho(ctx, obj)
	return nil
}

// Update implements client.Client.
func (c *echoing) Update(ctx context.Context, obj client.Object, opts ...client.UpdateOption) error {
	if err := c.Client.Update(ctx, obj, opts...); err != nil {
		return err
	}
	c.sources.awaitEcho(ctx, obj)
	return nil
}

// Delete implements client.Client.
func (c *echoing) Delete(ctx context.Context, obj client.Object, opts ...client.DeleteOption) error {
	if err := c.Client.Delete(ctx, obj, opts...); err != nil {
		return err
	}
	uid := obj.GetUID()
	c.sources.await(ctx, obj, func(known client.Object) bool {
		return known == nil || known.GetUID() != uid || known.GetDeletionTimestamp() != nil
	})
	return nil
}

// awaitEcho waits until a source has an object as it was written, or a newer one.
func (s *sources) awaitEcho(ctx context.Context, written client.Object) {
	s.await(ctx, written, func(known client.Object) bool {
		if known == nil {
			return false
		}
		order, err := resourceversion.CompareResourceVersion(known.GetResourceVersion(), written.GetResourceVersion())
		return err != nil || order >= 0
	})
}

// await waits until a source has an object as it should be. known is nil while it has none of this name.
func (s *sources) await(ctx context.Context, obj client.Object, holds func(known client.Object) bool) {
	key := client.ObjectKeyFromObject(obj)
	known := obj.DeepCopyObject().(client.Object) // of the same kind; each look replaces it
	_ = wait.PollUntilContextTimeout(ctx, echoPeriod, echoLimit, true, func(ctx context.Context) (bool, error) {
		err := s.reader.Get(ctx, key, known, client.UnsafeDisableDeepCopy)
		if apierrors.IsNotFound(err) {
			return holds(nil), nil
		}
		return err != nil || holds(known), nil
	}) // what is not seen in time is seen later
}
