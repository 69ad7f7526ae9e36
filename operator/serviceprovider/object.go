package serviceprovider

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/operatorkit/operatorkit/framework/identity"
	"github.com/operatorkit/operatorkit/internal/statusmap"
	"github.com/operatorkit/operatorkit/operator/internal/claims"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// errChanged is an object that is not what it was when it was read.
var errChanged = errors.New("the object has changed meanwhile")

// finalizers are the two that an object has. What has been done of a deletion is told by those that are left, and by nothing
// else: a restart goes on where the last process ended.
type finalizers struct {
	// work holds the object until Delete has succeeded. The first is the present one, the others are former ones.
	work []string
	// access holds the object until there is no access to its clusters any more.
	access []string
}

// finalizersOf returns those of an identity. One that an author has chosen comes first.
func finalizersOf(work identity.Identity, chosen string) finalizers {
	access := work
	access.Framework += "-access"
	f := finalizers{work: append([]string{work.Finalizer()}, work.FormerFinalizers()...), access: append([]string{access.Finalizer()}, access.FormerFinalizers()...)}
	if chosen != "" {
		f.work, f.access = append([]string{chosen}, f.work...), append([]string{chosen + "-access"}, f.access...)
	}
	return f
}

// hasAny tells whether one of some finalizers is on an object.
func hasAny(obj client.Object, finalizers []string) bool {
	return slices.ContainsFunc(obj.GetFinalizers(), func(f string) bool { return slices.Contains(finalizers, f) })
}

// object is an object while it is reconciled.
type object[T API] struct {
	request ctrl.Request
	// raw is the object as the API server has it, also with fields that T does not know.
	raw *unstructured.Unstructured
	// obj is what the author gets. Only its status counts.
	obj T
	// before is the status of obj when it was read.
	before map[string]any
	// gone is set when nothing holds the object any more.
	gone bool
	// clusters are those that were found. told tells that the author has said something in the condition Ready.
	clusters ClusterContext
	told     bool
}

// says tells in the status what the object waits for.
func (o *object[T]) says(reason, message string) {
	if o.raw.GetDeletionTimestamp() != nil {
		StatusTerminatingWithReason(o.obj, reason, message)
	} else {
		StatusProgressing(o.obj, reason, message)
	}
}

// fetch reads an object from the API server, not from a cache that may be late.
func (r *APIReconciler[T, C]) fetch(ctx context.Context, req ctrl.Request) (*object[T], error) {
	o := &object[T]{request: req, raw: r.blank(req), obj: r.empty()}
	if err := r.onboarding.Client().Get(ctx, req.NamespacedName, o.raw); err != nil {
		return nil, fmt.Errorf("read it from cluster %q: %w", r.onboarding.ID(), err)
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.raw.Object, o.obj); err != nil {
		return nil, fmt.Errorf("read it as a %T: %w", o.obj, err)
	}
	var err error
	o.before, err = statusmap.Of(o.obj)
	return o, err
}

// blank names an object of the kind.
func (r *APIReconciler[T, C]) blank(req ctrl.Request) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(r.kind)
	u.SetNamespace(req.Namespace)
	u.SetName(req.Name)
	return u
}

// patchMetadata sends a patch of the metadata that is valid for the object as it was read and for no other version.
func (r *APIReconciler[T, C]) patchMetadata(ctx context.Context, o *object[T], metadata map[string]any) error {
	metadata["uid"], metadata["resourceVersion"] = o.raw.GetUID(), o.raw.GetResourceVersion()
	body, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		return err
	}
	patched := r.blank(o.request)
	err = r.onboarding.Client().Patch(ctx, patched, client.RawPatch(types.MergePatchType, body))
	switch {
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		return fmt.Errorf("%w: %w", errChanged, err)
	case err != nil:
		return err
	}
	o.raw = patched
	// What the author gets may be written by the author.
	o.obj.SetResourceVersion(patched.GetResourceVersion())
	o.obj.SetFinalizers(patched.GetFinalizers())
	o.obj.SetAnnotations(patched.GetAnnotations())
	return nil
}

// ensureFinalizers puts finalizers on an object, the first of each list, in the place of the former ones, which are the others, and claims
// its status if nobody else has.
func (r *APIReconciler[T, C]) ensureFinalizers(ctx context.Context, o *object[T], lists ...[]string) error {
	before := o.raw.GetFinalizers()
	after := slices.Clone(before)
	for _, finalizers := range lists {
		after = slices.DeleteFunc(after, func(f string) bool { return slices.Contains(finalizers[1:], f) })
		if !slices.Contains(after, finalizers[0]) {
			after = append(after, finalizers[0])
		}
	}
	metadata := map[string]any{}
	if !slices.Equal(after, before) {
		metadata["finalizers"] = after
	}
	if own := claims.By(r.identity); r.reporter(o.raw) == "" && o.raw.GetAnnotations()[claims.Annotation] != own {
		metadata["annotations"] = map[string]string{claims.Annotation: own}
	}
	if len(metadata) == 0 {
		return nil
	}
	if err := r.patchMetadata(ctx, o, metadata); err != nil {
		return fmt.Errorf("add finalizers: %w", err)
	}
	return nil
}

// reporter is who else writes the status of an object, empty for nobody.
func (r *APIReconciler[T, C]) reporter(obj client.Object) string {
	return claims.HolderOf(obj, claims.Annotation, r.identity)
}

// removeFinalizers takes finalizers off an object, in whatever version it is by now, and reads it anew.
func (r *APIReconciler[T, C]) removeFinalizers(ctx context.Context, o *object[T], finalizers []string) error {
	ctx, cancel := r.limited(ctx)
	defer cancel()
	for _, f := range finalizers {
		if !slices.Contains(o.raw.GetFinalizers(), f) {
			continue
		}
		if err := r.objects.RemoveFinalizer(ctx, o.raw, f); apierrors.IsConflict(err) {
			return fmt.Errorf("%w: %w", errChanged, err)
		} else if err != nil {
			return err
		}
	}
	if o.gone {
		return nil
	}
	return r.refresh(ctx, o)
}

// refresh reads the raw object anew. One of the same name that is another object counts as gone.
func (r *APIReconciler[T, C]) refresh(ctx context.Context, o *object[T]) error {
	fresh := r.blank(o.request)
	err := r.onboarding.Client().Get(ctx, o.request.NamespacedName, fresh)
	if apierrors.IsNotFound(err) || err == nil && fresh.GetUID() != o.raw.GetUID() {
		o.gone = true
		return nil
	}
	if err != nil {
		return err
	}
	o.raw = fresh
	return nil
}
