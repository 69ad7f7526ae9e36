package operator_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/operatortest"
)

// replicas are operators that share a lease, in a namespace of a real API server.
type replicas struct {
	t         *testing.T
	instance  *operatortest.Instance
	client    client.WithWatch
	namespace string
}

// The times of the leases in tests.
const (
	leaseDuration = 20 * time.Second
	// renewDeadline is a time for which no busy machine keeps a replica from renewing its lease.
	renewDeadline = 8 * time.Second
	retryPeriod   = 100 * time.Millisecond
)

// election is that of a replica, with a fence or without one.
func (r *replicas) election(identity string, fence *operator.Fence) operator.LeaderElectionConfig {
	return operator.LeaderElectionConfig{
		Enabled: true, Namespace: r.namespace, Identity: identity, Fence: fence,
		LeaseDuration: leaseDuration, RenewDeadline: renewDeadline, RetryPeriod: retryPeriod,
	}
}

func newReplicas(t *testing.T) *replicas {
	instance := operatortest.Start(t)
	return &replicas{t: t, instance: instance, client: operatortest.NewClient(t, instance.RESTConfig(), nil), namespace: instance.Namespace(t)}
}

// replica makes one that reconciles the ConfigMaps of the namespace.
func (r *replicas) replica(identity string, log *journal, created func(ctx context.Context, obj any) error) *operator.Operator {
	r.t.Helper()
	return newOperator(r.t, operator.Config{
		RESTConfig:     r.instance.RESTConfig(),
		Logger:         logTo(r.t, log),
		Frameworks:     []*framework.Framework{newFramework(r.t, "configmaps", configMaps(r.t, r.client, r.namespace), created)},
		LeaderElection: r.election(identity, nil),
		ListenAddress:  "127.0.0.1:0",
	})
}

func (r *replicas) create(name string) {
	r.t.Helper()
	if err := r.client.Create(r.t.Context(), configMap(r.namespace, name)); err != nil {
		r.t.Fatal(err)
	}
}

func (r *replicas) lease() *coordinationv1.Lease {
	r.t.Helper()
	lease := &coordinationv1.Lease{}
	if err := r.client.Get(r.t.Context(), client.ObjectKey{Namespace: r.namespace, Name: "test"}, lease); err != nil {
		r.t.Fatal(err)
	}
	return lease
}

func (r *replicas) holder() string {
	r.t.Helper()
	if holder := r.lease().Spec.HolderIdentity; holder != nil {
		return *holder
	}
	return ""
}

func TestR13LeaseIsReleasedAfterTheReconciliationsUnderWayAndTheNextReplicaTakesOver(t *testing.T) {
	r := newReplicas(t)
	r.create("first")
	var work journal
	started, release := make(chan struct{}), make(chan struct{})
	a := r.replica("a", &work, func(_ context.Context, obj any) error {
		if obj.(client.Object).GetName() != "first" {
			return nil
		}
		close(started)
		waitFor(t, release)
		work.add("a ended with the lease held by " + r.holder())
		return nil
	})
	runningA := run(t, a)
	<-started

	// The other replica is warm and ready, and does not work.
	b := r.replica("b", &work, func(_ context.Context, obj any) error {
		work.add("b reconciled " + obj.(client.Object).GetName())
		return nil
	})
	runningB := run(t, b)
	operatortest.Eventually(t, "b is ready", func() bool {
		status, _ := get(t, b, "/readyz")
		return status == 200
	})
	_, metrics := get(t, b, "/metrics")
	if !strings.Contains(metrics, `operatorkit_operator_leading{operator="test"} 0`) {
		t.Error("b says that it leads")
	}

	runningA.cancel()
	// The stop waits for the reconciliation, and the lease is kept and renewed meanwhile, beyond
	// its deadline.
	renewed := r.lease().Spec.RenewTime.Time
	operatortest.Eventually(t, "renewals while stopping", func() bool { return r.lease().Spec.RenewTime.After(renewed.Add(renewDeadline)) })
	if work.contains("b reconciled") {
		t.Errorf("b worked while a did: %q", work.all())
	}
	close(release)
	if err := runningA.stop(); err != nil {
		t.Fatal(err)
	}
	if !work.contains("a ended with the lease held by a") {
		t.Errorf("the reconciliation did not end before the lease was released: %q", work.all())
	}
	if !work.contains("lease released") {
		t.Errorf("the lease was not released: %q", work.all())
	}
	if holder := r.holder(); holder == "a" {
		t.Errorf("the lease is held by %q after a has stopped", holder)
	}
	operatortest.Eventually(t, "b works", func() bool { return work.contains("b reconciled first") })
	if err := runningB.stop(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("", r.holder()); diff != "" {
		t.Errorf("nobody should hold the lease\n%s", diff)
	}
}

func TestLostLeaseStopsTheFrameworksEndsRunWithAnErrorAndIsNotReleased(t *testing.T) {
	r := newReplicas(t)
	r.create("first")
	var work journal
	started, release := make(chan struct{}), make(chan struct{})
	o := r.replica("a", &work, func(_ context.Context, obj any) error {
		if obj.(client.Object).GetName() == "first" {
			close(started)
			waitFor(t, release)
		}
		work.add("ended " + obj.(client.Object).GetName())
		return nil
	})
	running := run(t, o)
	<-started

	// Somebody else takes the lease by force.
	thief, seconds, now := "thief", int32(3600), metav1.NowMicro()
	operatortest.Eventually(t, "the theft", func() bool {
		lease := r.lease()
		lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds, lease.Spec.RenewTime = &thief, &seconds, &now
		err := r.client.Update(t.Context(), lease)
		return err == nil
	})
	operatortest.Eventually(t, "the log of the loss", func() bool { return work.contains("lease lost") })
	close(release)

	err := running.wait()
	if !errors.Is(err, operator.ErrLeaseLost) {
		t.Errorf("want ErrLeaseLost, got %v", err)
	}
	want := fmt.Sprintf("lease %s/test: it is held by %q", r.namespace, "thief")
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("want an error with %q, got %v", want, err)
	}
	if !work.contains("ended first") {
		t.Errorf("the reconciliation under way did not end: %q", work.all())
	}
	if holder := r.holder(); holder != "thief" {
		t.Errorf("the lease is held by %q, want thief", holder)
	}
}

func TestReplicaThatNeverLedStopsAtOnce(t *testing.T) {
	r := newReplicas(t)
	var work journal
	a, b := run(t, r.replica("a", &work, nil)), (*running)(nil)
	operatortest.Eventually(t, "a leads", func() bool { return work.contains("leading") })
	b = run(t, r.replica("b", &work, nil))
	operatortest.Eventually(t, "b campaigns", func() bool { return work.contains("identity=b") })
	if err := b.stop(); err != nil {
		t.Error(err)
	}
	if holder := r.holder(); holder != "a" {
		t.Errorf("the lease is held by %q, want a", holder)
	}
	if err := a.stop(); err != nil {
		t.Error(err)
	}
}
