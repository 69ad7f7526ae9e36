package natscontroller

import (
	"context"
	"errors"
	"fmt"

	"github.com/operatorkit/operatorkit/context/requeuecontext"
	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/informer/natsinformer"
)

// syncResource is the resource that calls SyncHandler, for primaries that are to stay and for those that go.
type syncResource[T natsinformer.Entity] struct{ controller *ControllerRuntime[T] }

// Name implements framework.Resource.
func (syncResource[T]) Name() string { return "sync-handler" }

// EnsureCreated implements framework.Resource.
func (s syncResource[T]) EnsureCreated(ctx context.Context, obj any) error { return s.call(ctx, obj) }

// EnsureDeleted implements framework.Resource.
func (s syncResource[T]) EnsureDeleted(ctx context.Context, obj any) error { return s.call(ctx, obj) }

// Plan implements framework.Planner: without a custom controller there is nothing to do, and with one nobody knows.
func (s syncResource[T]) Plan(context.Context, plan.Event, any) ([]plan.Change, error) {
	if s.controller.custom == IController(s.controller) {
		return nil, nil
	}
	return nil, framework.ErrOpaque
}

func (s syncResource[T]) call(ctx context.Context, obj any) error {
	var key string
	switch o := obj.(type) {
	case absent:
		key = o.key
	case natsinformer.Entity:
		key = o.GetName()
	default:
		return fmt.Errorf("a %T is no entity", obj)
	}
	sync := func(context.Context, string) error { return s.controller.custom.SyncHandler(key) }
	if custom, ok := s.controller.custom.(ContextSyncer); ok {
		sync = custom.SyncHandlerContext
	}
	err := sync(ctx, key)
	if errors.Is(err, natsinformer.ErrFull) {
		requeuecontext.SetAfter(ctx, natsinformer.FullPause)
	}
	return err
}
