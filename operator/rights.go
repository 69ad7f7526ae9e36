package operator

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/internal/plural"
)

// Rights are the rights of an operator at its API server.
type Rights struct {
	// In has the rules by namespace. The rules for all namespaces, and for kinds without
	// namespaces, are under metav1.NamespaceAll.
	In map[string][]rbacv1.PolicyRule
	// Own are the rules in the namespace of the operator itself.
	Own []rbacv1.PolicyRule
}

// Rights returns the rights that an operator of this configuration needs, as far as its requests
// are known:
//
//   - for sources, of the frameworks and all that NewSource has made: to list and watch their
//     objects;
//   - for a framework: to read its primaries, to change their finalizers, and to write events on
//     them;
//   - for resources: the rights that they return as framework.RightsLister, and Rights of the
//     framework's configuration. The ready-made resources do so, and so do the frameworks of
//     packages servicesets, statemanagers (with each state manager), machines, scheduler and
//     granter; natsresource and deploymentresource need no rights at the API server. Of these, a
//     framework that only plans needs the rights to read, and for dry runs;
//   - for guards: the rights that they declare, and if one has a limit, on the ConfigMap with the
//     state that replicas share;
//   - for the operator: its definitions according to CRDMode, and its Lease, or with Sharding all
//     Leases in its namespace. With Upgrade, the ConfigMap of the shared state, and an event on the
//     Deployment of its name.
//
// Each is limited to the namespaces of its source, and without a source to those of d.
// AuthorizeMetrics and a page beyond loopback need the cluster role system:auth-delegator, which is
// not included.
func (d *Dependencies) Rights(config Config) Rights {
	c := &rightsCollector{
		definitions: config.CRDs, otherwise: d.Namespaces, sourced: map[schema.GroupKind][]string{}, verbs: map[right]sets.Set[string]{},
	}
	all := slices.Clone(config.Sources)
	for _, f := range config.Frameworks {
		all = append(all, f.Sources()...)
	}
	for _, made := range d.sources.all() {
		all = append(all, made.source)
	}
	for _, source := range all {
		if k, ok := source.(inCluster); ok {
			kind := k.GroupVersionKind()
			c.sourced[kind.GroupKind()] = append(c.sourced[kind.GroupKind()], orAll(k.Namespaces())...)
			c.add(kind, k.Namespaces(), "list", "watch")
		}
	}
	for _, f := range config.Frameworks {
		c.framework(f)
	}
	c.crds(config.CRDMode)
	rights := Rights{In: c.rules()}
	if config.LeaderElection.onKubernetes() {
		name := config.LeaderElection
		name.setDefaults(config.Name)
		leases := rbacv1.PolicyRule{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}}
		create, keep := leases, leases
		create.Verbs, keep.Verbs, keep.ResourceNames = []string{"create"}, []string{"get", "update"}, []string{name.Name}
		rights.Own = []rbacv1.PolicyRule{create, keep}
		if config.Sharding.Enabled {
			// The Leases of replicas have names that are made when the replicas start.
			leases.Verbs = []string{"get", "list", "watch", "create", "update", "delete"}
			rights.Own = []rbacv1.PolicyRule{leases}
		}
	}
	rights.Own = append(rights.Own, config.stateRights()...)
	if config.Upgrade.enabled() {
		rights.Own = append(rights.Own,
			rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, ResourceNames: []string{config.Name}, Verbs: []string{"get"}},
			rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"events"}, Verbs: []string{"create", "patch"}},
		)
	}
	return rights
}

// inCluster is a source of objects of an API server: an informer.Kubernetes, or a type that embeds
// one.
type inCluster interface {
	informer.Source
	GroupVersionKind() schema.GroupVersionKind
	Namespaces() []string
}

// right is the target of a rule.
type right struct{ namespace, group, resource, name string }

// rightsCollector collects verbs.
type rightsCollector struct {
	definitions []*apiextensionsv1.CustomResourceDefinition
	// otherwise are the namespaces for kinds without a source; sourced are the namespaces of the
	// other kinds.
	otherwise []string
	sourced   map[schema.GroupKind][]string
	verbs     map[right]sets.Set[string]
}

// orAll returns the names of namespaces; an empty list means all.
func orAll(namespaces []string) []string {
	if len(namespaces) == 0 {
		return []string{metav1.NamespaceAll}
	}
	return namespaces
}

