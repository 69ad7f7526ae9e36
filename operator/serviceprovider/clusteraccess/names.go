package clusteraccess

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/operatorkit/operatorkit/framework/identity"
)

// By these a service provider finds again what it has asked for. They prove nothing to others: who asks follows from the namespace.
const (
	// OwnerLabel is a hash that stands for the operator and the service provider that ask.
	OwnerLabel = "clusters.operatorkit.io/owner"
	// OwnerAnnotation names them.
	OwnerAnnotation = "clusters.operatorkit.io/owner"
	// ObjectLabel is a hash that stands for them and the object that something is asked for.
	ObjectLabel = "clusters.operatorkit.io/object"
	// ObjectAnnotation names that object: namespace/name.
	ObjectAnnotation = "clusters.operatorkit.io/object"
	// KindAnnotation names its kind and group, if the kind is known: see Clusters.ServeKind.
	KindAnnotation = "clusters.operatorkit.io/kind"
	// OnboardingAnnotation is the UID of the namespace kube-system of the cluster that holds that object, if that cluster is known: see
	// Clusters.ServeOnboarding.
	OnboardingAnnotation = "clusters.operatorkit.io/onboarding"
	// AccessLabel is the id of the access.
	AccessLabel = "clusters.operatorkit.io/access"
)

// resource is the resource in marks.
const resource = "clusteraccess"

// maxReadable is how much of a name stays readable before the hash, in bytes.
const maxReadable = 60

// marks are those of what is asked for, the present one first.
func (c *Config) marks() []identity.Mark {
	scope := identity.Scope{Identity: identity.Identity{
		Operator: c.Operator, Framework: c.Provider, FormerOperators: c.FormerOperators, FormerFrameworks: c.FormerProviders,
	}}
	return scope.Marks(resource, nil)
}

// selects returns a selector of what has one of the marks in a label, for these parts.
func (c *Config) selects(label string, parts ...string) labels.Selector {
	var values []string
	for _, mark := range c.marks() {
		values = append(values, mark.Hash(parts...))
	}
	// An error would be a label or a value that is not valid.
	marked, _ := labels.NewRequirement(label, selection.In, values)
	return labels.NewSelector().Add(*marked)
}

// meta is the metadata of the requests of an access, the ClusterRequest and the AccessRequest.
func (c *Config) meta(request reconcile.Request, id string, from origin) metav1.ObjectMeta {
	readable := strings.ReplaceAll(c.Provider+"-"+id+"-"+request.Name, ".", "-")
	if len(readable) > maxReadable {
		readable = readable[:maxReadable]
	}
	own := c.marks()[0]
	parts, annotations := []string{id, request.Namespace, request.Name}, map[string]string{OwnerAnnotation: own.String(), ObjectAnnotation: request.String()}
	if from.kind != "" {
		parts, annotations[KindAnnotation] = append(parts, from.kind), from.kind
	}
	if from.onboarding != "" {
		parts, annotations[OnboardingAnnotation] = append(parts, "onboarding", from.onboarding), from.onboarding
	}
	return metav1.ObjectMeta{
		Namespace: c.Namespace, Name: strings.TrimRight(readable, "-") + "-" + own.Hash(parts...),
		Labels: map[string]string{
			OwnerLabel: own.Hash(), ObjectLabel: own.Hash(request.Namespace, request.Name), AccessLabel: id,
		},
		Annotations: annotations,
	}
}

// labelled is meta with the labels that users of the package have chosen.
func (c *Config) labelled(request reconcile.Request, id string, from origin, ask *Ask) metav1.ObjectMeta {
	meta := c.meta(request, id, from)
	meta.Labels = labels.Merge(labels.Merge(c.Labels, ask.Labels), meta.Labels)
	return meta
}

// requestOf returns the object that something was asked for; false for what does not say.
func requestOf(obj client.Object) (reconcile.Request, bool) {
	namespace, name, ok := strings.Cut(obj.GetAnnotations()[ObjectAnnotation], "/")
	if !ok || name == "" || strings.Contains(name, "/") {
		return reconcile.Request{}, false
	}
	return reconcile.Request{NamespacedName: client.ObjectKey{Namespace: namespace, Name: name}}, true
}
