package natscontroller

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer/natsinformer"
	"github.com/operatorkit/operatorkit/resource/natsresource"
	"github.com/operatorkit/operatorkit/resource/objectresource"
)

// primaryKey is the key of the context's value that says which primary is reconciled.
type primaryKey struct{}

// withRefusals returns a set's configuration with resources of which refusals are noted: that what should be there exists already and is
// somebody else's.
func (c *ControllerRuntime[T]) withRefusals(config framework.ResourceSetConfig) framework.ResourceSetConfig {
	initCtx := config.InitCtx
	config.InitCtx = func(ctx context.Context, obj any) (context.Context, error) {
		if entity, ok := obj.(natsinformer.Entity); ok {
			c.refusals.Delete(entity.GetName())
			ctx = context.WithValue(ctx, primaryKey{}, entity.GetName())
		}
		if initCtx == nil {
			return ctx, nil
		}
		return initCtx(ctx, obj)
	}
	resources := make([]framework.Resource, 0, len(config.Resources))
	for _, r := range config.Resources {
		resources = append(resources, c.notingRefusals(r))
	}
	config.Resources = resources
	return config
}

// notingRefusals wraps a resource whose steps can be wrapped. Any other one stays as it is: it would lose what it implements besides.
func (c *ControllerRuntime[T]) notingRefusals(r framework.Resource) framework.Resource {
	if _, ok := r.(framework.StepWrapper); !ok {
		return r
	}
	wrapped := framework.WrapSteps(r, c.noteRefusal)
	if _, ok := wrapped.(framework.StepWrapper); !ok {
		return r
	}
	return wrapped
}

// noteRefusal is a framework.Middleware.
func (c *ControllerRuntime[T]) noteRefusal(ctx context.Context, _ framework.StepInfo, next func(context.Context) error) error {
	err := next(ctx)
	if name := refused(err); name != "" {
		if key, ok := ctx.Value(primaryKey{}).(string); ok {
			c.refusals.Store(key, name)
		}
	}
	return err
}

// tellRefusal writes the event about what stood in the way of a primary that has failed.
func (c *ControllerRuntime[T]) tellRefusal(primary any) {
	entity, ok := primary.(natsinformer.Entity)
	if !ok {
		return
	}
	if name, ok := c.refusals.LoadAndDelete(entity.GetName()); ok {
		c.Event(entity, corev1.EventTypeWarning, ReasonErrResourceExists, fmt.Sprintf(MessageErrResourceExists, name))
	}
}

// refused names what exists and is not the controller's, if an error is about that.
func refused(err error) string {
	if entry := (*natsresource.RefusedError)(nil); errors.As(err, &entry) {
		return entry.Key.Name
	}
	if object := (*objectresource.RefusedError)(nil); errors.As(err, &object) {
		return object.Key.Name
	}
	return ""
}
