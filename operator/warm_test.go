package operator_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/operatortest"
)

// cold is a source that is synced when a test says so, and was heard of when a test says so.
type cold struct {
	*informer.Push
	warm    chan struct{}
	asked   atomic.Int64
	contact atomic.Pointer[time.Time]
}

func newCold(t *testing.T, name string) *cold {
	return &cold{Push: pushed(t, name), warm: make(chan struct{})}
}

func (c *cold) WaitForSync(ctx context.Context) error {
	c.asked.Add(1)
	select {
	case <-c.warm:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (c *cold) Status() informer.Status {
	status := c.Push.Status()
	status.LastError = errBroken
	if contact := c.contact.Load(); contact != nil {
		status.LastContact = *contact
	}
	select {
	case <-c.warm:
	default:
		status.Synced = false
	}
	return status
}

// noLease fails the test if there is a lease.
func (r *replicas) noLease() {
	r.t.Helper()
	err := r.client.Get(r.t.Context(), client.ObjectKey{Namespace: r.namespace, Name: "test"}, &coordinationv1.Lease{})
	if !apierrors.IsNotFound(err) {
		r.t.Errorf("the lease: want IsNotFound, got %v", err)
	}
}

func TestR17SourcesAreSyncedBeforeTheLeaseIsAskedFor(t *testing.T) {
	r := newReplicas(t)
	source := newCold(t, "cold")
	var work journal
	running := run(t, newOperator(t, operator.Config{
		RESTConfig: r.instance.RESTConfig(), LeaderElection: r.election("a", nil), Logger: logTo(t, &work),
		Frameworks: []*framework.Framework{newFramework(t, "f", source, nil)},
	}))
	operatortest.Eventually(t, "the source is waited for", func() bool { return source.asked.Load() > 0 })
	r.noLease()
	close(source.warm)
	operatortest.Eventually(t, "it leads", func() bool { return work.contains("leading") })
	if err := running.stop(); err != nil {
		t.Error(err)
	}
}

func TestR17ASourceThatCannotSyncHoldsUpItsOwnFrameworkOnlyAndIsTold(t *testing.T) {
	for _, elected := range []bool{true, false} {
		r := newReplicas(t)
		source := newCold(t, "cold")
		var work journal
		working := func(name string) func(context.Context, any) error {
			return func(context.Context, any) error {
				work.add(name + " works")
				return nil
			}
		}
		config := operator.Config{
			RESTConfig: r.instance.RESTConfig(), Logger: logTo(t, &work), SyncTimeout: 50 * time.Millisecond,
			Frameworks: []*framework.Framework{newFramework(t, "one", source, working("one")), newFramework(t, "other", pushed(t, "other"), working("other"))},
		}
		if elected {
			config.LeaderElection = r.election("a", nil)
		}
		running := run(t, newOperator(t, config))
		operatortest.Eventually(t, "the other framework works", func() bool { return work.contains("other works") })
		operatortest.Eventually(t, "it is told", func() bool {
			return work.contains("source is not synced, what needs it waits operator=test source=cold after=50ms error=broken")
		})
		if work.contains("one works") {
			t.Error("a framework works without its source")
		}
		close(source.warm)
		operatortest.Eventually(t, "the framework works", func() bool { return work.contains("one works") })
		if err := running.stop(); err != nil {
			t.Error(err)
		}
	}
}

func TestR17AReplicaNoneOfWhoseFrameworksCanSyncDoesNotLead(t *testing.T) {
	r := newReplicas(t)
	source := newCold(t, "cold")
	var work journal
	running := run(t, newOperator(t, operator.Config{
		RESTConfig: r.instance.RESTConfig(), LeaderElection: r.election("a", nil), Logger: logTo(t, &work), SyncTimeout: 50 * time.Millisecond,
		Frameworks: []*framework.Framework{newFramework(t, "f", source, nil)},
		// It is synced, and no framework's.
		Sources: []informer.Source{pushed(t, "other")},
	}))
	operatortest.Eventually(t, "it is told, and waited for again", func() bool {
		return work.contains("source is not synced") && source.asked.Load() > 1
	})
	r.noLease()
	close(source.warm)
	operatortest.Eventually(t, "it leads", func() bool { return work.contains("leading") })
	if err := running.stop(); err != nil {
		t.Error(err)
	}
}

func TestAReplicaGetsNothingFromAnotherOneBeforeAllItsFrameworksAreSynced(t *testing.T) {
	c := newCrew(t, 6)
	c.join("a")
	c.sharedBy("a")
	source := newCold(t, "cold")
	other, err := framework.New(framework.Config{
		Name: "other", Source: pushed(t, "other"), Logger: quiet(t), Resources: []framework.Resource{&resource{}}, DisableFinalizer: true,
		Watches: []framework.Watch{{Source: source, Map: func(context.Context, any) []informer.Key { return nil }}},
	})
	if err != nil {
		t.Fatal(err)
	}
	config := c.config("b")
	config.Frameworks, config.SyncTimeout = append(config.Frameworks, other), 50*time.Millisecond
	b := run(t, newOperator(t, config))
	operatortest.Eventually(t, "b is a replica", func() bool { return c.replicaLeases() == 2 })
	for range 20 {
		c.sharedBy("a")
	}
	close(source.warm)
	c.sharedBy("a", "b")
	if err := b.stop(); err != nil {
		t.Error(err)
	}
}

func TestReplicaIsNotReadyWhileASourceIsOutOfContactForTooLong(t *testing.T) {
	source := newCold(t, "cold")
	close(source.warm)
	o := newOperator(t, operator.Config{
		Frameworks:    []*framework.Framework{newFramework(t, "f", source, nil)},
		ListenAddress: "127.0.0.1:0", ContactTimeout: 10 * time.Minute,
	})
	running := run(t, o)
	operatortest.Eventually(t, "it is ready although the source has an error", func() bool {
		now := time.Now()
		source.contact.Store(&now)
		status, _ := get(t, o, "/readyz")
		return status == 200
	})
	before := time.Now().Add(-time.Hour)
	source.contact.Store(&before)
	status, body := get(t, o, "/readyz")
	if status != 503 || !strings.HasPrefix(body, "source cold is out of contact for 1h0m") || !strings.HasSuffix(body, ": broken\n") {
		t.Errorf("got %d %q", status, body)
	}
	if status, body := get(t, o, "/healthz"); status != 200 {
		t.Errorf("healthz: got %d %q: starting anew brings nobody back", status, body)
	}
	if err := running.stop(); err != nil {
		t.Error(err)
	}
}
