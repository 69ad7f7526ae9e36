package natscontroller_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/operatortest"
)

func TestANewBuildOfAControllerSyncsOnlyAsManyPrimariesAsItsBudgetAllows(t *testing.T) {
	w := newWorld(t).withKubernetes()
	for i := range 5 {
		w.createGateway(fmt.Sprint("gateway-", i))
	}
	start := func(build string, fail func(key string) error) *running {
		config := w.config()
		config.RESTConfig, config.StateNamespace = w.restConfig, w.namespace
		config.Upgrade = operator.UpgradeConfig{Budget: "1", Build: build, MinReady: 10 * time.Millisecond}
		c := newClassic(w, config)
		c.fail = fail
		return run(t, c.Start)
	}
	phase := func(want string) {
		t.Helper()
		operatortest.Eventually(t, "the upgrade is "+want, func() error {
			state := &corev1.ConfigMap{}
			key := client.ObjectKey{Namespace: w.namespace, Name: operator.StateName("gateway-controller", "")}
			if err := w.kube.Get(t.Context(), key, state); err != nil || !strings.Contains(state.Data["upgrade"], want) {
				return fmt.Errorf("it is %s, error %w", state.Data["upgrade"], err)
			}
			return nil
		})
	}
	running := start("one", nil)
	operatortest.Eventually(t, "all routes", func() bool { return len(w.keys("routes")) == 5 })
	phase(`"phase":"Finished"`)
	if err := running.stop(); err != nil {
		t.Fatal(err)
	}
	// A SyncHandler can't say what it would change: it is called for one gateway, and fails.
	var failed atomic.Int64
	running = start("two", func(string) error {
		failed.Add(1)
		return framework.Permanent(errors.New("out of order"))
	})
	phase(`"phase":"Halted"`)
	if n := failed.Load(); n > 2 {
		t.Errorf("%d gateways were synced", n)
	}
	if err := running.stop(); err != nil {
		t.Fatal(err)
	}
	running = start("one", nil)
	phase(`"phase":"Finished"`)
	if err := running.stop(); err != nil {
		t.Fatal(err)
	}
}

func TestAGuardIsAskedBeforeASyncHandler(t *testing.T) {
	w := newWorld(t)
	w.createGateway("a")
	config := w.config()
	var asked atomic.Int64
	config.Guards = []framework.Guard{{
		Name: "nothing-unknown", Action: framework.GuardDeny,
		Match: func(_ context.Context, in framework.GuardInput) (bool, error) {
			asked.Add(1)
			return in.Change.Action == plan.Unknown, nil
		},
	}}
	c := newClassic(w, config)
	run(t, c.Start)
	operatortest.Eventually(t, "the guard is asked", func() bool { return asked.Load() > 2 })
	if calls := c.calls.all(); len(calls) > 0 {
		t.Errorf("the calls are %q", calls)
	}
}
