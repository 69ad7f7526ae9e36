package manifest

import (
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/resource/internal/serverside"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
)

// comparisons is how often an object is compared with what applying it would give while others are writing it.
const comparisons = 3

// apply applies an object, which becomes what the server made of it. With a UID and
// a version it has to be that object as it was then, otherwise it is a conflict.
func apply(ctx context.Context, cluster carrier.Cluster, service *carrier.Service, object *unstructured.Unstructured, force bool, options ...client.ApplyOption) error {
	options = append(options, client.FieldOwner(service.Owner.FieldManager()))
	if force {
		options = append(options, client.ForceOwnership)
	}
	applying := carrier.Applying{
		Client: cluster.Client(), Manager: service.Owner.FieldManager(), DryRun: slices.Contains(options, client.ApplyOption(client.DryRunAll)),
		Send: func(sent *unstructured.Unstructured) error {
			return serverside.Apply(ctx, cluster.Client(), sent, options...)
		},
	}
	return applying.Apply(ctx, object)
}

// difference asks the API server by a dry run what applying a manifest to an object would change. It returns the object as it
// was then, nil if it is gone.
func difference(
	ctx context.Context, cluster carrier.Cluster, service *carrier.Service, have *unstructured.Unstructured, want manifest, force bool,
) (*unstructured.Unstructured, []plan.FieldChange, error) {
	for attempt := 1; ; attempt++ {
		applied := want.beside(service, have).Object.DeepCopy()
		applied.SetUID(have.GetUID())
		err := apply(ctx, cluster, service, applied, force, client.DryRunAll)
		if conflict := conflictOf(want, err); conflict != nil {
			return nil, nil, conflict
		}
		raced := apierrors.IsConflict(err) || err == nil && applied.GetResourceVersion() != have.GetResourceVersion()
		if !raced || attempt == comparisons {
			if err != nil {
				return nil, nil, fault("compare", want, err)
			}
			return have, want.hide(plan.Diff(serverside.Stable(have.Object), serverside.Stable(applied.Object))), nil
		}
		if have, err = get(ctx, cluster.Client(), referTo(want.Object)); have == nil || err != nil {
			return nil, nil, err
		}
	}
}

// beside is what is compared with an object that there is, and applied to it: all but the differences that the service ignores.
func (m manifest) beside(service *carrier.Service, have *unstructured.Unstructured) manifest {
	m.Object = service.Beside(m.Object, have, service.Owner.FieldManager())
	return m
}

// sameFields tells whether two manifests set the same fields, with whatever values: then there is none to take away.
func sameFields(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for name := range a {
			inner, ok := b[name]
			if !ok || !sameFields(a[name], inner) {
				return false
			}
		}
		return true
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, sameFields)
	}
	switch b.(type) {
	case map[string]any, []any:
		return false
	}
	return true
}
