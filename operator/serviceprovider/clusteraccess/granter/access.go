package granter

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/operatorkit/operatorkit/context/resourcecanceledcontext"
	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/clusteraccess/internal/reach"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/objectresource"
	"github.com/operatorkit/operatorkit/resource/statemanager/target"
)

// accessName is the name of the resource that makes service accounts, roles and bindings.
const accessName = "access"

// granted is the label of what the granter makes in clusters.
var granted = reach.GrantedLabels()

// accessKinds are the kinds of what the granter makes in clusters.
func accessKinds() []client.Object {
	return []client.Object{&corev1.ServiceAccount{}, &rbacv1.Role{}, &rbacv1.RoleBinding{}, &rbacv1.ClusterRole{}, &rbacv1.ClusterRoleBinding{}}
}

// watchedKinds are the same, for changes that somebody else makes of them.
func watchedKinds() (kinds []target.Kind) {
	for _, o := range accessKinds() {
		gvk, _ := apiutil.GVKForObject(o, scheme.Scheme) // which knows them
		kinds = append(kinds, target.Kind{GroupVersionKind: gvk, Selector: labels.SelectorFromSet(granted)})
	}
	return kinds
}

// objectsOn returns the resource of these objects in a cluster.
func (g *granter) objectsOn(on *target.Cluster) (*framework.TypedCRUDResource[*v1alpha1.AccessRequest, objectresource.State], error) {
	name := accessName
	if g.config.Platform != "" {
		name += "." + g.config.Platform
	}
	return objectresource.New(objectresource.Config[*v1alpha1.AccessRequest]{
		Name: name, Client: on.Client(), Logger: g.logger, Kinds: accessKinds(),
		Namespaces: func(*v1alpha1.AccessRequest) []string { return []string{metav1.NamespaceAll} },
		// The primary is in another cluster: there can be no owner references.
		Owner: func(ar *v1alpha1.AccessRequest) (objectresource.Owner, error) {
			return objectresource.Owner{
				GVK: v1alpha1.GroupVersion.WithKind(v1alpha1.AccessRequestKind), Namespace: ar.Namespace, Name: ar.Name,
			}, nil
		},
		Desired: func(ctx context.Context, ar *v1alpha1.AccessRequest) ([]client.Object, error) {
			w := workOf(ctx)
			if w.denied {
				return nil, nil
			}
			objects := g.desired(w.name, ar, g.subjects(w.cluster, ar, w.name))
			for _, o := range objects {
				o.SetLabels(labels.Merge(granted, labels.Set{clusterLabel: string(w.cluster.UID)}))
			}
			return objects, nil
		},
		WaitForDeletion: true,
	})
}

// desired returns what has to be in the cluster for a request, which gives rights to the subjects.
func (g *granter) desired(name string, ar *v1alpha1.AccessRequest, subjects []rbacv1.Subject) []client.Object {
	var objects []client.Object
	if ar.Spec.OIDC == nil {
		objects = append(objects, &corev1.ServiceAccount{ObjectMeta: meta(g.config.Namespace, name)})
	}
	rules := map[string][]rbacv1.PolicyRule{}
	var namespaces []string
	for _, p := range ar.Spec.Permissions {
		if !slices.Contains(namespaces, p.Namespace) {
			namespaces = append(namespaces, p.Namespace)
		}
		rules[p.Namespace] = append(rules[p.Namespace], p.Rules...)
	}
	for _, namespace := range namespaces {
		ref := v1alpha1.RoleReference{Kind: "Role", Namespace: namespace, Name: name}
		if namespace == "" {
			ref.Kind = "ClusterRole"
			objects = append(objects, &rbacv1.ClusterRole{ObjectMeta: meta("", name), Rules: rules[namespace]})
		} else {
			objects = append(objects, &rbacv1.Role{ObjectMeta: meta(namespace, name), Rules: rules[namespace]})
		}
		objects = append(objects, binding(name, subjects, ref))
	}
	var seen []v1alpha1.RoleReference
	for _, ref := range ar.Spec.RoleRefs {
		if !slices.Contains(seen, ref) {
			seen = append(seen, ref)
			// What a binding refers to can't be changed: every role has a binding of its own.
			bindingName := nameOf(ar, ref.Kind, ref.Name)
			objects = append(objects, binding(bindingName, subjects, ref))
		}
	}
	return objects
}

