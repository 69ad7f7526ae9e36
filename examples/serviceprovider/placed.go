package postgres

import (
	"context"
	"errors"
	"fmt"
	"maps"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/context/finalizerskeptcontext"
	"github.com/operatorkit/operatorkit/context/requeuecontext"
	"github.com/operatorkit/operatorkit/context/resourcecanceledcontext"
	"github.com/operatorkit/operatorkit/examples/serviceprovider/v1alpha1"
	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/operator/serviceprovider"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/clusters"
)

// fieldOwner is under which name fields are applied.
const fieldOwner = client.FieldOwner(Name + "-provider")

// absent is a version that no stored object has. Applied with it, an object that is there already is a conflict.
const absent = "1"

// placed is the resource of what a database has in one of its clusters. It knows the objects by their names, and so needs no right to list
// any. What applying would change, the API server tells by a dry run.
type placed struct {
	name    string
	cluster func(serviceprovider.ClusterContext) *clusters.Cluster
	// names names all that a database may have there.
	names func(db *v1alpha1.Postgres) []client.Object
	// desired returns what it should have.
	desired func(ctx context.Context, db *v1alpha1.Postgres, found serviceprovider.ClusterContext) ([]runtime.ApplyConfiguration, error)
}

// change is an object, in a state; and in a patch what becomes of it.
type change struct {
	// object is what is there, or what is applied.
	object *unstructured.Unstructured
	// before and after are what an update changes.
	before, after map[string]any
}

// Changes implements plan.Changer.
func (c change) Changes() []plan.Change {
	o := c.object
	told := plan.Change{Object: plan.Object{APIVersion: o.GetAPIVersion(), Kind: o.GetKind(), Namespace: o.GetNamespace(), Name: o.GetName()}}
	if c.after != nil {
		told.Fields = plan.Diff(c.before, c.after)
	}
	return []plan.Change{told}
}

// Name implements framework.TypedCRUDResourceOps.
func (p *placed) Name() string { return p.name }

// in returns the cluster, and all clusters of the database.
func (p *placed) in(ctx context.Context) (*clusters.Cluster, serviceprovider.ClusterContext, error) {
	found, ok := serviceprovider.ClustersFrom(ctx)
	if !ok || p.cluster(found) == nil {
		return nil, found, errors.New("the database has no " + p.name + " cluster")
	}
	return p.cluster(found), found, nil
}

// GetCurrentState implements framework.TypedCRUDResourceOps. Nothing is left to do in a cluster that was let go.
func (p *placed) GetCurrentState(ctx context.Context, db *v1alpha1.Postgres) ([]change, error) {
	if found, ok := serviceprovider.ClustersFrom(ctx); ok && db.DeletionTimestamp != nil && p.cluster(found) == nil {
		resourcecanceledcontext.SetCanceled(ctx)
		return nil, nil
	}
	in, _, err := p.in(ctx)
	if err != nil {
		return nil, err
	}
	var current []change
	for _, o := range p.names(db) {
		gvk, err := in.Client().GroupVersionKindFor(o)
		if err != nil {
			return nil, err
		}
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(gvk)
		err = in.Client().Get(ctx, client.ObjectKeyFromObject(o), u)
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return nil, fmt.Errorf("read %s %s from cluster %q: %w", gvk.Kind, client.ObjectKeyFromObject(o), in.ID(), err)
		default:
			current = append(current, change{object: u})
		}
	}
	return current, nil
}

// GetDesiredState implements framework.TypedCRUDResourceOps.
func (p *placed) GetDesiredState(ctx context.Context, db *v1alpha1.Postgres) ([]change, error) {
	if db.DeletionTimestamp != nil {
		return nil, nil
	}
	_, found, err := p.in(ctx)
	if err != nil {
		return nil, err
	}
	configurations, err := p.desired(ctx, db, found)
	if err != nil {
		return nil, err
	}
	var desired []change
	for _, c := range configurations {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(c)
		if err != nil {
			return nil, err
		}
		desired = append(desired, change{object: &unstructured.Unstructured{Object: content}})
	}
	return desired, nil
}

