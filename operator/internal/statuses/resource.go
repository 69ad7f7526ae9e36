package statuses

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/resource/statusresource"
)

// New returns the resource that writes the status of objects. set changes the status of its object to what it should be, and tell is told
// of each status that was written.
func New[O client.Object](
	d *operator.Dependencies, set func(ctx context.Context, obj O) error, tell func(ctx context.Context, before, after O),
) (framework.Resource, error) {
	return statusresource.New(statusresource.Config[O]{
		Client: d.Client, Logger: d.Logger, Custom: true,
		Set:     func(ctx context.Context, obj O, _ *statusresource.Report) error { return set(ctx, obj) },
		Written: tell,
	})
}

// Write writes the status of after over that of before, provided that before is the newest state.
func Write[O client.Object](ctx context.Context, c client.Client, before, after O) error {
	_, err := statusresource.Write(ctx, c, before, after)
	return err
}