// binding gives a role to the subjects of a request.
func binding(name string, subjects []rbacv1.Subject, ref v1alpha1.RoleReference) client.Object {
	roleRef := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: ref.Kind, Name: ref.Name}
	if ref.Namespace == "" {
		return &rbacv1.ClusterRoleBinding{ObjectMeta: meta("", name), Subjects: subjects, RoleRef: roleRef}
	}
	return &rbacv1.RoleBinding{ObjectMeta: meta(ref.Namespace, name), Subjects: subjects, RoleRef: roleRef}
}

func meta(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

// access is the resource of these objects in whatever cluster a request is for.
type access struct{ *granter }

type accessState = objectresource.State

// Name implements framework.TypedCRUDResourceOps.
func (a *access) Name() string { return accessName }

// GetCurrentState implements framework.TypedCRUDResourceOps.
func (a *access) GetCurrentState(ctx context.Context, ar *v1alpha1.AccessRequest) (accessState, error) {
	w := workOf(ctx)
	if w.objects == nil || w.err != nil || w.fault != nil {
		resourcecanceledcontext.SetCanceled(ctx)
		return accessState{}, nil
	}
	return w.objects.GetCurrentState(ctx, ar)
}

// GetDesiredState implements framework.TypedCRUDResourceOps.
func (a *access) GetDesiredState(ctx context.Context, ar *v1alpha1.AccessRequest) (accessState, error) {
	return workOf(ctx).objects.GetDesiredState(ctx, ar)
}

// NewUpdatePatch implements framework.TypedCRUDResourceOps.
func (a *access) NewUpdatePatch(ctx context.Context, ar *v1alpha1.AccessRequest, current, desired accessState) (*framework.TypedPatch[accessState], error) {
	return workOf(ctx).objects.NewUpdatePatch(ctx, ar, current, desired)
}

// NewDeletePatch implements framework.TypedCRUDResourceOps.
func (a *access) NewDeletePatch(ctx context.Context, ar *v1alpha1.AccessRequest, current, desired accessState) (*framework.TypedPatch[accessState], error) {
	return workOf(ctx).objects.NewDeletePatch(ctx, ar, current, desired)
}

// ApplyCreateChange implements framework.TypedCRUDResourceOps.
func (a *access) ApplyCreateChange(ctx context.Context, ar *v1alpha1.AccessRequest, change accessState) error {
	return workOf(ctx).objects.ApplyCreateChange(ctx, ar, change)
}

// ApplyUpdateChange implements framework.TypedCRUDResourceOps.
func (a *access) ApplyUpdateChange(ctx context.Context, ar *v1alpha1.AccessRequest, change accessState) error {
	return workOf(ctx).objects.ApplyUpdateChange(ctx, ar, change)
}

// ApplyDeleteChange implements framework.TypedCRUDResourceOps.
func (a *access) ApplyDeleteChange(ctx context.Context, ar *v1alpha1.AccessRequest, change accessState) error {
	return workOf(ctx).objects.ApplyDeleteChange(ctx, ar, change)
}

// sortedNamespaces are the namespaces that a request needs in its cluster.
func (g *granter) sortedNamespaces(ar *v1alpha1.AccessRequest) []string {
	namespaces := []string{g.config.Namespace}
	for _, p := range ar.Spec.Permissions {
		namespaces = append(namespaces, p.Namespace)
	}
	for _, ref := range ar.Spec.RoleRefs {
		namespaces = append(namespaces, ref.Namespace)
	}
	slices.Sort(namespaces)
	return slices.DeleteFunc(slices.Compact(namespaces), func(n string) bool { return n == "" })
}
