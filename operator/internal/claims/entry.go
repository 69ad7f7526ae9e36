package claims

import (
	"context"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/informer"
)

// ResourceName is the name of the resource.
const ResourceName = "claim"

// Source returns a source of the objects of another one, whose finalizers are put on what is claimed only. purpose makes its name differ
// from that of the other one, for operators that have both. It may be empty.
func (c *Claims) Source(objects *informer.Kubernetes, purpose string) informer.Source {
	return &source{Kubernetes: objects, name: strings.TrimSpace(objects.Name() + " " + purpose), claims: c}
}

type source struct {
	*informer.Kubernetes
	name   string
	claims *Claims
}

// Name implements informer.Source.
func (s *source) Name() string { return s.name }

// AddFinalizer implements informer.FinalizerStore. An object that is not claimed gets no finalizer, so that nobody waits for an
// operator that does nothing for it.
func (s *source) AddFinalizer(ctx context.Context, obj any, finalizer string) (any, error) {
	claimed, err := s.claims.Take(ctx, obj)
	if err != nil {
		return nil, err
	}
	return s.Kubernetes.AddFinalizer(ctx, claimed, finalizer)
}

// Resource returns what claims objects that have lost their claim, and fails for those of others. It is the first one of its set.
func (c *Claims) Resource() framework.Resource { return resource{c} }

// Reports returns what claims objects that several operators work for, of whom one writes the status. Those of others are passed over
// in silence: who writes the status asks Refusal. It stands before that one in its set.
func (c *Claims) Reports() framework.Resource { return reports{resource{c}} }

type reports struct{ resource }

// EnsureCreated implements framework.Resource. One that another operator claims at this moment is that one's.
func (r reports) EnsureCreated(ctx context.Context, obj any) error {
	if err := r.resource.EnsureCreated(ctx, obj); !framework.IsPermanent(err) {
		return err
	}
	return nil
}

// Plan implements framework.Planner.
func (reports) Plan(context.Context, plan.Event, any) ([]plan.Change, error) { return nil, nil }

type resource struct{ *Claims }

var (
	_ framework.Planner = resource{}
	_ framework.Planner = reports{}
)

// Rights implements framework.RightsLister: of the primaries, as far as nothing else is claimed for them.
func (r resource) Rights() []framework.Right {
	if r.Of != nil {
		return nil
	}
	return []framework.Right{{Verbs: []string{"get", "patch"}}}
}

// Name implements framework.Resource.
func (resource) Name() string { return ResourceName }

// EnsureCreated implements framework.Resource. The object gets what was written, for those who come after.
func (r resource) EnsureCreated(ctx context.Context, obj any) error {
	claimed, err := r.Take(ctx, obj)
	if err != nil || r.Of != nil {
		return err
	}
	from, to := claimed.(client.Object), obj.(client.Object)
	to.SetAnnotations(from.GetAnnotations())
	to.SetResourceVersion(from.GetResourceVersion())
	return nil
}

// EnsureDeleted implements framework.Resource. What others have claimed is known to those who come after, by Refusal.
func (r resource) EnsureDeleted(context.Context, any) error { return nil }

// Plan implements framework.Planner. A claim, like a finalizer, is no part of a plan.
func (r resource) Plan(ctx context.Context, event plan.Event, obj any) ([]plan.Change, error) {
	what, ok := obj.(client.Object)
	if r.Of != nil {
		var err error
		if what, err = r.Of(ctx, obj); err != nil {
			return nil, err
		}
		ok = what != nil
	}
	if !ok || event != plan.UpdateEvent {
		return nil, nil
	}
	return nil, r.Refusal(what)
}
