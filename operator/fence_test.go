package operator_test

import (
	"context"
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/operatortest"
)

func TestFenceLetsOnlyTheLeaderWriteAndTheElectionGoOn(t *testing.T) {
	r := newReplicas(t)
	fence := operator.NewFence()
	// The election uses the same connection, fence and all.
	config := rest.CopyConfig(r.instance.RESTConfig())
	config.Wrap(fence.Transport)
	fenced := operatortest.NewClient(t, config, nil)
	write := func(name string) error { return fenced.Create(t.Context(), configMap(r.namespace, name)) }

	o := newOperator(t, operator.Config{
		RESTConfig:     config,
		Frameworks:     []*framework.Framework{newFramework(t, "f", pushed(t, "objects"), nil)},
		LeaderElection: r.election("a", fence),
	})
	if err := write("early"); !errors.Is(err, operator.ErrLeaseLost) {
		t.Errorf("before leading: want ErrLeaseLost, got %v", err)
	}
	running := run(t, o)
	operatortest.Eventually(t, "the fence opens", fence.Check)
	if err := write("leading"); err != nil {
		t.Errorf("leading: %v", err)
	}

	thief, seconds, now := "thief", int32(3600), metav1.NowMicro()
	operatortest.Eventually(t, "the theft", func() error {
		lease := r.lease()
		lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds, lease.Spec.RenewTime = &thief, &seconds, &now
		return r.client.Update(t.Context(), lease)
	})
	// It closes when the theft is noticed, long before the lease would have ended or the operator
	// has given up.
	operatortest.Eventually(t, "the fence closes", func() bool { return fence.Check() != nil })
	if err := write("late"); !errors.Is(err, operator.ErrLeaseLost) {
		t.Errorf("after the loss: want ErrLeaseLost, got %v", err)
	}
	if err := running.wait(); !errors.Is(err, operator.ErrLeaseLost) {
		t.Errorf("want ErrLeaseLost, got %v", err)
	}
}

func TestFenceIsClosedOnceTheLeaseIsReleased(t *testing.T) {
	r := newReplicas(t)
	fence := operator.NewFence()
	working, open := make(chan struct{}), make(chan error, 1)
	o := newOperator(t, operator.Config{
		RESTConfig: r.instance.RESTConfig(),
		Frameworks: []*framework.Framework{newFramework(t, "f", pushed(t, "objects"), nil)},
		Runnables: []operator.Runnable{{Name: "late", Run: func(ctx context.Context) error {
			close(working)
			<-ctx.Done()
			open <- fence.Check()
			return nil
		}}},
		LeaderElection: operator.LeaderElectionConfig{Enabled: true, Namespace: r.namespace, Fence: fence},
	})
	running := run(t, o)
	waitFor(t, working)
	if err := running.stop(); err != nil {
		t.Fatal(err)
	}
	if err := <-open; err != nil {
		t.Errorf("the fence closed before the work had ended: %v", err)
	}
	if err := fence.Check(); !errors.Is(err, operator.ErrLeaseLost) {
		t.Errorf("after the release: want ErrLeaseLost, got %v", err)
	}
}

func TestFenceBelongsToOneOperatorAndIsOpenWithoutAnElection(t *testing.T) {
	fence := operator.NewFence()
	config := operator.Config{
		Name: "test", Logger: quiet(t), LeaderElection: operator.LeaderElectionConfig{Fence: fence},
		Frameworks: []*framework.Framework{newFramework(t, "f", pushed(t, "objects"), nil)},
	}
	newOperator(t, config)
	if err := fence.Check(); err != nil {
		t.Errorf("Check() = %v without an election", err)
	}
	if _, err := operator.New(config); !framework.IsInvalidConfig(err) {
		t.Errorf("a second operator: want an error for which IsInvalidConfig holds, got %v", err)
	}
}

func TestRunnablesRunOnTheLeaderOnlyAndTheirFailureStopsTheOperator(t *testing.T) {
	r := newReplicas(t)
	var work journal
	replica := func(identity string, result func() error) *running {
		return run(t, newOperator(t, operator.Config{
			RESTConfig: r.instance.RESTConfig(), Logger: logTo(t, &work),
			Frameworks: []*framework.Framework{newFramework(t, "f", pushed(t, "objects"), nil)},
			Runnables: []operator.Runnable{
				{Name: "ended", Run: func(context.Context) error { return nil }},
				{Name: "runnable", Run: func(ctx context.Context) error {
					work.add("running on " + identity)
					return result()
				}},
			},
			LeaderElection: r.election(identity, nil),
		}))
	}
	release := make(chan struct{})
	a := replica("a", func() error {
		waitFor(t, release)
		return errBroken
	})
	operatortest.Eventually(t, "a leads", func() bool { return work.contains("running on a") })
	b := replica("b", func() error { panic(errBroken) })
	operatortest.Eventually(t, "b campaigns", func() bool { return work.contains("identity=b") })
	if work.contains("running on b") {
		t.Error("b runs although a leads")
	}
	close(release)
	for _, stopped := range []*running{a, b} {
		if err := stopped.wait(); !errors.Is(err, errBroken) {
			t.Errorf("want the runnable's error, got %v", err)
		}
	}
	if !work.contains("running on b") {
		t.Error("b did not take over")
	}
}

func TestNoResourceBeginsToChangeAnythingWhileTheFenceIsClosed(t *testing.T) {
	r := newReplicas(t)
	m := &mail{}
	f, err := framework.New(framework.Config{
		Name: "f", Source: pushed(t, "objects"), Logger: quiet(t), DisableFinalizer: true, Resources: []framework.Resource{m},
	})
	if err != nil {
		t.Fatal(err)
	}
	fence := operator.NewFence()
	newOperator(t, operator.Config{
		RESTConfig: r.instance.RESTConfig(), Frameworks: []*framework.Framework{f}, LeaderElection: r.election("a", fence),
	})
	p, err := f.Plan(t.Context(), informer.Key{Namespace: "default", Name: "a"})
	if err != nil {
		t.Fatal(err)
	}

	// The operator doesn't run, and holds no lease.
	if err := f.ApplyPlan(t.Context(), p); !errors.Is(err, operator.ErrLeaseLost) {
		t.Errorf("got %v, want ErrLeaseLost", err)
	}
	if m.sent {
		t.Error("the resource began")
	}
}

// mail is a writer without a fenced transport.
type mail struct{ sent bool }

func (*mail) Name() string { return "mail" }

func (*mail) Plan(context.Context, plan.Event, any) ([]plan.Change, error) {
	return []plan.Change{{Action: plan.Create, Object: plan.Object{Kind: "Mail", Name: "welcome"}}}, nil
}

func (m *mail) EnsureCreated(context.Context, any) error { m.sent = true; return nil }

func (*mail) EnsureDeleted(context.Context, any) error { return nil }
