package helm

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/kube"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/internal/absent"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
)

// fieldManager is that of Helm's command line, so that both can work on a release.
const fieldManager = "helm"

// kubeClient is what Helm's actions look at a cluster with while they prepare a revision. In place of Helm's own client it ends with its
// call, and puts objects where they belong. The actions end when the revision is recorded, before they ask for anything else.
type kubeClient struct {
	// Interface is nil: what would change the cluster is not there to be called.
	kube.Interface
	*job
	ctx context.Context
	// known are definitions that come with the chart.
	known carrier.Definitions

	clients map[schema.GroupVersion]resource.RESTClient
}

var _ kube.Interface = (*kubeClient)(nil)

func (j *job) kubeClient(ctx context.Context) *kubeClient {
	return &kubeClient{job: j, ctx: ctx, clients: map[schema.GroupVersion]resource.RESTClient{}}
}

// IsReachable implements kube.Interface. Requests will tell.
func (k *kubeClient) IsReachable() error { return nil }

// Build implements kube.Interface. What is built without validation is what was applied before, or is to be deleted: what the
// cluster has no kind for is not there.
func (k *kubeClient) Build(reader io.Reader, validate bool) (kube.ResourceList, error) {
	content, err := io.ReadAll(reader)
	if err != nil {
		return nil, err
	}
	objects, err := k.placed(string(content), k.known, !validate)
	if err != nil {
		return nil, err
	}
	return k.infos(objects)
}

func (k *kubeClient) infos(objects []*unstructured.Unstructured) (kube.ResourceList, error) {
	list := make(kube.ResourceList, 0, len(objects))
	known := append(carrier.DefinitionsIn(objects), k.known...)
	for _, u := range objects {
		carrier.Dress(u, k.service)
		mapping, err := known.Mapping(k.mapper, u.GroupVersionKind())
		if err != nil {
			return nil, err
		}
		restClient, err := k.restClient(u.GroupVersionKind().GroupVersion())
		if err != nil {
			return nil, err
		}
		list = append(list, &resource.Info{
			Client: restClient, Mapping: mapping, Namespace: u.GetNamespace(), Name: u.GetName(), Object: u,
		})
	}
	return list, nil
}

// restClient is what Helm looks at objects with to see whose they are.
func (k *kubeClient) restClient(version schema.GroupVersion) (resource.RESTClient, error) {
	if made, ok := k.clients[version]; ok {
		return made, nil
	}
	config := rest.CopyConfig(k.access.config)
	config.ContentConfig = resource.UnstructuredPlusDefaultContentConfig()
	config.GroupVersion, config.APIPath = &version, "/apis"
	if version.Group == corev1.GroupName {
		config.APIPath = "/api"
	}
	made, err := rest.RESTClientForConfigAndClient(config, k.http)
	if err != nil {
		return nil, fmt.Errorf("make a client for %s: %w", version, err)
	}
	k.clients[version] = made
	return made, nil
}

// put applies an object as it was seen right before. Another write in between has it looked at again, so that what somebody else
// has made his own meanwhile is not taken from him. The version is that of one life of an object: no UID is needed beside it.
func (j *job) put(ctx context.Context, u *unstructured.Unstructured) error {
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
			if err := j.refuses(live); err != nil {
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
		strings.EqualFold(strings.TrimSpace(annotations[kube.ResourcePolicyAnno]), kube.KeepPolicy)
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
