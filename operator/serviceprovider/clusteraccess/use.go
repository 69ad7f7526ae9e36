package clusteraccess

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/operator/serviceprovider/v1alpha1"
)

// looksPerTold is how often it is looked what is used, for once that it is told.
const looksPerTold = 12

// tellUses tells the platform from time to time, until ctx ends, which access is used: what was handed out and not let go.
func (c *Clusters[D]) tellUses(ctx context.Context) {
	if c.config.TellUses < 0 {
		return
	}
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		for _, key := range c.inUse() {
			if err := c.tellUse(ctx, key); err != nil && ctx.Err() == nil {
				c.config.Logger.LogCtx(ctx, "level", "warning", "message", "can't tell that access is used; it is tried again", "request", key.String(), "error", err.Error())
			}
		}
	}, max(c.config.TellUses/looksPerTold, time.Millisecond))
}

// inUse are the requests whose access was handed out.
func (c *Clusters[D]) inUse() (keys []client.ObjectKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, used := range c.used {
		if used.cluster != nil {
			keys = append(keys, used.key)
		}
	}
	return keys
}

// tellUse notes in a request that its access is used, unless that was noted not long ago.
func (c *Clusters[D]) tellUse(ctx context.Context, key client.ObjectKey) error {
	ar := &v1alpha1.AccessRequest{}
	if err := c.reader.Get(ctx, key, ar); err != nil {
		return client.IgnoreNotFound(err)
	}
	now := time.Now()
	if told, err := time.Parse(time.RFC3339, ar.Annotations[v1alpha1.UsedAnnotation]); err == nil && now.Sub(told) < c.config.TellUses || ar.DeletionTimestamp != nil {
		return nil
	}
	before := ar.DeepCopy()
	metav1.SetMetaDataAnnotation(&ar.ObjectMeta, v1alpha1.UsedAnnotation, now.UTC().Format(time.RFC3339))
	err := c.client.Patch(ctx, ar, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) || errors.Is(err, context.Canceled) { // it is looked at again
		return nil
	}
	return err
}
