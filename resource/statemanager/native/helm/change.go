package helm

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
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
	// known are definitions that come with the chart.
	known carrier.Definitions
	// pending are the kinds whose definitions change: before the release is made where that is true, and else with it.
	pending map[schema.GroupKind]bool
	// later are objects that can't be tried out before the namespace, or a definition that comes before the release, is there.
	later []*unstructured.Unstructured

	changes []plan.Change
	// hooks are the objects of the hooks, and left is what earlier ones have left that becomes an object of the release.
	hooks []*unstructured.Unstructured
	left  []*metav1.PartialObjectMetadata
	// seen are the objects that are deleted.
	seen map[carrier.Identity]*metav1.PartialObjectMetadata
	// stays says which objects are not deleted, and why.
	stays []string
}

// apply plans that an object, which the service owns, is applied.
func (p *planner) apply(ctx context.Context, u *unstructured.Unstructured) error {
	before := len(p.changes)
	if err := p.applyDressed(ctx, p.dressed(u)); err != nil {
		return err
	}
	if u.GroupVersionKind().GroupKind() == carrier.DefinitionKind && (len(p.changes) > before || carrier.Unknown(p.mapper, carrier.ServedBy(u)) != nil) {
		p.expect(u, false)
	}
	return nil
}

// expect notes that a definition changes, before the release is made or with it.
func (p *planner) expect(definition *unstructured.Unstructured, before bool) {
	if p.pending == nil {
		p.pending = map[schema.GroupKind]bool{}
	}
	p.pending[carrier.DefinedBy(definition)] = before
}

func (p *planner) applyDressed(ctx context.Context, desired *unstructured.Unstructured) error {
	_, pending := p.pending[desired.GroupVersionKind().GroupKind()]
	if p.fresh && desired.GetNamespace() == p.service.Key.Namespace {
		return p.create(ctx, desired)
	}
	live := emptyOf(desired)
	if pending {
		if served, err := carrier.Served(p.mapper, desired.GroupVersionKind()); err == nil {
			live.SetGroupVersionKind(served)
		}
	}
	err := p.client.Get(ctx, client.ObjectKeyFromObject(desired), live)
	switch {
	case apierrors.IsNotFound(err), meta.IsNoMatchError(err) && pending:
		return p.create(ctx, desired)
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
		return p.foreignObject(live)
	}
	err = p.update(ctx, desired, live)
	if pending && carrier.AwaitsDefinition(err) {
		merged := &unstructured.Unstructured{Object: carrier.Merged(live.Object, p.service.Beside(desired, live, fieldManager).Object)}
		p.afterDefinition(desired, plan.Describe(plan.Update, merged, live))
		return nil
	}
	return err
}

// create plans that an object is created. The API server is asked by a dry run whether it would create it, before anything is touched.
func (p *planner) create(ctx context.Context, desired *unstructured.Unstructured) error {
	_, pending := p.pending[desired.GroupVersionKind().GroupKind()]
	later, err := carrier.TriedOut(ctx, p.client, desired, p.applyObject(ctx, desired.DeepCopy(), client.DryRunAll), pending)
	if err != nil {
		return err
	}
	changes := plan.Describe(plan.Create, desired, nil)
	switch {
	case later && pending:
		p.afterDefinition(desired, changes)
		return nil
	case later:
		p.later = append(p.later, desired)
	}
	p.changes = append(p.changes, changes...)
	return nil
}

// afterDefinition plans changes of an object that can't be tried out before its definition is there.
func (p *planner) afterDefinition(desired *unstructured.Unstructured, changes []plan.Change) {
	if p.pending[desired.GroupVersionKind().GroupKind()] {
		p.later = append(p.later, desired)
	}
	for i := range changes {
		changes[i].Description = carrier.AfterDefinition
	}
	p.changes = append(p.changes, changes...)
}

// update plans that an object which is there is applied.
func (p *planner) update(ctx context.Context, desired, live *unstructured.Unstructured) error {
	desired = p.service.Beside(desired, live, fieldManager)
	after := desired.DeepCopy()
	err := p.applyObject(ctx, after, client.DryRunAll)
	if carrier.Immutable(err) && !p.replaces(desired) {
		return framework.Permanent(fmt.Errorf("%w (delete the object, or give it another name, or name its kind in replaceKinds)", err))
	}
	if carrier.Replaceable(err) && p.replaces(desired) {
		if err := carrier.Creatable(ctx, p.client, desired); err != nil {
			return fmt.Errorf("replace %s: %w", describe(desired), err)
		}
		p.changes = append(p.changes, plan.Change{Action: plan.Delete, Description: plan.Replaced + "it can't be changed", Object: plan.Object{
			APIVersion: live.GetAPIVersion(), Kind: live.GetKind(), Namespace: live.GetNamespace(), Name: live.GetName(),
			UID: live.GetUID(), Version: live.GetResourceVersion(),
		}}.Describing(live))
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

// metadataOf returns what names an object, with the life and the version in which it was read.
func metadataOf(u *unstructured.Unstructured) *metav1.PartialObjectMetadata {
	seen := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: u.GetNamespace(), Name: u.GetName(), UID: u.GetUID(), ResourceVersion: u.GetResourceVersion(),
	}}
	seen.SetGroupVersionKind(u.GroupVersionKind())
	return seen
}

// remove plans that an object of an earlier revision is deleted.
func (p *planner) remove(ctx context.Context, u *unstructured.Unstructured) (bool, error) {
	live, err := p.ownLive(ctx, u)
	if live == nil || err != nil {
		return false, err
	}
	return p.deletes(ctx, u, live)
}

// deletes plans that an object is deleted as it was seen, unless it has objects of others. It reports whether it did.
func (p *planner) deletes(ctx context.Context, u *unstructured.Unstructured, live *metav1.PartialObjectMetadata) (bool, error) {
	stays, err := p.noteBystanders(ctx, live)
	if stays || err != nil {
		return false, err
	}
	if p.seen == nil {
		p.seen = map[carrier.Identity]*metav1.PartialObjectMetadata{}
	}
	p.seen[carrier.IdentityOf(u)] = live
	p.changes = append(p.changes, deletionOf(u, live))
	return true, nil
}

// noteBystanders reports whether an object is not deleted because of objects of others, and notes that.
func (p *planner) noteBystanders(ctx context.Context, live *metav1.PartialObjectMetadata) (bool, error) {
	why, err := p.bystanders(ctx, live)
	if why != "" {
		p.stays = append(p.stays, fmt.Sprintf("%s stays, because %s", describe(live), why))
	}
	return why != "", err
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
	return p.deletes(ctx, u, live)
}

func deletionOf(u *unstructured.Unstructured, live *metav1.PartialObjectMetadata) plan.Change {
	return plan.Change{Action: plan.Delete, Object: plan.Object{
		APIVersion: u.GetAPIVersion(), Kind: u.GetKind(), Namespace: u.GetNamespace(), Name: u.GetName(),
		UID: live.UID, Version: live.ResourceVersion,
	}}.Describing(live)
}
