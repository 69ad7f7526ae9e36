package operator

import (
	"context"
	"time"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// observedLock tells a fence of what happens to a lock, and bounds each request: one that hangs must not cost the lease.
type observedLock struct {
	resourcelock.Interface
	fence   *Fence
	timeout time.Duration
}

// Get implements resourcelock.Interface.
func (l *observedLock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	ctx, cancel := l.bound(ctx)
	defer cancel()
	record, raw, err := l.Interface.Get(ctx)
	if err == nil && record.HolderIdentity != l.Identity() {
		l.fence.close()
	}
	return record, raw, err
}

// Create implements resourcelock.Interface.
func (l *observedLock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(ctx, record, l.Interface.Create)
}

// Update implements resourcelock.Interface.
func (l *observedLock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(ctx, record, l.Interface.Update)
}

func (l *observedLock) write(ctx context.Context, record resourcelock.LeaderElectionRecord,
	write func(context.Context, resourcelock.LeaderElectionRecord) error,
) error {
	ctx, cancel := l.bound(ctx)
	defer cancel()
	held := record.HolderIdentity == l.Identity()
	if !held {
		// The lease may be given up as soon as the request is under way.
		l.fence.close()
	}
	start := l.fence.now()
	err := write(ctx, record)
	if err == nil && held {
		l.fence.renewed(start)
	}
	return err
}

func (l *observedLock) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(withoutFence(ctx), l.timeout)
}
