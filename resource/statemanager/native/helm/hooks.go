package helm

import (
	"context"
	"fmt"
	"slices"

	release "helm.sh/helm/v4/pkg/release/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
)

// isHook tells whether an object is that of a hook. Helm puts nothing on it that says whose it is: the labels of the service do.
func isHook(u *unstructured.Unstructured) bool {
	_, ok := u.GetAnnotations()[release.HookAnnotation]
	return ok
}

// hookThere reads the metadata of a hook's object; nil is one that is not there. One that is somebody else's is an error: running
// the hook would replace it.
func (j *job) hookThere(ctx context.Context, u *unstructured.Unstructured) (*metav1.PartialObjectMetadata, error) {
	live := &metav1.PartialObjectMetadata{}
	live.SetGroupVersionKind(u.GroupVersionKind())
	err := j.client.Get(ctx, client.ObjectKeyFromObject(u), live)
	switch {
	case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read the hook %s: %w", describe(u), err)
	case j.refuses(live) != nil:
		return nil, j.refuses(live)
	case !j.service.Has(live.Labels):
		return nil, fmt.Errorf("%s is there already and not from this release, and a hook would replace it: delete it, or rename the hook: %w",
			describe(u), carrier.ErrConflict)
	}
	return live, nil
}

// checkHooks finds the hooks that are run for these events and would replace an object of somebody else, before anything is
// touched.
func (p *planner) checkHooks(ctx context.Context, hooks []*release.Hook, events ...release.HookEvent) error {
	for _, h := range hooks {
		if !slices.ContainsFunc(events, func(e release.HookEvent) bool { return slices.Contains(h.Events, e) }) {
			continue
		}
		objects, err := p.placed(h.Manifest, p.known, true)
		if err != nil {
			return err
		}
		for _, u := range objects {
			if p.fresh && u.GetNamespace() == p.service.Key.Namespace {
				continue
			}
			if _, err := p.hookThere(ctx, u); err != nil {
				return err
			}
		}
	}
	return nil
}

// hookLive is hookThere for an object that may be deleted: this service's own, not to be kept, and not going already.
func (j *job) hookLive(ctx context.Context, u *unstructured.Unstructured) (*metav1.PartialObjectMetadata, error) {
	live, err := j.hookThere(ctx, u)
	switch {
	case carrier.IsConflict(err):
		return nil, nil
	case live == nil || err != nil:
		return nil, err
	case keeps(live.Annotations) || keeps(u.GetAnnotations()) || live.DeletionTimestamp != nil:
		return nil, nil
	}
	return live, nil
}

// deleteHook deletes what a hook has left behind.
func (j *job) deleteHook(ctx context.Context, u *unstructured.Unstructured) error {
	_, err := j.deleteLive(ctx, u, metav1.DeletePropagationBackground, j.hookLive)
	if err != nil {
		return fmt.Errorf("delete the hook %s: %w", describe(u), err)
	}
	return nil
}
