package helm

import (
	"context"
	"errors"
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
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/resource/internal/serverside"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
)

// fieldManager is that of Helm's command line, so that both can work on a release.
const fieldManager = "helm"

// kubeClient is what Helm's actions change a cluster with. In place of Helm's own client it ends with its call, has a field
// manager that does not depend on the name of the program, labels what it applies, and applies one object after the other.
type kubeClient struct {
	*job
	ctx context.Context
	// known are definitions that come with the chart.
	known definitions
	// stale are objects that earlier revisions have left behind.
	stale []*unstructured.Unstructured
	// undeleted says why objects could not be deleted. Helm says of an uninstallation only that it has failed.
	undeleted error

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

// BuildTable implements kube.Interface.
func (k *kubeClient) BuildTable(reader io.Reader, validate bool) (kube.ResourceList, error) {
	return k.Build(reader, validate)
}

func (k *kubeClient) infos(objects []*unstructured.Unstructured) (kube.ResourceList, error) {
	list := make(kube.ResourceList, 0, len(objects))
	known := append(definitionsIn(objects), k.known...)
	for _, u := range objects {
		carrier.Dress(u, k.service)
		mapping, err := known.mapping(k.mapper, u.GroupVersionKind())
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

// Get implements kube.Interface.
func (k *kubeClient) Get(resources kube.ResourceList, _ bool) (map[string][]runtime.Object, error) {
	found := map[string][]runtime.Object{}
	for _, info := range resources {
		if err := info.Get(); err != nil {
			return nil, fmt.Errorf("read %s: %w", describe(object(info)), err)
		}
		kind := info.Mapping.GroupVersionKind
		found[kind.Version+"/"+kind.Kind] = append(found[kind.Version+"/"+kind.Kind], info.Object)
	}
	return found, nil
}

// Create implements kube.Interface.
func (k *kubeClient) Create(resources kube.ResourceList, _ ...kube.ClientCreateOption) (*kube.Result, error) {
	for _, info := range resources {
		if u := object(info); isHook(u) {
			if _, err := k.hookThere(k.ctx, u); err != nil {
				return nil, err
			}
		}
		if err := k.apply(info); err != nil {
			return nil, err
		}
	}
	return &kube.Result{Created: resources}, nil
}

// Update implements kube.Interface.
func (k *kubeClient) Update(originals, targets kube.ResourceList, _ ...kube.ClientUpdateOption) (*kube.Result, error) {
	result := &kube.Result{}
	for _, info := range targets {
		if err := k.apply(info); err != nil {
			return result, err
		}
		result.Updated.Append(info)
	}
	stale, err := k.infos(k.stale)
	if err != nil {
		return result, err
	}
	var gone kube.ResourceList
	// What was planned comes first, and in that order.
	for _, info := range append(stale, originals...) {
		if !targets.Contains(info) && !gone.Contains(info) {
			gone.Append(info)
		}
	}
	for _, info := range gone {
		deleted, err := k.deleteOwn(k.ctx, object(info))
		if err != nil {
			return result, err
		}
		if deleted {
			result.Deleted.Append(info)
		}
	}
	return result, nil
}

// apply applies an object, and waits until the kind of a definition can be used.
func (k *kubeClient) apply(info *resource.Info) error {
	applied := object(info)
	if err := k.put(k.ctx, applied); err != nil {
		return err
	}
	info.Object = applied
	if applied.GroupVersionKind().GroupKind() == crdKind {
		return k.established(k.ctx, applied)
	}
	return nil
}

// put applies an object as it was seen right before. Another write in between has it looked at again, so that what somebody else
// has made his own meanwhile is not taken from him. The version is that of one life of an object: no UID is needed beside it.
func (j *job) put(ctx context.Context, u *unstructured.Unstructured) error {
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		live := &metav1.PartialObjectMetadata{}
		live.SetGroupVersionKind(u.GroupVersionKind())
		err := j.client.Get(ctx, client.ObjectKeyFromObject(u), live)
		applied := u.DeepCopy()
		switch {
		case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
			applied.SetResourceVersion(serverside.AbsentVersion)
		case err != nil:
			return fmt.Errorf("read %s: %w", describe(u), err)
		default:
			if err := j.refuses(live); err != nil {
				return err
			}
			applied.SetResourceVersion(live.ResourceVersion)
		}
		err = j.applyObject(ctx, applied)
		if carrier.Immutable(err) && j.replaces(u) {
			applied = u.DeepCopy()
			applied.SetResourceVersion(serverside.AbsentVersion)
			if err = carrier.Replace(ctx, j.client, live, func() error { return j.applyObject(ctx, applied) }); err != nil {
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

// Delete implements kube.Interface.
func (k *kubeClient) Delete(resources kube.ResourceList, policy metav1.DeletionPropagation) (*kube.Result, []error) {
	result := &kube.Result{}
	var errs []error
	for _, info := range resources {
		u := object(info)
		if err := k.delete(u, policy); err != nil {
			errs = append(errs, fmt.Errorf("delete %s: %w", describe(u), err))
			continue
		}
		result.Deleted.Append(info)
	}
	k.undeleted = errors.Join(append([]error{k.undeleted}, errs...)...)
	return result, errs
}

// delete deletes the object of a hook, or one that Helm knows to be this release's and does not ask to be kept. Hooks go when Helm
// says so: what keeps objects is for those of the release.
func (k *kubeClient) delete(u *unstructured.Unstructured, policy metav1.DeletionPropagation) error {
	read := k.ownLive
	if isHook(u) {
		read = k.hookThere
	}
	_, err := k.deleteLive(k.ctx, u, policy, read)
	return err
}

// deleteLive deletes an object as read has seen it right before, and tells whether there was one. Another write in between has it
// looked at again.
func (j *job) deleteLive(
	ctx context.Context, u *unstructured.Unstructured, policy metav1.DeletionPropagation,
	read func(context.Context, *unstructured.Unstructured) (*metav1.PartialObjectMetadata, error),
) (deleted bool, err error) {
	err = retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		live, err := read(ctx, u)
		if deleted = live != nil; live == nil || err != nil {
			return err
		}
		preconditions := client.Preconditions{UID: &live.UID, ResourceVersion: &live.ResourceVersion}
		return client.IgnoreNotFound(j.client.Delete(ctx, emptyOf(u), preconditions, client.PropagationPolicy(policy)))
	})
	return deleted, err
}

// keeps tells whether annotations ask for an object to be kept when it is not part of its release any more.
func keeps(annotations map[string]string) bool {
	return annotations[carrier.PruneAnnotation] == "disabled" ||
		strings.EqualFold(strings.TrimSpace(annotations[kube.ResourcePolicyAnno]), kube.KeepPolicy)
}

// ownLive reads the metadata of an object, if it is there, is this release's own, is not to be kept and not going already.
func (j *job) ownLive(ctx context.Context, u *unstructured.Unstructured) (*metav1.PartialObjectMetadata, error) {
	live := &metav1.PartialObjectMetadata{}
	live.SetGroupVersionKind(u.GroupVersionKind())
	err := j.client.Get(ctx, client.ObjectKeyFromObject(u), live)
	switch {
	case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", describe(u), err)
	case !j.owns(live) || keeps(live.Annotations) || keeps(u.GetAnnotations()) || live.DeletionTimestamp != nil:
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
func (j *job) deleteOwn(ctx context.Context, u *unstructured.Unstructured) (bool, error) {
	deleted, err := j.deleteLive(ctx, u, metav1.DeletePropagationBackground, j.ownLive)
	if err != nil {
		return false, fmt.Errorf("delete %s: %w", describe(u), err)
	}
	return deleted, nil
}

// GetWaiter implements kube.Interface.
func (k *kubeClient) GetWaiter(kube.WaitStrategy) (kube.Waiter, error) {
	return &hookWaiter{job: k.job, ctx: k.ctx}, nil
}

// GetPodList implements kube.Interface. Helm wants pods for their logs, which go nowhere.
func (k *kubeClient) GetPodList(string, metav1.ListOptions) (*corev1.PodList, error) {
	return &corev1.PodList{}, nil
}

// OutputContainerLogsForPodList implements kube.Interface.
func (k *kubeClient) OutputContainerLogsForPodList(*corev1.PodList, string, func(string, string, string) io.Writer) error {
	return nil
}

// object returns what an info is about.
func object(info *resource.Info) *unstructured.Unstructured {
	return info.Object.(*unstructured.Unstructured)
}
