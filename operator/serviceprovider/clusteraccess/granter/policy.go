package granter

import (
	"fmt"
	"path"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/component-helpers/auth/rbac/validation"

	"github.com/operatorkit/operatorkit/operator/serviceprovider/v1alpha1"
)

// Policy is the most that may be granted. The zero Policy grants nothing.
//
// By some rights one gets all others: to make tokens of service accounts, to impersonate, to bind or escalate roles, to sign certificates,
// to reach kubelets (nodes/proxy), to have the API server ask a webhook.
// Whoever may make tokens in the granter's own namespace has what every other request was granted. So no wildcard and no pattern of a policy
// includes these rights, the roles of Kubernetes that hold them ("cluster-admin", "admin", "edit" and those of its components), or the
// namespaces of the platform, which may be one of its own clusters: the granter's own, "kube-system", that of the Clusters, those of the
// providers, and Config.ReservedNamespaces. A policy that is to allow one of them names it in full, and what is allowed in the whole cluster
// is allowed in these namespaces too.
//
// Within one namespace wildcards include more than they seem to: who may create Pods there, or create and get Secrets (of the type
// kubernetes.io/service-account-token), gets tokens of every service account of that namespace. List resources where such accounts exist.
type Policy struct {
	// Name is what people call the policy. The AccessRequests that it has granted name it. Default: it has none.
	Name string
	// Permissions are rules that may be granted, in the namespaces that match Namespace, a pattern as path.Match has it, such
	// as "*" or "team-*". Those with an empty Namespace may be granted in the whole cluster, and so in every namespace.
	Permissions []v1alpha1.Permission
	// RoleRefs are roles that may be given. Name and Namespace are patterns; a ClusterRole with an empty Namespace may be
	// given in the whole cluster, and so in every namespace. Who may change such a role decides what it allows.
	RoleRefs []v1alpha1.RoleReference
	// Identities are who may get access without a service account, by issuer. Username and Groups are patterns; one without a Username
	// allows groups only. Names that begin with "system:" in the cluster are never allowed. Default: nobody.
	Identities []v1alpha1.OIDCIdentity
}

// ExceededError says that an AccessRequest asks for more than the policy allows.
type ExceededError struct {
	// Excesses name each rule and each role that is too much, and what of it.
	Excesses []string
}

// Error implements error.
func (e *ExceededError) Error() string {
	return "the policy of the platform does not allow " + strings.Join(e.Excesses, "; ") + ": ask for less, or have the policy changed"
}

// maxCombinations is how many rights the rules of a request may stand for, each of which is looked for in the policy: a few kilobytes of lists can
// stand for billions.
const maxCombinations = 50_000

// Check returns nil if the policy allows all that a request asks for, and an *ExceededError otherwise. Patterns don't include the reserved
// namespaces. A request whose rules stand for more than 50,000 rights, which are the combinations of group, resource, verb and name, is more
// than any policy allows.
func (p Policy) Check(spec *v1alpha1.AccessRequestSpec, reserved ...string) error {
	if excess := uncountable(spec.Permissions); excess != "" {
		return &ExceededError{Excesses: []string{excess}}
	}
	excesses := p.identityExcesses(spec.OIDC)
	for i, permission := range spec.Permissions {
		allowed := p.rulesIn(permission.Namespace, reserved)
		named := inFull(allowed)
		for j, rule := range permission.Rules {
			_, rest := validation.Covers(allowed, []rbacv1.PolicyRule{rule})
			for _, right := range escalations {
				if !right.in(rule) {
					continue
				}
				if covered, more := validation.Covers(named, []rbacv1.PolicyRule{right.rule(rule.ResourceNames)}); !covered {
					rest = append(rest, more...)
				}
			}
			if len(rest) > 0 {
				excesses = append(excesses, fmt.Sprintf("spec.permissions[%d].rules[%d] (%s in %s)", i, j, describe(rest), place(permission.Namespace)))
			}
		}
	}
	for i, ref := range spec.RoleRefs {
		if !slices.ContainsFunc(p.RoleRefs, func(allowed v1alpha1.RoleReference) bool { return allows(allowed, ref, reserved) }) {
			excesses = append(excesses, fmt.Sprintf("spec.roleRefs[%d] (%s %s in %s)", i, ref.Kind, ref.Name, place(ref.Namespace)))
		}
	}
	if len(excesses) > 0 {
		return &ExceededError{Excesses: excesses}
	}
	return nil
}

// uncountable names the rule with which a request stands for too many rights, and is empty if there is none.
func uncountable(permissions []v1alpha1.Permission) string {
	all := 0
	for i, permission := range permissions {
		for j, rule := range permission.Rules {
			names := max(1, len(rule.ResourceNames))
			all += product(len(rule.APIGroups), len(rule.Resources), len(rule.Verbs), names) + product(len(rule.NonResourceURLs), len(rule.Verbs))
			for _, right := range escalations {
				if right.in(rule) {
					all += names
				}
			}
			if all > maxCombinations {
				return fmt.Sprintf("spec.permissions[%d].rules[%d] (with it the rules stand for more than %d combinations of group, resource, verb and name)",
					i, j, maxCombinations)
			}
		}
	}
	return ""
}

// product multiplies up to what is too much, and so never overflows.
func product(factors ...int) int {
	n := 1
	for _, factor := range factors {
		n = min(n*factor, maxCombinations+1)
	}
	return n
}

// rulesIn returns the rules that may be granted in a namespace, or in the whole cluster for "".
func (p Policy) rulesIn(namespace string, reserved []string) []rbacv1.PolicyRule {
	var rules []rbacv1.PolicyRule
	for _, permission := range p.Permissions {
		if matchesNamespace(permission.Namespace, namespace, reserved) {
			rules = append(rules, permission.Rules...)
		}
	}
	return rules
}

func matchesNamespace(pattern, namespace string, reserved []string) bool {
	switch {
	case pattern == "" || pattern == namespace:
		return true
	case namespace == "" || slices.Contains(reserved, namespace):
		return false
	}
	return matches(pattern, namespace)
}

func allows(allowed, asked v1alpha1.RoleReference, reserved []string) bool {
	named := allowed.Name == asked.Name || !escalates(asked.Name) && matches(allowed.Name, asked.Name)
	return allowed.Kind == asked.Kind && named && matchesNamespace(allowed.Namespace, asked.Namespace, reserved)
}

// matches tells whether a name matches a pattern. A pattern that is malformed matches nothing; Validate names it.
func matches(pattern, name string) bool {
	ok, err := path.Match(pattern, name)
	return err == nil && ok
}

func place(namespace string) string {
	if namespace == "" {
		return "the whole cluster"
	}
	return "namespace " + namespace
}

// maxDescribed is how many parts of a rule are named.
const maxDescribed = 4

// describe names what is not allowed, as "delete secrets, get deployments.apps".
func describe(rules []rbacv1.PolicyRule) string {
	var parts []string
	for _, r := range rules[:min(len(rules), maxDescribed)] {
		object := strings.Join(r.NonResourceURLs, ",")
		if object == "" {
			object = strings.Join(r.Resources, ",")
			if group := strings.Join(r.APIGroups, ","); group != "" {
				object += "." + group
			}
			if len(r.ResourceNames) > 0 {
				object += "/" + strings.Join(r.ResourceNames, ",")
			}
		}
		parts = append(parts, strings.Join(r.Verbs, ",")+" "+object)
	}
	if more := len(rules) - maxDescribed; more > 0 {
		parts = append(parts, fmt.Sprintf("%d more", more))
	}
	return strings.Join(parts, ", ")
}
