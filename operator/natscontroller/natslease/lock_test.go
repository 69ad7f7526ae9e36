package natslease_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/logging"
	"github.com/operatorkit/operatorkit/operator/natscontroller/natslease"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/operator/operatortest/natsserver"
)

func TestMain(m *testing.M) { operatortest.VerifyTestMain(m) }

const bucket = "leases"

func connect(t *testing.T) (*natsserver.Server, jetstream.JetStream) {
	t.Helper()
	server := natsserver.Start(t)
	_, js := server.Connect(t)
	natsserver.NewBucket(t, js, jetstream.KeyValueConfig{Bucket: bucket})
	return server, js
}

func newLock(t *testing.T, js jetstream.JetStream, identity string) *natslease.Lock {
	t.Helper()
	lock, err := natslease.New(natslease.Config{JetStream: js, Bucket: bucket, Key: "controller", Identity: identity})
	if err != nil {
		t.Fatal(err)
	}
	return lock
}

func recordOf(identity string) resourcelock.LeaderElectionRecord {
	now := metav1.Now().Rfc3339Copy()
	return resourcelock.LeaderElectionRecord{HolderIdentity: identity, LeaseDurationSeconds: 15, AcquireTime: now, RenewTime: now}
}

func TestLockIsTakenByCompareAndSet(t *testing.T) {
	_, js := connect(t)
	a, b := newLock(t, js, "a"), newLock(t, js, "b")
	ctx := t.Context()

	if _, _, err := a.Get(ctx); !apierrors.IsNotFound(err) {
		t.Fatalf("Get without an entry: want IsNotFound, got %v", err)
	}
	if err := a.Update(ctx, recordOf("a")); err == nil {
		t.Error("Update without a Get: want an error")
	}
	want := recordOf("a")
	if err := a.Create(ctx, want); err != nil {
		t.Fatal(err)
	}
	if err := b.Create(ctx, recordOf("b")); !apierrors.IsAlreadyExists(err) {
		t.Errorf("Create of an entry that exists: want IsAlreadyExists, got %v", err)
	}
	got, raw, err := b.Get(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&want, got); diff != "" {
		t.Errorf("the record (-want +got):\n%s", diff)
	}

	// The same content again is another record: b must see that a is alive.
	if err := a.Update(ctx, want); err != nil {
		t.Fatal(err)
	}
	if err := b.Update(ctx, recordOf("b")); !apierrors.IsConflict(err) {
		t.Errorf("Update of a record that has changed: want IsConflict, got %v", err)
	}
	_, again, err := b.Get(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if string(raw) == string(again) {
		t.Error("a renewal did not change the raw record")
	}
	if err := b.Update(ctx, recordOf("b")); err != nil {
		t.Errorf("Update of the newest record: %v", err)
	}
	if err := a.Update(ctx, recordOf("a")); !apierrors.IsConflict(err) {
		t.Errorf("renewal by the former holder: want IsConflict, got %v", err)
	}
}

func TestAnAnswerThatIsLostIsNotWaitedForUntilTheDeadlineOfTheRenewal(t *testing.T) {
	server, js := connect(t)
	if err := newLock(t, js, "a").Create(t.Context(), recordOf("a")); err != nil {
		t.Fatal(err)
	}
	link := natsserver.NewLink(t, server.URL())
	conn, _ := natsserver.Connect(t, link.URL(), nats.PingInterval(time.Hour)) // so that the connection notices nothing
	linked, err := jetstream.New(conn, jetstream.WithDefaultTimeout(time.Second))
	if err != nil {
		t.Fatal(err)
	}
	a := newLock(t, linked, "a")
	get := func(ctx context.Context) error {
		_, _, err := a.Get(ctx)
		return err
	}
	renew := func(ctx context.Context) error { return a.Update(ctx, recordOf("a")) }
	operatortest.Eventually(t, "the lease is read", func() error { return get(t.Context()) })

	link.Freeze()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for what, ask := range map[string]func(context.Context) error{"Get": get, "Update": renew} {
		if err := ask(ctx); !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil {
			t.Errorf("%s of a server that does not answer: %v, and the time of its caller: %v", what, err, ctx.Err())
		}
	}
	link.Restore()
	operatortest.Eventually(t, "the lease is renewed", func() error { return errors.Join(get(t.Context()), renew(t.Context())) })
}

func TestR16KeyOfAnyNameIsALeaseOfItsOwn(t *testing.T) {
	_, js := connect(t)
	long := "https://example.com/" + strings.Repeat("operators/", 30) + "Gärtner *"
	for _, key := range []string{"gardener", long, long + "s"} {
		lock, err := natslease.New(natslease.Config{JetStream: js, Bucket: bucket, Key: key, Identity: "a"})
		if err != nil {
			t.Fatal(err)
		}
		if err := lock.Create(t.Context(), recordOf("a")); err != nil {
			t.Errorf("%s: %v", key, err)
		}
	}
}

func TestR16TheLeaseOfAnotherOperatorIsRefusedAndThatOfAFormerNameTakenOver(t *testing.T) {
	_, js := connect(t)
	lockOf := func(operator string, former ...string) *natslease.Lock {
		lock, err := natslease.New(natslease.Config{
			JetStream: js, Bucket: bucket, Key: "controller", Operator: operator, FormerOperators: former, Identity: operator,
		})
		if err != nil {
			t.Fatal(err)
		}
		return lock
	}
	ctx := t.Context()
	if err := lockOf("first").Create(ctx, resourcelock.LeaderElectionRecord{}); err != nil {
		t.Fatal(err)
	}
	refused := func(lock *natslease.Lock, whose string) {
		t.Helper()
		_, _, err := lock.Get(ctx)
		if err == nil || apierrors.IsNotFound(err) || !strings.Contains(err.Error(), `but says: "v1 operator \"`+whose+`\""`) {
			t.Errorf("the lease of %s: %v", whose, err)
		}
		if lock.Update(ctx, recordOf("thief")) == nil {
			t.Errorf("the lease of %s was written", whose)
		}
	}
	refused(lockOf("second"), "first")

	renamed := lockOf("renamed", "first")
	if _, _, err := renamed.Get(ctx); err != nil {
		t.Fatal(err)
	}
	if err := renamed.Update(ctx, recordOf("renamed")); err != nil {
		t.Fatal(err)
	}
	if _, _, err := renamed.Get(ctx); err != nil {
		t.Error(err)
	}
	refused(lockOf("first"), "renamed")
}

func TestBucketThatIsNotThereIsNoFreeLease(t *testing.T) {
	_, js := natsserver.Start(t).Connect(t)
	lock := newLock(t, js, "a")
	if _, _, err := lock.Get(t.Context()); err == nil || apierrors.IsNotFound(err) || !strings.Contains(err.Error(), bucket) {
		t.Errorf("want an error that names the bucket and is not IsNotFound, got %v", err)
	}
}

func TestNewNamesEachFaultyField(t *testing.T) {
	_, err := natslease.New(natslease.Config{})
	if !errors.Is(err, informer.ErrInvalidConfig) {
		t.Fatalf("want ErrInvalidConfig, got %v", err)
	}
	want := "invalid config: natslease.Config: JetStream must not be nil; Bucket must not be empty; Key must not be empty"
	if diff := cmp.Diff(want, err.Error()); diff != "" {
		t.Error(diff)
	}
}

// replica is an operator with a lease in NATS.
type replica struct {
	fence  *operator.Fence
	cancel context.CancelFunc
	ended  chan error
	led    chan struct{}
}

// The times of leases.
var (
	// lasting is a lease that no busy machine loses.
	lasting = operator.LeaderElectionConfig{LeaseDuration: 30 * time.Second, RenewDeadline: 20 * time.Second, RetryPeriod: 100 * time.Millisecond}
	// fleeting is one that is lost soon.
	fleeting = operator.LeaderElectionConfig{LeaseDuration: 4 * time.Second, RenewDeadline: 2 * time.Second, RetryPeriod: 100 * time.Millisecond}
)

func newReplica(t *testing.T, js jetstream.JetStream, identity string, election operator.LeaderElectionConfig) *replica {
	t.Helper()
	logger, err := logging.New(logging.Config{Writer: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	f, err := framework.New(framework.Config{Source: informer.NewPush("objects"), Logger: logger, Resources: []framework.Resource{idle{}}})
	if err != nil {
		t.Fatal(err)
	}
	r := &replica{fence: operator.NewFence(), ended: make(chan error, 1), led: make(chan struct{})}
	election.Enabled, election.Lock, election.Fence = true, newLock(t, js, identity), r.fence
	o, err := operator.New(operator.Config{
		Name: identity, Logger: logger, Frameworks: []*framework.Framework{f},
		Runnables: []operator.Runnable{{Name: "lead", Run: func(ctx context.Context) error {
			close(r.led)
			<-ctx.Done()
			return nil
		}}},
		LeaderElection: election,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	r.cancel = cancel
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r.ended <- o.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	return r
}

func (r *replica) leads() bool {
	select {
	case <-r.led:
		return true
	default:
		return false
	}
}

type idle struct{}

func (idle) Name() string                             { return "idle" }
func (idle) EnsureCreated(context.Context, any) error { return nil }
func (idle) EnsureDeleted(context.Context, any) error { return nil }

func TestReplicasElectOneAndTheNextTakesOverWhenTheLeaseIsReleased(t *testing.T) {
	_, js := connect(t)
	a := newReplica(t, js, "a", lasting)
	<-a.led
	b := newReplica(t, js, "b", lasting)
	operatortest.Eventually(t, "a has renewed the lease", a.fence.Check)
	if b.leads() || b.fence.Check() == nil {
		t.Error("b leads although a does")
	}
	a.cancel()
	if err := <-a.ended; err != nil {
		t.Error(err)
	}
	<-b.led
	b.cancel()
	if err := <-b.ended; err != nil {
		t.Error(err)
	}
	record, _, err := newLock(t, js, "reader").Get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("", record.HolderIdentity); diff != "" {
		t.Errorf("nobody should hold the lease (-want +got):\n%s", diff)
	}
}

func TestElectionSurvivesARestartOfTheServer(t *testing.T) {
	server, js := connect(t)
	a := newReplica(t, js, "a", lasting)
	<-a.led
	server.Restart(t)
	revision := func() uint64 {
		kv, err := js.KeyValue(t.Context(), bucket)
		if err != nil {
			return 0
		}
		entry, err := kv.Get(t.Context(), "controller")
		if err != nil {
			return 0
		}
		return entry.Revision()
	}
	before := uint64(0)
	operatortest.Eventually(t, "the lease is readable", func() bool { before = revision(); return before > 0 })
	operatortest.Eventually(t, "renewals after the restart", func() bool { return revision() > before })
	if err := a.fence.Check(); err != nil {
		t.Errorf("the fence: %v", err)
	}
}

func TestElectionEndsWhenTheServerStaysAway(t *testing.T) {
	server, js := connect(t)
	a := newReplica(t, js, "a", fleeting)
	<-a.led
	server.Stop()
	if err := <-a.ended; !errors.Is(err, operator.ErrLeaseLost) {
		t.Errorf("want ErrLeaseLost, got %v", err)
	}
	if err := a.fence.Check(); !errors.Is(err, operator.ErrLeaseLost) {
		t.Errorf("the fence: want ErrLeaseLost, got %v", err)
	}
}
