package framework

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/informer"
)

// ShadowObject is an object for which a shadow resource set differs from the active one, or can't
// be compared with it.
type ShadowObject struct {
	// Key names the object.
	Key informer.Key
	// Verdict is the result of the last comparison.
	Verdict plan.Verdict
	// Comparison is the last comparison, which must not be changed. It is nil if too many are kept
	// already: PlanShadows makes a new one.
	Comparison *plan.Comparison
}

// Shadows returns the results of the comparisons after reconciliations so far, for each shadow
// resource set in the order of the router: the number of objects for which it differs from the
// active set, and the places. It is empty without shadows.
//
// An object is compared a second after its successful reconciliation, and when no other object
// waits for one. Its result is removed when the object is gone, or when no set or the shadow itself
// no longer handles it.
func (f *Framework) Shadows() []plan.ShadowSummary {
	if f.shadows == nil {
		return nil
	}
	summaries := f.shadows.Summaries()
	for i := range summaries {
		summaries[i].Framework = f.Name()
	}
	return summaries
}

// ShadowObjects returns the objects for which a shadow resource set differs from the active one, or
// can't be compared with it, sorted by namespace and name. The details of at most 1000 objects are
// kept for each set.
func (f *Framework) ShadowObjects(set string) []ShadowObject {
	if f.shadows == nil {
		return nil
	}
	var objects []ShadowObject
	for _, o := range f.shadows.Objects(set) {
		objects = append(objects, ShadowObject(o))
	}
	slices.SortFunc(objects, func(a, b ShadowObject) int {
		return cmp.Or(cmp.Compare(a.Key.Namespace, b.Key.Namespace), cmp.Compare(a.Key.Name, b.Key.Name))
	})
	return objects
}

// ShadowsOf returns the last comparisons of an object that did not come out equal, in the order of
// the shadow sets. They must not be changed.
func (f *Framework) ShadowsOf(key informer.Key) []*plan.Comparison {
	if f.shadows == nil {
		return nil
	}
	return f.shadows.Of(key)
}

// PlanShadows compares, for an object of the source, the plan of every shadow resource set that
// handles it with the plan of the active set, in the order of the router. It changes nothing:
// neither the object, nor the result of Shadows. Failures of resources are in the comparison. The
// error is that of ctx, that of the source if the object can't be read, or one for which
// apierrors.IsNotFound holds if the object does not exist. Objects that are ignored, because they
// are paused or no set handles them, have no comparisons. It may be called at the same times as
// Plan.
func (f *Framework) PlanShadows(ctx context.Context, key informer.Key) ([]*plan.Comparison, error) {
	if last, ok := f.tombstones.first(key); ok {
		return f.compareSets(ctx, subject{event: deleteEvent, key: key, obj: informer.Copy(last.obj)})
	}
	obj, exists, err := f.source.Get(key)
	switch {
	case err != nil:
		return nil, fmt.Errorf("compare shadows of %s: read it from source %q: %w",
			keyString(key), f.source.Name(), err)
	case !exists:
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: f.source.Name()}, keyString(key))
	}
	return f.PlanObjectShadows(ctx, obj)
}

// PlanObjectShadows is PlanShadows for an object that need not be in the source, such as one that
// is not created yet. The object belongs to the framework afterwards.
func (f *Framework) PlanObjectShadows(ctx context.Context, obj any) ([]*plan.Comparison, error) {
	s := subjectOf(obj)
	if f.ignoreReason(s.event, s.key, obj) != "" {
		return nil, nil
	}
	return f.compareSets(ctx, s)
}
