package reconcilerresource

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/operatorkit/operatorkit/context/finalizerskeptcontext"
	"github.com/operatorkit/operatorkit/context/requeuecontext"
	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/internal/faults"
)

// requeueDelay stands for the deprecated Result.Requeue, which names no duration.
const requeueDelay = time.Second

// Config configures a Resource.
type Config struct {
	// Name identifies the resource in logs, metrics and errors. Required.
	Name string
	// Reconciler does the work. It must be safe for concurrent use, for different keys. Required.
	Reconciler reconcile.Reconciler
	// Logger is what the reconciler finds with controller-runtime's log.FromContext, with the object as
	// "object" in the form namespace/name. Default: what the context holds already.
	Logger logr.Logger
}

// Resource calls a reconciler. It is safe for concurrent use.
type Resource struct {
	name       string
	reconciler reconcile.Reconciler
	logger     logr.Logger
}

var _ framework.Resource = (*Resource)(nil)

// New returns a resource, or an error for which framework.IsInvalidConfig holds.
func New(config Config) (*Resource, error) {
	var wrong faults.List
	wrong.If(config.Name == "", "Name must not be empty")
	wrong.If(config.Reconciler == nil, "Reconciler must not be nil")
	if err := wrong.Of("reconcilerresource.Config"); err != nil {
		return nil, err
	}
	return &Resource{name: config.Name, reconciler: config.Reconciler, logger: config.Logger}, nil
}

// Name implements framework.Resource.
func (r *Resource) Name() string { return r.name }

// EnsureCreated implements framework.Resource.
func (r *Resource) EnsureCreated(ctx context.Context, obj any) error {
	_, err := r.reconcile(ctx, obj)
	return err
}

// EnsureDeleted implements framework.Resource.
func (r *Resource) EnsureDeleted(ctx context.Context, obj any) error {
	unfinished, err := r.reconcile(ctx, obj)
	if unfinished {
		finalizerskeptcontext.SetKept(ctx)
	}
	return err
}

// named is what is needed of an object.
type named interface {
	GetNamespace() string
	GetName() string
}

// reconcile calls the reconciler and tells whether it wants to be called again.
func (r *Resource) reconcile(ctx context.Context, obj any) (again bool, err error) {
	o, ok := obj.(named)
	if !ok {
		return false, framework.Permanent(fmt.Errorf("a %T has no namespace and name to call a reconciler with", obj))
	}
	key := types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
	if r.logger.GetSink() != nil {
		ctx = logr.NewContext(ctx, r.logger.WithValues("object", key.String()))
	}

	result, err := r.reconciler.Reconcile(ctx, reconcile.Request{NamespacedName: key})
	if err != nil {
		if errors.Is(err, reconcile.TerminalError(nil)) {
			return false, framework.Permanent(err)
		}
		return false, err
	}
	after := result.RequeueAfter
	if after <= 0 && result.Requeue { //nolint:staticcheck // reconcilers that still use it must work here as well
		after = requeueDelay
	}
	if after <= 0 {
		return false, nil
	}
	requeuecontext.SetAfter(ctx, after)
	return true, nil
}
