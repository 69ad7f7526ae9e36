// Package outlive makes contexts that go on for some time when another one has ended.
package outlive

import (
	"context"
	"time"
)

// Context returns a context that ends some time after another one, with its cause. Who is given it calls cancel.
func Context(ctx context.Context, by time.Duration) (longer context.Context, cancel context.CancelFunc) {
	longer, end := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		timer := time.NewTimer(by)
		defer timer.Stop()
		select {
		case <-timer.C:
			end(context.Cause(ctx))
		case <-longer.Done():
		}
	})
	return longer, func() {
		stop()
		end(nil)
	}
}
