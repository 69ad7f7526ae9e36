package helm

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
)

// releaseKind is what plans call a release.
const releaseKind = "HelmRelease"

// releaseChange is what happens to the release itself.
func (j *job) releaseChange(action plan.Action, description string, fields ...plan.FieldChange) plan.Change {
	return plan.Change{
		Action: action, Object: plan.Object{Kind: releaseKind, Namespace: j.service.Key.Namespace, Name: j.service.Key.Name},
		Fields: fields, Description: description,
	}
}

// namespace looks at the namespace of the release. It is absent, and to be created, where create is true.
func (j *job) namespace(ctx context.Context) (create bool, err error) {
	found := &metav1.PartialObjectMetadata{}
	found.SetGroupVersionKind(namespaceKind)
	err = j.client.Get(ctx, client.ObjectKey{Name: j.service.Key.Namespace}, found)
	switch {
	case apierrors.IsNotFound(err) && j.options.createNamespace:
		return true, nil
	case apierrors.IsNotFound(err):
		return false, fmt.Errorf("the namespace %s does not exist: create it, or leave helmOptions.createNamespace out", j.service.Key.Namespace)
	case apierrors.IsForbidden(err) && j.service.Account != nil:
		return false, nil // A tenant need not see his namespace: if it is not there, what goes into it is refused.
	case err != nil:
		return false, fmt.Errorf("read the namespace %s: %w", j.service.Key.Namespace, err)
	case found.DeletionTimestamp != nil:
		return false, &deletingError{object: "the namespace " + j.service.Key.Namespace}
	}
	return false, nil
}

// planner works out what applying objects changes.
type planner struct {
	*job
	// fresh is true while the namespace is still to be created, so that nothing can be in it.
	fresh bool
	// known are definitions that are still to be applied.
	known carrier.Definitions

	changes []plan.Change
	// hooks are the objects of the hooks, and left is what earlier ones have left that becomes an object of the release.
	hooks []*unstructured.Unstructured
	left  []*metav1.PartialObjectMetadata
	// seen are the objects that are deleted.
	seen map[carrier.Identity]*metav1.PartialObjectMetadata
}

// apply plans that an object, which the service owns, is applied.
func (p *planner) apply(ctx context.Context, u *unstructured.Unstructured) error {
	desired := p.dressed(u)
	if p.fresh && desired.GetNamespace() == p.service.Key.Namespace || p.unknown(desired) {
		p.changes = append(p.changes, plan.Describe(plan.Create, desired, nil)...)
		return nil
	}
	live := emptyOf(desired)
	err := p.client.Get(ctx, client.ObjectKeyFromObject(desired), live)
	switch {
	case apierrors.IsNotFound(err):
		p.changes = append(p.changes, plan.Describe(plan.Create, desired, nil)...)
		return p.checkCreation(ctx, desired)
	case meta.IsNoMatchError(err):
		return &unknownKindError{object: describe(desired), kind: desired.GroupVersionKind(), err: err}
	case err != nil:
		return fmt.Errorf("read %s: %w", describe(desired), err)
	case live.GetDeletionTimestamp() != nil:
		return &deletingError{object: describe(desired)}
	case p.refuses(live) != nil:
		return p.refuses(live)
	case isHook(live) && p.service.Has(live.GetLabels()):
		if !p.owns(live) {
			p.left = append(p.left, metadataOf(live))
		}
	case !p.owns(live):
		return fmt.Errorf("%s is there already and not from this release: delete it, or give it to the release by the label "+
			"%s=%s and the annotations %s=%s and %s=%s: %w", describe(live), managedByLabel, managedByHelm,
			releaseNameAnnotation, p.service.Key.Name, releaseNamespaceAnnotation, p.service.Key.Namespace, carrier.ErrConflict)
	}
	return p.update(ctx, desired, live)
}