// NewUpdatePatch implements framework.TypedCRUDResourceOps.
func (p *placed) NewUpdatePatch(ctx context.Context, _ *v1alpha1.Postgres, current, desired []change) (*framework.TypedPatch[[]change], error) {
	var created, updated []change
	for _, want := range desired {
		have := find(current, want.object)
		if have == nil {
			want.after = stable(want.object)
			want.object.SetResourceVersion(absent)
			created = append(created, want)
			continue
		}
		applied, err := p.apply(ctx, want.object, client.DryRunAll)
		if err != nil {
			return nil, err
		}
		want.before, want.after = stable(have), stable(applied)
		if len(plan.Diff(want.before, want.after)) > 0 {
			updated = append(updated, want)
		}
	}
	patch := framework.NewTypedPatch[[]change]()
	if len(created) > 0 {
		patch.SetCreateChange(created)
	}
	if len(updated) > 0 {
		patch.SetUpdateChange(updated)
	}
	return patch, nil
}

// NewDeletePatch implements framework.TypedCRUDResourceOps.
func (p *placed) NewDeletePatch(_ context.Context, _ *v1alpha1.Postgres, current, _ []change) (*framework.TypedPatch[[]change], error) {
	patch := framework.NewTypedPatch[[]change]()
	if len(current) > 0 {
		patch.SetDeleteChange(current)
	}
	return patch, nil
}

// ApplyCreateChange implements framework.TypedCRUDResourceOps.
func (p *placed) ApplyCreateChange(ctx context.Context, db *v1alpha1.Postgres, changes []change) error {
	return p.ApplyUpdateChange(ctx, db, changes)
}

// ApplyUpdateChange implements framework.TypedCRUDResourceOps.
func (p *placed) ApplyUpdateChange(ctx context.Context, _ *v1alpha1.Postgres, changes []change) error {
	for _, c := range changes {
		if _, err := p.apply(ctx, c.object); err != nil {
			return err
		}
	}
	return nil
}

// ApplyDeleteChange implements framework.TypedCRUDResourceOps. The objects are looked at until they are gone.
func (p *placed) ApplyDeleteChange(ctx context.Context, _ *v1alpha1.Postgres, changes []change) error {
	in, _, err := p.in(ctx)
	if err != nil {
		return err
	}
	for _, c := range changes {
		if err := in.Client().Delete(ctx, c.object.DeepCopy(), foreground); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete %s %s/%s in cluster %q: %w", c.object.GetKind(), c.object.GetNamespace(), c.object.GetName(), in.ID(), err)
		}
	}
	if status, ok := serviceprovider.ObjectFrom[*v1alpha1.Postgres](ctx); ok {
		serviceprovider.StatusTerminatingWithReason(status, "", "the database is being shut down")
	}
	finalizerskeptcontext.SetKept(ctx)
	requeuecontext.SetAfter(ctx, pause)
	return nil
}

// apply makes an object as it should be, whatever others have done to it, and returns what became of it.
func (p *placed) apply(ctx context.Context, o *unstructured.Unstructured, options ...client.ApplyOption) (*unstructured.Unstructured, error) {
	in, _, err := p.in(ctx)
	if err != nil {
		return nil, err
	}
	applied := o.DeepCopy()
	if err := in.Client().Apply(ctx, client.ApplyConfigurationFromUnstructured(applied), append(options, fieldOwner, client.ForceOwnership)...); err != nil {
		return nil, fmt.Errorf("apply %s %s/%s to cluster %q: %w", o.GetKind(), o.GetNamespace(), o.GetName(), in.ID(), err)
	}
	return applied, nil
}

// find returns the object of the kind and the name, nil if it is not there.
func find(current []change, o *unstructured.Unstructured) *unstructured.Unstructured {
	for _, c := range current {
		if c.object.GroupVersionKind() == o.GroupVersionKind() && client.ObjectKeyFromObject(c.object) == client.ObjectKeyFromObject(o) {
			return c.object
		}
	}
	return nil
}

// stable returns the content of an object without its status and what the API server maintains.
func stable(o *unstructured.Unstructured) map[string]any {
	content := maps.Clone(o.Object)
	delete(content, "status")
	if metadata, ok := content["metadata"].(map[string]any); ok {
		metadata = maps.Clone(metadata)
		for _, field := range []string{"managedFields", "resourceVersion", "generation", "uid", "creationTimestamp"} {
			delete(metadata, field)
		}
		content["metadata"] = metadata
	}
	return content
}
