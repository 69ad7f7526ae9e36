package deployment_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/giantswarm/micrologger"
	corev1 "k8s.io/api/core/v1"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/resource/deployment"
)

// holding is a resource that carries out an operation.
type holding struct{ operation deployment.Operation }

func (holding) Name() string { return "holding" }

func (h holding) EnsureCreated(ctx context.Context, _ any) error {
	return h.operation.Execute(ctx, nil)
}

func (holding) EnsureDeleted(context.Context, any) error { return nil }

// A worker whose plan watches a new version for half a day is not one that hangs, for which an operator is started anew.
func TestAPlanThatHoldsIsNotStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logger, err := micrologger.New(micrologger.Config{IOWriter: t.Output()})
		if err != nil {
			t.Fatal(err)
		}
		set, err := framework.NewResourceSet(framework.ResourceSetConfig{
			HandlesRest: true,
			Resources:   []framework.Resource{holding{&deployment.RolloutOperation{Waves: []deployment.Wave{{Pause: 12 * time.Hour}}}}},
		})
		if err != nil {
			t.Fatal(err)
		}
		router, err := framework.NewResourceRouter(framework.ResourceRouterConfig{Logger: logger, ResourceSets: []*framework.ResourceSet{set}})
		if err != nil {
			t.Fatal(err)
		}
		source := informer.NewPush("services")
		f, err := framework.New(framework.Config{Logger: logger, Source: source, ResourceRouter: router})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- f.Run(ctx) }()
		service := &corev1.ConfigMap{}
		service.Name = "shop"
		if err := source.Update(service); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		time.Sleep(11 * time.Hour)
		if got := f.Activities(); len(got) != 1 || got[0].For != 11*time.Hour || got[0].Stuck != 0 {
			t.Errorf("the worker does %v", got)
		}
		time.Sleep(2 * time.Hour)
		if got := f.Activities(); len(got) != 0 {
			t.Errorf("the worker still does %v", got)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
