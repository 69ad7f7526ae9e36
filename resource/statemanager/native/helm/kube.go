package helm

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/internal/absent"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
)

// fieldManager is that of Helm's command line, so that both can work on a release.
const fieldManager = "helm"

// put applies an object as it was seen right before, unless that is refused. It is read again after another write in between, so
// that what somebody else has made his own meanwhile is not taken from him. The version is that of one life of an object: no UID
// is needed beside it.
func (j *job) put(ctx context.Context, u *unstructured.Unstructured, refuses func(client.Object) error) error {
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		whole := emptyOf(u)
		var live client.Object = whole
		if !j.service.Ignores(u) {
			live = &metav1.PartialObjectMetadata{}
			live.GetObjectKind().SetGroupVersionKind(u.GroupVersionKind())
		}
		err := j.client.Get(ctx, client.ObjectKeyFromObject(u), live)
		applied := u.DeepCopy()
		switch {
		case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
			applied.SetResourceVersion(absent.Version)
		case err != nil:
			return fmt.Errorf("read %s: %w", describe(u), err)
		default:
			if err := refuses(live); err != nil {
				return err
			}
			applied = j.service.Beside(applied, whole, fieldManager)
			applied.SetResourceVersion(live.GetResourceVersion())
		}
		err = j.applyObject(ctx, applied)
		if carrier.Replaceable(err) && j.replaces(u) {
			applied = u.DeepCopy()
			applied.SetResourceVersion(absent.Version)
			if err = carrier.Replace(ctx, j.client, live, applied, func() error { return j.applyObject(ctx, applied) }); err != nil {
				err = fmt.Errorf("replace %s: %w", describe(u), err)
			}
		}
		if err != nil {
			return err
		}
		u.Object = applied.Object
		return nil
	})
}

// refuses returns an error for an object that carries the mark of somebody else; nil is none.
func (j *job) refuses(live client.Object) error {
	if j.service.ClaimOn(live.GetLabels()) != carrier.Foreign {
		return nil
	}
	return fmt.Errorf("%s is there already, and belongs to %s: %w", describe(live), carrier.Whose(live), carrier.ErrConflict)
}

// refusesOthers is refuses for an object of a revision: one that is there without any mark of the release is not replaced.
func (j *job) refusesOthers(live client.Object) error {
	if err := j.refuses(live); err != nil || j.owns(live) || j.service.Has(live.GetLabels()) {
		return err
	}
	return j.foreignObject(live)
}

// foreignObject is the error for an object that is not of the release, as Helm knows it.
func (j *job) foreignObject(live client.Object) error {
	return fmt.Errorf("%s is there already and not from this release: delete it, or give it to the release by the label "+
		"%s=%s and the annotations %s=%s and %s=%s: %w", describe(live), managedByLabel, managedByHelm,
		releaseNameAnnotation, j.service.Key.Name, releaseNamespaceAnnotation, j.service.Key.Namespace, carrier.ErrConflict)
}

// applyObject applies an object by server-side apply, and reads the answer into it.
func (j *job) applyObject(ctx context.Context, u *unstructured.Unstructured, options ...client.PatchOption) error {
	options = append(options, client.FieldOwner(fieldManager), client.ForceOwnership, j.validation())
	applying := carrier.Applying{Client: j.client, Manager: fieldManager, DryRun: slices.Contains(options, client.PatchOption(client.DryRunAll))}
	applying.Send = func(sent *unstructured.Unstructured) error {
		data, err := sent.MarshalJSON()
		if err != nil {
			return err
		}
		return j.client.Patch(ctx, sent, client.RawPatch(types.ApplyPatchType, data), options...)
	}
	err := applying.Apply(ctx, u)
	if err != nil {
		return fmt.Errorf("apply %s: %w", describe(u), err)
	}
	return nil
}

// validation is what is done with fields that the cluster does not know.
func (j *job) validation() client.FieldValidation {
	if j.options.ignoreUnknownFields {
		return client.FieldValidation(metav1.FieldValidationIgnore)
	}
	return client.FieldValidation(metav1.FieldValidationStrict)
}

// deleteLive deletes an object, if there is one, as the plan has seen it, or else as read sees it, and what it owns in the background. Another
// write in between has it looked at again. A namespace or a definition with objects of others stays.
func (j *job) deleteLive(
	ctx context.Context, u *unstructured.Unstructured,
	read func(context.Context, *unstructured.Unstructured) (*metav1.PartialObjectMetadata, error),
) error {
	seen := j.seen[carrier.IdentityOf(u)]
	delete(j.seen, carrier.IdentityOf(u))
	return retry.RetryOnConflict(retry.DefaultBackoff, func() (err error) {
		live := seen
		if seen = nil; live == nil {
			if live, err = read(ctx, u); live == nil || err != nil {
				return err
			}
		}
		if why, err := j.bystanders(ctx, live); why != "" || err != nil {
			return err
		}
		preconditions := client.Preconditions{UID: &live.UID, ResourceVersion: &live.ResourceVersion}
		return client.IgnoreNotFound(j.client.Delete(ctx, emptyOf(u), preconditions, client.PropagationPolicy(metav1.DeletePropagationBackground)))
	})
}

// bystanders says why an object is not deleted that has objects of others, or nothing.
func (j *job) bystanders(ctx context.Context, live client.Object) (string, error) {
	return carrier.Bystanders(ctx, j.cluster, j.service, live, keeps)
}

// keeps tells whether annotations ask for an object to be kept when it is not part of its release any more.
func keeps(annotations map[string]string) bool {
	return annotations[carrier.PruneAnnotation] == "disabled" ||
		strings.EqualFold(strings.TrimSpace(annotations[policyAnnotation]), keepPolicy)
}

// ownLive reads the metadata of an object, if it is there, is this release's own, is not to be kept and not going already.
func (j *job) ownLive(ctx context.Context, u *unstructured.Unstructured) (*metav1.PartialObjectMetadata, error) {
	live, err := j.own(ctx, u)
	if live == nil || err != nil || live.DeletionTimestamp != nil {
		return nil, err
	}
	return live, nil
}

// own reads the metadata of an object, if it is there, is this release's own and not to be kept. It may be going.
func (j *job) own(ctx context.Context, u *unstructured.Unstructured) (*metav1.PartialObjectMetadata, error) {
	live := &metav1.PartialObjectMetadata{}
	live.SetGroupVersionKind(u.GroupVersionKind())
	err := j.client.Get(ctx, client.ObjectKeyFromObject(u), live)
	switch {
	case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", describe(u), err)
	case !j.owns(live) || keeps(live.Annotations) || keeps(u.GetAnnotations()):
		return nil, nil
	}
	return live, nil
}

// owns tells whether an object is this release's: as Helm knows it, and by its mark, if it has one.
func (j *job) owns(live client.Object) bool {
	annotations := live.GetAnnotations()
	return j.service.ClaimOn(live.GetLabels()) != carrier.Foreign && live.GetLabels()[managedByLabel] == managedByHelm && annotations[releaseNameAnnotation] == j.service.Key.Name &&
		annotations[releaseNamespaceAnnotation] == j.service.Key.Namespace
}

// deleteOwn deletes an object that is this release's own.
func (j *job) deleteOwn(ctx context.Context, u *unstructured.Unstructured) error {
	if err := j.deleteLive(ctx, u, j.ownLive); err != nil {
		return fmt.Errorf("delete %s: %w", describe(u), err)
	}
	return nil
}
