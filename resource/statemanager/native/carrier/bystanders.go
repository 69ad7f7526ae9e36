package carrier

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// bystandersShown is how many objects a reason names.
	bystandersShown = 3
	// pageSize is how many objects are listed at a time.
	pageSize = 500
)

// NamespaceKind is the kind of namespaces.
var NamespaceKind = schema.GroupKind{Kind: "Namespace"}

// Bystanders returns why a Namespace or a CustomResourceDefinition must not be deleted: objects that are not of the service are in the namespace,
// or are of the kind that is defined, and would be deleted too. It is empty if there are none, and for all other kinds. An object that is of
// the service but for which kept is true counts as well. Where objects can't be listed, the reason says so. The error says that the cluster
// could not be asked.
//
// Not counted are objects that are being deleted, that the garbage collector deletes with objects of the service, and that a cluster makes in
// every namespace: Events, Leases, Endpoints, the default ServiceAccount and its tokens, and the ConfigMaps with certificates of authorities.
func Bystanders(
	ctx context.Context, cluster Cluster, service *Service, object client.Object, kept func(annotations map[string]string) bool,
) (string, error) {
	look := &bystanders{cluster: cluster, service: service, kept: kept, goes: map[types.UID]bool{}}
	var kinds []schema.GroupVersionKind
	var err error
	namespace, where := "", "of the kind that it defines"
	switch object.GetObjectKind().GroupVersionKind().GroupKind() {
	case NamespaceKind:
		namespace, where = object.GetName(), "in it"
		kinds, err = look.namespacedKinds(ctx)
	case DefinitionKind:
		kinds, err = look.definedKinds(ctx, object)
	default:
		return "", nil
	}
	for i := 0; err == nil && i < len(kinds) && len(look.found) <= bystandersShown; i++ {
		err = look.list(ctx, kinds[i], namespace)
	}
	switch {
	case err != nil:
		return "", fmt.Errorf("look for other objects %s before %s %s is deleted: %w",
			where, object.GetObjectKind().GroupVersionKind().Kind, object.GetName(), err)
	case len(look.found) > bystandersShown:
		look.found = append(look.found[:bystandersShown], "more")
	case len(look.found) == 0 && len(look.unlisted) > 0:
		return fmt.Sprintf("other objects %s can't be ruled out: %s", where, strings.Join(look.unlisted, ", ")), nil
	case len(look.found) == 0:
		return "", nil
	}
	return fmt.Sprintf("there are objects %s that are not of this service: %s", where, strings.Join(look.found, ", ")), nil
}

// bystanders is a search for objects that are not of a service.
type bystanders struct {
	cluster Cluster
	service *Service
	kept    func(map[string]string) bool
	// found names them, and unlisted says what could not be listed, and why.
	found, unlisted []string
	// goes has for each owner of an object whether it is deleted with the service.
	goes map[types.UID]bool
}

// transient kinds only tell of other objects, and are made again when they are missing.
var transient = []schema.GroupKind{
	{Kind: "Event"}, {Group: "events.k8s.io", Kind: "Event"}, {Kind: "Endpoints"},
	{Group: "coordination.k8s.io", Kind: "Lease"}, {Group: "coordination.k8s.io", Kind: "LeaseCandidate"},
}

// certificates are ConfigMaps that Kubernetes, OpenShift and Istio put into every namespace.
var certificates = []string{"kube-root-ca.crt", "openshift-service-ca.crt", "istio-ca-root-cert"}

// namespacedKinds returns the kinds whose objects are deleted with their namespace.
func (b *bystanders) namespacedKinds(ctx context.Context) ([]schema.GroupVersionKind, error) {
	resources, err := discovery.NewDiscoveryClientForConfig(b.cluster.RESTConfig())
	if err != nil {
		return nil, err
	}
	lists, err := resources.ServerPreferredResourcesWithContext(ctx)
	if failed, partly := discovery.GroupDiscoveryFailedErrorGroups(err); partly {
		for version, cause := range failed {
			b.unlisted = append(b.unlisted, fmt.Sprintf("the API %s is not available (%v)", version, cause))
		}
		slices.Sort(b.unlisted)
	} else if err != nil {
		return nil, err
	}
	var kinds []schema.GroupVersionKind
	for _, list := range discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list", "delete"}}, lists) {
		for _, resource := range list.APIResources {
			kind := schema.FromAPIVersionAndKind(list.GroupVersion, resource.Kind)
			if resource.Namespaced && !slices.Contains(transient, kind.GroupKind()) {
				kinds = append(kinds, kind)
			}
		}
	}
	return kinds, nil
}

