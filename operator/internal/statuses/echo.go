package statuses

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

// Echoing is a client whose writes return when the sources of a reader have them, so that the next reconciliation, which often
// follows at once, does not work things out from what was before.
type Echoing struct {
	client.Client
	Reader client.Reader
}

// Create implements client.Client.
func (c *Echoing) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	if err := c.Client.Create(ctx, obj, opts...); err != nil {
		return err
	}
	AwaitEcho(ctx, c.Reader, obj)
	return nil
}

// Update implements client.Client.
func (c *Echoing) Update(ctx context.Context, obj client.Object, opts ...client.UpdateOption) error {
	if err := c.Client.Update(ctx, obj, opts...); err != nil {
		return err
	}
	AwaitEcho(ctx, c.Reader, obj)
	return nil
}

// Delete implements client.Client.
func (c *Echoing) Delete(ctx context.Context, obj client.Object, opts ...client.DeleteOption) error {
	if err := c.Client.Delete(ctx, obj, opts...); err != nil {
		return err
	}
	uid := obj.GetUID()
	await(ctx, c.Reader, obj, func(known client.Object) bool {
		return known == nil || known.GetUID() != uid || known.GetDeletionTimestamp() != nil
	})
	return nil
}

// AwaitEcho waits until the sources have an object as it was written, or a newer one.
func AwaitEcho(ctx context.Context, reader client.Reader, written client.Object) {
	await(ctx, reader, written, func(known client.Object) bool {
		if known == nil {
			return false
		}
		order, err := resourceversion.CompareResourceVersion(known.GetResourceVersion(), written.GetResourceVersion())
		return err != nil || order >= 0
	})
}

// await waits until the sources have an object as it should be. known is nil while they have none of this name.
func await(ctx context.Context, reader client.Reader, obj client.Object, holds func(known client.Object) bool) {
	key := client.ObjectKeyFromObject(obj)
	known := obj.DeepCopyObject().(client.Object) // of the same kind; each look replaces it
	_ = wait.PollUntilContextTimeout(ctx, echoPeriod, echoLimit, true, func(ctx context.Context) (bool, error) {
		err := reader.Get(ctx, key, known, client.UnsafeDisableDeepCopy)
		if apierrors.IsNotFound(err) {
			return holds(nil), nil
		}
		return err != nil || holds(known), nil
	}) // what is not seen in time is seen later
}
