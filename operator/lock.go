package operator

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"time"

	"github.com/giantswarm/micrologger"
	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// observedLock reports the events of a lock to a fence, and bounds each request: a request that
// hangs must not cost the lease. If a replica holds the lease and finds it gone, or with another
// holder, it has lost it. It is not safe for concurrent use.
type observedLock struct {
	resourcelock.Interface
	fence   *Fence
	timeout time.Duration
	// duration is the LeaseDuration of this replica.
	duration time.Duration
	logger   micrologger.Logger
	// lost is called when the lease turns out to be lost.
	lost func(error)
	// renewals counts the tries to get or renew the lease, by result.
	renewals *prometheus.CounterVec

	// rival is the last record of another holder, and until is when its lease ends unless renewed.
	rival []byte
	until time.Time
}

// maxForeignLease limits the duration of another replica's lease, as a multiple of this replica's.
// A longer one was edited by hand: a live replica would have corrected it, and a dead one would
// block the others for that long.
const maxForeignLease = 10

// Get implements resourcelock.Interface.
func (l *observedLock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	ctx, cancel := l.bound(ctx)
	defer cancel()
	record, raw, err := l.Interface.Get(ctx)
	switch {
	case apierrors.IsNotFound(err) && l.fence.holdsLease():
		// The elector would create another lease, and others may have done so.
		return nil, nil, l.lose("it was deleted")
	case err != nil:
		if l.fence.holdsLease() {
			l.renewals.WithLabelValues("failure").Inc()
		}
		return nil, nil, err
	case record.HolderIdentity == l.Identity():
		return record, raw, nil
	case l.fence.holdsLease():
		// The elector would acquire it again, as if it had held it all the time.
		why := "nobody holds it any more"
		if record.HolderIdentity != "" {
			why = fmt.Sprintf("it is held by %q", record.HolderIdentity)
		}
		return nil, nil, l.lose(why)
	}
	known := *record
	l.correct(&known, !bytes.Equal(raw, l.rival))
	l.observe(&known, raw)
	return &known, raw, nil
}

// correct replaces values that no replica can have written into the lease of another one.
func (l *observedLock) correct(record *resourcelock.LeaderElectionRecord, isNew bool) {
	limit := maxForeignLease * l.duration
	if says := time.Duration(record.LeaseDurationSeconds) * time.Second; says > limit && record.HolderIdentity != "" {
		if isNew {
			l.logger.Log("level", "info", "message", "the lease says that it lasts longer than any of this operator: unless its holder renews it, it is taken over "+
				"as if it lasted for the limit; if the holder is gone, nothing need be done", "holder", record.HolderIdentity, "says", says, "limit", limit)
		}
		record.LeaseDurationSeconds = int(limit / time.Second)
	}
	if record.LeaderTransitions >= math.MaxInt32 {
		record.LeaderTransitions = 0 // The next number would not be valid in a Lease.
	}
}

// observe notes how long another replica may hold the lease.
func (l *observedLock) observe(record *resourcelock.LeaderElectionRecord, raw []byte) {
	if bytes.Equal(raw, l.rival) {
		return
	}
	l.rival, l.until = bytes.Clone(raw), time.Time{}
	if record.HolderIdentity != "" {
		l.until = l.fence.now().Add(time.Duration(record.LeaseDurationSeconds) * time.Second)
	}
}

// Create implements resourcelock.Interface. The holder of a deleted lease may still work until its
// time is over.
func (l *observedLock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	if left := l.until.Sub(l.fence.now()); left > 0 {
		return fmt.Errorf("lease %s was deleted: who held it may work for another %s, after which it is created", l.Describe(), left.Round(time.Millisecond))
	}
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
		// Another replica may acquire the lease as soon as the request is sent.
		l.fence.close()
	}
	start := l.fence.now()
	err := write(ctx, record)
	if !held {
		return err
	}
	if err != nil {
		l.renewals.WithLabelValues("failure").Inc()
		return err
	}
	l.renewals.WithLabelValues("success").Inc()
	l.fence.renewed(start)
	return nil
}

// lose closes the fence for good and returns why.
func (l *observedLock) lose(why string) error {
	l.fence.lose()
	err := fmt.Errorf("%w: lease %s: %s", ErrLeaseLost, l.Describe(), why)
	l.lost(err)
	return err
}

func (l *observedLock) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(withoutFence(ctx), l.timeout)
}

// commonLock is a lock that several replicas hold together, under one identity, until the last of
// them is gone.
type commonLock struct{ resourcelock.Interface }

// Create implements resourcelock.Interface. It is not a failure if another one of its holders has
// created it.
func (l commonLock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	err := l.Interface.Create(ctx, record)
	if apierrors.IsAlreadyExists(err) && l.holds(ctx) {
		return l.Update(ctx, record)
	}
	return err
}

// Update implements resourcelock.Interface. It is not a failure if another one of its holders has
// renewed it meanwhile.
func (l commonLock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	err := l.Interface.Update(ctx, record)
	if !apierrors.IsConflict(err) || !l.holds(ctx) {
		return err
	}
	err = l.Interface.Update(ctx, record)
	if apierrors.IsConflict(err) && l.holds(ctx) {
		return nil // It was renewed after it was found, and so after Update was called.
	}
	return err
}

// holds reports whether the replicas hold the lock, and makes the next Update replace the state it
// has read.
func (l commonLock) holds(ctx context.Context) bool {
	now, _, err := l.Get(ctx)
	return err == nil && now.HolderIdentity == l.Identity()
}
