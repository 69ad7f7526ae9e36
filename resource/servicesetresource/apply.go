package servicesetresource

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/resource/serviceset"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// Apply implements worklist.Ops. It carries out all operations, also when one fails. An error that is no conflict comes first, so
// that it is not taken for one.
func (r *resource[O]) Apply(ctx context.Context, _ O, change State) error {
	var faults, conflicts []error
	for i := range change.operations {
		o := &change.operations[i]
		err := r.write(ctx, o.Operation)
		switch {
		case err == nil:
			r.log(ctx, o)
		case apierrors.IsConflict(err):
			conflicts = append(conflicts, fmt.Errorf("%s ServiceSet %s: %w", operationOf(o), o.Key, err))
		default:
			faults = append(faults, fmt.Errorf("%s ServiceSet %s: %w", operationOf(o), o.Key, err))
		}
	}
	return errors.Join(append(faults, conflicts...)...)
}

// write writes one set. It is a conflict if the set is not the one any more that the operation was computed for.
func (r *resource[O]) write(ctx context.Context, o *serviceset.Operation) error {
	switch o.Operation {
	case v1alpha1.ServiceSetOperationCreate:
		err := r.config.Client.Create(ctx, o.ServiceSet.DeepCopy())
		if apierrors.IsAlreadyExists(err) {
			return conflict(o.ServiceSet.Name, "it has appeared since the patch was computed")
		}
		return err
	case v1alpha1.ServiceSetOperationUpdate:
		err := r.config.Client.Update(ctx, o.ServiceSet.DeepCopy())
		if apierrors.IsNotFound(err) {
			return conflict(o.ServiceSet.Name, "it has gone since the patch was computed")
		}
		return err
	}
	before := o.Before
	return client.IgnoreNotFound(r.config.Client.Delete(ctx, before.DeepCopy(),
		client.Preconditions{UID: &before.UID, ResourceVersion: &before.ResourceVersion}))
}

func conflict(name, why string) error {
	resource := schema.GroupResource{Group: v1alpha1.GroupVersion.Group, Resource: "servicesets"}
	return apierrors.NewConflict(resource, name, errors.New(why))
}

// log says what became of each service, and none of the values.
func (r *resource[O]) log(ctx context.Context, o *serviceset.OwnerOperation) {
	logger := framework.Logger(ctx, r.config.Logger)
	for _, c := range changesOf(o) {
		fields := []any{"level", "info", "message", pastOf[c.Action] + " " + kindOf(c.Object), "written", "ServiceSet " + o.Key.String()}
		if c.Object.Kind == serviceKind {
			fields = append(fields, "service", strings.TrimPrefix(c.Object.String(), serviceKind+" "))
		}
		if c.Description != "" {
			fields = append(fields, "change", c.Description)
		}
		if c.Action == plan.Update && len(c.Fields) > 0 {
			paths := make([]string, len(c.Fields))
			for i, f := range c.Fields {
				paths[i] = f.Path
			}
			fields = append(fields, "fields", strings.Join(paths, ", "))
		}
		logger.LogCtx(ctx, fields...)
	}
}

var pastOf = map[plan.Action]string{plan.Create: "created", plan.Update: "updated", plan.Delete: "deleted"}

// kindOf names what was written: a set, or the entry of a service in it.
func kindOf(o plan.Object) string {
	if o.Kind == serviceKind {
		return "the entry of a service"
	}
	return "a ServiceSet"
}