// update plans that an object which is there is applied.
func (p *planner) update(ctx context.Context, desired, live *unstructured.Unstructured) error {
	desired = p.service.Beside(desired, live, fieldManager)
	after := desired.DeepCopy()
	err := p.applyObject(ctx, after, client.DryRunAll)
	if carrier.Immutable(err) {
		if !p.replaces(desired) {
			return framework.Permanent(fmt.Errorf("%w (delete the object, or give it another name, or name its kind in replaceKinds)", err))
		}
		if err := carrier.Creatable(ctx, p.client, desired); err != nil {
			return fmt.Errorf("replace %s: %w", describe(desired), err)
		}
		p.changes = append(p.changes, plan.Change{Action: plan.Delete, Description: "replaced: it can't be changed", Object: plan.Object{
			APIVersion: live.GetAPIVersion(), Kind: live.GetKind(), Namespace: live.GetNamespace(), Name: live.GetName(),
			UID: live.GetUID(), Version: live.GetResourceVersion(),
		}})
		p.changes = append(p.changes, plan.Describe(plan.Create, desired, nil)...)
		return nil
	}
	if err != nil {
		return err
	}
	for _, change := range plan.Describe(plan.Update, after, live) {
		if len(change.Fields) > 0 {
			p.changes = append(p.changes, change)
		}
	}
	return nil
}

// replaces tells whether an object is deleted and created anew where it can't be changed.
func (j *job) replaces(u *unstructured.Unstructured) bool {
	return j.service.Config.Replaces(u.GroupVersionKind().GroupKind())
}

// checkCreation asks the API server whether it would have an object, before anything is touched. What other objects of the
// release have to be there for, such as a namespace, is no reason against it.
func (p *planner) checkCreation(ctx context.Context, desired *unstructured.Unstructured) error {
	err := p.applyObject(ctx, desired.DeepCopy(), client.DryRunAll)
	if refusesContent(err) {
		return err
	}
	return nil
}

// metadataOf returns what names an object, with the life and the version in which it was read.
func metadataOf(u *unstructured.Unstructured) *metav1.PartialObjectMetadata {
	seen := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: u.GetNamespace(), Name: u.GetName(), UID: u.GetUID(), ResourceVersion: u.GetResourceVersion(),
	}}
	seen.SetGroupVersionKind(u.GroupVersionKind())
	return seen
}

// unknown tells whether the kind of an object is yet to be defined by the release itself.
func (p *planner) unknown(u *unstructured.Unstructured) bool {
	_, err := p.mapper.RESTMapping(u.GroupVersionKind().GroupKind(), u.GroupVersionKind().Version)
	if !meta.IsNoMatchError(err) {
		return false
	}
	_, err = p.known.Mapping(p.mapper, u.GroupVersionKind())
	return err == nil
}

// remove plans that an object of an earlier revision is deleted.
func (p *planner) remove(ctx context.Context, u *unstructured.Unstructured) (bool, error) {
	live, err := p.ownLive(ctx, u)
	if live == nil || err != nil {
		return false, err
	}
	p.deletes(u, live)
	return true, nil
}

// deletes plans that an object is deleted as it was seen.
func (p *planner) deletes(u *unstructured.Unstructured, live *metav1.PartialObjectMetadata) {
	if p.seen == nil {
		p.seen = map[carrier.Identity]*metav1.PartialObjectMetadata{}
	}
	p.seen[carrier.IdentityOf(u)] = live
	p.changes = append(p.changes, deletionOf(u, live))
}

// removeStale plans that objects of earlier revisions are deleted which are not wanted any more, and returns them. One that is a hook now is
// deleted also after the hook has been run: so does Helm.
func (p *planner) removeStale(ctx context.Context, objects, wanted []*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	var stale []*unstructured.Unstructured
	for _, u := range without(objects, wanted) {
		removed, err := p.remove(ctx, u)
		if err == nil && !removed && isAmong(p.hooks, u) {
			removed, err = p.removeHook(ctx, u)
		}
		if err != nil {
			return nil, err
		}
		if removed {
			stale = append(stale, u)
		}
	}
	return stale, nil
}

// removeHook plans that what a hook has left behind is deleted.
func (p *planner) removeHook(ctx context.Context, u *unstructured.Unstructured) (bool, error) {
	live, err := p.hookLive(ctx, u)
	if live == nil || err != nil {
		return false, err
	}
	p.deletes(u, live)
	return true, nil
}

func deletionOf(u *unstructured.Unstructured, live *metav1.PartialObjectMetadata) plan.Change {
	return plan.Change{Action: plan.Delete, Object: plan.Object{
		APIVersion: u.GetAPIVersion(), Kind: u.GetKind(), Namespace: u.GetNamespace(), Name: u.GetName(),
		UID: live.UID, Version: live.ResourceVersion,
	}}
}
