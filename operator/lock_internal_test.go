package operator

import (
	"bytes"
	"context"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/giantswarm/micrologger"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// leased is a lock with a lease that another replica holds, until it is deleted.
type leased struct {
	resourcelock.Interface
	record  *resourcelock.LeaderElectionRecord
	created bool
}

func (l *leased) Identity() string { return "self" }
func (l *leased) Describe() string { return "lease" }

func (l *leased) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	if l.record == nil {
		return nil, nil, apierrors.NewNotFound(schema.GroupResource{Resource: "leases"}, "lease")
	}
	return l.record, []byte(l.record.HolderIdentity), nil
}

func (l *leased) Create(context.Context, resourcelock.LeaderElectionRecord) error {
	l.created = true
	return nil
}

func TestALeaseThatWasEditedByHandBlocksNobodyForLong(t *testing.T) {
	const duration = 15 * time.Second
	var log bytes.Buffer
	logger, err := micrologger.New(micrologger.Config{IOWriter: &log})
	if err != nil {
		t.Fatal(err)
	}
	theirs := &leased{record: &resourcelock.LeaderElectionRecord{
		HolderIdentity: "dead", LeaseDurationSeconds: math.MaxInt32, LeaderTransitions: math.MaxInt32,
	}}
	now := time.Now()
	fence := NewFence()
	fence.now = func() time.Time { return now }
	lock := &observedLock{Interface: theirs, fence: fence, timeout: time.Second, duration: duration, logger: logger}
	for range 2 {
		record, _, err := lock.Get(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got := time.Duration(record.LeaseDurationSeconds) * time.Second; got != maxForeignLease*duration || record.LeaderTransitions != 0 {
			t.Errorf("the lease lasts for %s, with %d transitions", got, record.LeaderTransitions)
		}
	}
	if n := strings.Count(log.String(), "lasts longer"); n != 1 {
		t.Errorf("it is logged %d times:\n%s", n, log.String())
	}

	theirs.record = nil
	if _, _, err := lock.Get(t.Context()); !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	if err := lock.Create(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: "other"}); err == nil {
		t.Error("a lease that was deleted is created while its holder may work")
	}
	now = now.Add(maxForeignLease * duration)
	if err := lock.Create(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: "other"}); err != nil || !theirs.created {
		t.Errorf("the lease is not created: %v", err)
	}
}

func TestALeaseThatLastsAsLongAsItsHolderSaysIsLeftAsItIs(t *testing.T) {
	theirs := &leased{record: &resourcelock.LeaderElectionRecord{HolderIdentity: "live", LeaseDurationSeconds: 60, LeaderTransitions: 7}}
	lock := &observedLock{Interface: theirs, fence: NewFence(), timeout: time.Second, duration: 15 * time.Second}
	record, _, err := lock.Get(t.Context())
	if err != nil || *record != *theirs.record {
		t.Errorf("got %+v, %v", record, err)
	}
}
