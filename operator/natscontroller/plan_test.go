package natscontroller_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/natscontroller"
	"github.com/operatorkit/operatorkit/operator/natscontroller/natslease"
	"github.com/operatorkit/operatorkit/operator/operatortest"
)

// withRoutes is a config in which gateways want one route for each of their hosts, by a CRUD resource.
func (w *world) withRoutes() natscontroller.Config[*Gateway] {
	w.t.Helper()
	return w.withRoutesCalled("", "")
}

func TestReplicaThatDoesNotLeadPlansAndChangesNothing(t *testing.T) {
	w := newWorld(t)
	fence := operator.NewFence()
	w.createGateway("eu/shop", "shop.example.com", "pay.example.com")
	r := run(t, w.controller(w.withRoutes()).Start)
	operatortest.Eventually(t, "the routes", func() bool {
		return slices.Equal(w.keys("routes"), []string{"pay.example.com", "shop.example.com"})
	})
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}

	// Somebody else leads, and does not work.
	lock := func(identity string) *natslease.Lock {
		lock, err := natslease.New(natslease.Config{JetStream: w.js, Bucket: "leases", Key: "gateway-controller", Identity: identity})
		if err != nil {
			t.Fatal(err)
		}
		return lock
	}
	if err := lock("other").Create(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: "other", LeaseDurationSeconds: 3600}); err != nil {
		t.Fatal(err)
	}
	deleteEntity(t, w.routes, "pay.example.com")
	gateway, err := w.gateways.Get(t.Context(), "eu/shop")
	if err != nil {
		t.Fatal(err)
	}
	gateway.Hosts = []string{"pay.example.com"}
	if err := w.gateways.Update(t.Context(), gateway); err != nil {
		t.Fatal(err)
	}
	config := openWorld(t, w.js, fence.Check).withRoutes()
	config.LeaderElection = operator.LeaderElectionConfig{Enabled: true, Lock: lock("replica"), Fence: fence, LeaseDuration: time.Hour}
	c := w.controller(config)
	run(t, c.Start)
	want := []string{"routes: create pay.example.com", "routes: delete shop.example.com"}
	operatortest.Eventually(t, "the plan", func() error {
		p, err := c.Plan(t.Context(), "eu/shop")
		if err != nil {
			return err
		}
		var got []string
		for _, resource := range p.Resources {
			for _, change := range resource.Changes {
				got = append(got, resource.Name+": "+string(change.Action)+" "+change.Object.Name)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			return errors.New(diff)
		}
		return nil
	})
	if _, err := c.Plan(t.Context(), "gone"); !apierrors.IsNotFound(err) {
		t.Errorf("the plan of a primary that does not exist: want IsNotFound, got %v", err)
	}
	if diff := cmp.Diff([]string{"shop.example.com"}, w.keys("routes")); diff != "" {
		t.Errorf("the routes (-want +got):\n%s", diff)
	}
}

func TestPlanKnowsNothingOfSyncHandlerOnlyWhereThereIsOne(t *testing.T) {
	w := newWorld(t)
	w.createGateway("a")
	plain, custom := w.controller(w.config()), newClassic(w, w.config())
	for name, test := range map[string]struct {
		start  func(context.Context) error
		plan   func(context.Context, string) (*plan.Plan, error)
		opaque bool
	}{
		"resources only":    {plain.Start, plain.Plan, false},
		"custom controller": {custom.Start, custom.Plan, true},
	} {
		run(t, test.start)
		operatortest.Eventually(t, "the plan with "+name, func() error {
			p, err := test.plan(t.Context(), "a")
			if err != nil {
				return err
			}
			if got := p.Resources[len(p.Resources)-1].Opaque; got != test.opaque {
				return fmt.Errorf("opaque is %t, want %t", got, test.opaque)
			}
			return nil
		})
	}
}