// framework adds the rights for a framework and its resources.
func (c *rightsCollector) framework(f *framework.Framework) {
	primaries, onKubernetes := f.Sources()[0].(inCluster)
	if onKubernetes {
		kind, namespaces := primaries.GroupVersionKind(), primaries.Namespaces()
		c.add(kind, namespaces, "get")
		if f.Finalizer() != "" && !f.PlanOnly() {
			c.add(kind, namespaces, "patch")
		}
		c.add(corev1.SchemeGroupVersion.WithKind("Event"), namespaces, "create", "patch")
	}
	for _, r := range f.Rights() {
		kind := r.Kind
		if kind.Empty() {
			if !onKubernetes {
				continue
			}
			kind = primaries.GroupVersionKind()
		}
		namespaces, ok := c.sourced[kind.GroupKind()]
		switch {
		case len(r.Namespaces) > 0:
			namespaces = r.Namespaces
		case !ok && !r.ClusterScoped:
			namespaces = c.otherwise
		}
		c.named(r.Name, kind, r.Subresource, namespaces, r.Verbs...)
	}
}

// crds adds the rights for the definitions.
func (c *rightsCollector) crds(mode CRDMode) {
	verbs := []string{"get", "create", "patch"}
	switch mode {
	case IgnoreCRDs:
		return
	case CheckCRDs:
		verbs = verbs[:1]
	}
	for _, crd := range c.definitions {
		c.put(right{group: apiextensionsv1.GroupName, resource: "customresourcedefinitions", name: crd.Name}, verbs...)
	}
}

func (c *rightsCollector) add(kind schema.GroupVersionKind, namespaces []string, verbs ...string) {
	c.named("", kind, "", namespaces, verbs...)
}

// named adds a right on one object by name, or on all if name is empty.
func (c *rightsCollector) named(name string, kind schema.GroupVersionKind, subresource string, namespaces []string, verbs ...string) {
	resource := c.resourceOf(kind)
	if subresource != "" {
		resource += "/" + subresource
	}
	for _, namespace := range orAll(namespaces) {
		c.put(right{namespace: namespace, group: kind.Group, resource: resource, name: name}, verbs...)
	}
}

func (c *rightsCollector) put(r right, verbs ...string) {
	if c.verbs[r] == nil {
		c.verbs[r] = sets.New[string]()
	}
	c.verbs[r].Insert(verbs...)
}

// resourceOf returns the name of the resource of a kind, from its definition or as Kubernetes names
// its own.
func (c *rightsCollector) resourceOf(kind schema.GroupVersionKind) string {
	for _, crd := range c.definitions {
		if crd.Spec.Group == kind.Group && crd.Spec.Names.Kind == kind.Kind {
			return crd.Spec.Names.Plural
		}
	}
	return plural.Of(kind).Resource
}

// verbOrder is the usual order of verbs; others follow.
var verbOrder = []string{"get", "list", "watch", "create", "update", "patch", "delete"}

func compareVerbs(a, b string) int {
	place := func(verb string) int {
		if i := slices.Index(verbOrder, verb); i >= 0 {
			return i
		}
		return len(verbOrder)
	}
	return cmp.Or(cmp.Compare(place(a), place(b)), strings.Compare(a, b))
}

// rules returns the rules by namespace. Rules with the same verbs on one group are merged. A rule
// for all namespaces is not repeated for single ones.
func (c *rightsCollector) rules() map[string][]rbacv1.PolicyRule {
	rules := map[string][]rbacv1.PolicyRule{}
	order := slices.SortedFunc(maps.Keys(c.verbs), func(a, b right) int {
		return cmp.Or(strings.Compare(a.namespace, b.namespace), strings.Compare(a.group, b.group),
			strings.Compare(a.resource, b.resource), strings.Compare(a.name, b.name))
	})
	for _, r := range order {
		everywhere := r
		everywhere.namespace = metav1.NamespaceAll
		verbs := c.verbs[r]
		if r != everywhere {
			verbs = verbs.Difference(c.verbs[everywhere])
		}
		if verbs.Len() == 0 {
			continue
		}
		rule := rbacv1.PolicyRule{APIGroups: []string{r.group}, Resources: []string{r.resource}, Verbs: slices.SortedFunc(maps.Keys(verbs), compareVerbs)}
		if r.name != "" {
			rule.ResourceNames = []string{r.name}
		}
		rules[r.namespace] = merged(rules[r.namespace], rule)
	}
	return rules
}

// merged adds a rule to others, or adds its resource or its name to an otherwise equal rule.
func merged(rules []rbacv1.PolicyRule, rule rbacv1.PolicyRule) []rbacv1.PolicyRule {
	for i := range rules {
		other := &rules[i]
		if !slices.Equal(other.APIGroups, rule.APIGroups) || !slices.Equal(other.Verbs, rule.Verbs) {
			continue
		}
		switch {
		case len(rule.ResourceNames) == 0 && len(other.ResourceNames) == 0:
			other.Resources = append(other.Resources, rule.Resources...)
			return rules
		case len(rule.ResourceNames) > 0 && len(other.ResourceNames) > 0 && slices.Equal(other.Resources, rule.Resources):
			other.ResourceNames = append(other.ResourceNames, rule.ResourceNames...)
			return rules
		}
	}
	return append(rules, rule)
}