// definedKinds returns the kind that a definition defines, in the version in which its objects are stored, or else one that is served.
func (b *bystanders) definedKinds(ctx context.Context, definition client.Object) ([]schema.GroupVersionKind, error) {
	crd := &unstructured.Unstructured{}
	crd.SetGroupVersionKind(definition.GetObjectKind().GroupVersionKind())
	if err := b.cluster.Client().Get(ctx, client.ObjectKeyFromObject(definition), crd); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	kinds := ServedBy(crd)
	if len(kinds) == 0 {
		b.unlisted = append(b.unlisted, "it serves no version of "+DefinedBy(crd).String())
		return nil, nil
	}
	stored := slices.IndexFunc(kinds, func(kind schema.GroupVersionKind) bool { return isStoredIn(crd, kind.Version) })
	return kinds[max(0, stored):][:1], nil
}

func isStoredIn(crd *unstructured.Unstructured, name string) bool {
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	return slices.ContainsFunc(versions, func(each any) bool {
		version, _ := each.(map[string]any)
		return version["name"] == name && version["storage"] == true
	})
}

// list looks at the objects of a kind.
func (b *bystanders) list(ctx context.Context, kind schema.GroupVersionKind, namespace string) error {
	page := &metav1.PartialObjectMetadataList{}
	page.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	for {
		err := b.cluster.Client().List(ctx, page, client.InNamespace(namespace), client.Limit(pageSize), client.Continue(page.Continue))
		switch {
		case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
			return nil
		case apierrors.IsForbidden(err), apierrors.IsMethodNotSupported(err), apierrors.IsServiceUnavailable(err):
			b.unlisted = append(b.unlisted, fmt.Sprintf("%s can't be listed (%v)", kind.GroupKind(), err))
			return nil
		case err != nil:
			return fmt.Errorf("list %s: %w", kind.GroupKind(), err)
		}
		for i := range page.Items {
			object := &page.Items[i]
			object.SetGroupVersionKind(kind)
			goes, err := b.goesWithService(ctx, object)
			if err != nil {
				return err
			}
			if !goes {
				b.found = append(b.found, bystander(object, namespace))
			}
			if len(b.found) > bystandersShown {
				return nil
			}
		}
		if page.Continue == "" {
			return nil
		}
	}
}

// bystander names an object, without the namespace that everything is in.
func bystander(object *metav1.PartialObjectMetadata, within string) string {
	kind, name := object.GroupVersionKind().GroupKind(), object.Name
	if object.Namespace != within {
		name = object.Namespace + "/" + name
	}
	if service := object.Labels[ServiceLabel]; service != "" {
		name += fmt.Sprintf(" (of service %s/%s)", object.Labels[ServiceNamespaceLabel], service)
	}
	return kind.String() + " " + name
}

// goesWithService reports whether an object is deleted with the service, or is made by the cluster.
func (b *bystanders) goesWithService(ctx context.Context, object *metav1.PartialObjectMetadata) (bool, error) {
	if object.DeletionTimestamp != nil {
		return true, nil
	}
	if b.service.Has(object.Labels) {
		return !b.kept(object.Annotations), nil
	}
	owners := object.OwnerReferences
	switch kind := object.GroupVersionKind().GroupKind(); {
	case kind == schema.GroupKind{Kind: "ServiceAccount"} && object.Name == "default":
		return true, nil
	case kind == schema.GroupKind{Kind: "ConfigMap"} && slices.Contains(certificates, object.Name):
		return true, nil
	case kind == schema.GroupKind{Kind: "Secret"} && len(owners) == 0 && object.Annotations[corev1.ServiceAccountUIDKey] != "":
		// Kubernetes deletes the token of a ServiceAccount with it.
		owners = []metav1.OwnerReference{{
			APIVersion: "v1", Kind: "ServiceAccount", Name: object.Annotations[corev1.ServiceAccountNameKey],
			UID: types.UID(object.Annotations[corev1.ServiceAccountUIDKey]),
		}}
	}
	for _, owner := range owners {
		if goes, err := b.ownerGoes(ctx, object.Namespace, owner); !goes || err != nil {
			return false, err
		}
	}
	return len(owners) > 0, nil
}

// ownerGoes reports whether the owner of an object in a namespace is deleted with the service, or is gone: the garbage collector deletes the
// object then.
func (b *bystanders) ownerGoes(ctx context.Context, namespace string, owner metav1.OwnerReference) (bool, error) {
	if goes, known := b.goes[owner.UID]; known {
		return goes, nil
	}
	b.goes[owner.UID] = false // Objects may own each other in a circle.
	kind := schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind)
	mapping, err := b.cluster.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
	if meta.IsNoMatchError(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	key := client.ObjectKey{Name: owner.Name}
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		key.Namespace = namespace
	}
	live := &metav1.PartialObjectMetadata{}
	live.SetGroupVersionKind(kind)
	err = b.cluster.Client().Get(ctx, key, live)
	live.SetGroupVersionKind(kind)
	goes := false
	switch {
	case apierrors.IsForbidden(err):
	case client.IgnoreNotFound(err) != nil:
		return false, err
	case err != nil || live.UID != owner.UID:
		goes = true
	default:
		if goes, err = b.goesWithService(ctx, live); err != nil {
			return false, err
		}
	}
	b.goes[owner.UID] = goes
	return goes, nil
}
