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
type Policy struct {
	// Permissions are rules that may be granted, in the namespaces that match Namespace, a pattern as path.Match has it, such
	// as "*" or "team-*". Those with an empty Namespace may be granted in the whole cluster, and so in every namespace.
	Permissions []v1alpha1.Permission
	// RoleRefs are roles that may be given. Name and Namespace are patterns; a ClusterRole with an empty Namespace may be
	// given in the whole cluster, and so in every namespace. Who may change such a role decides what it allows.
	RoleRefs []v1alpha1.RoleReference
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

// Check returns nil if the policy allows all that a request asks for, and an *ExceededError otherwise.
func (p Policy) Check(spec *v1alpha1.AccessRequestSpec) error {
	var excesses []string
	for i, permission := range spec.Permissions {
		allowed := p.rulesIn(permission.Namespace)
		for j, rule := range permission.Rules {
			if covered, rest := validation.Covers(allowed, []rbacv1.PolicyRule{rule}); !covered {
				excesses = append(excesses, fmt.Sprintf("spec.permissions[%d].rules[%d] (%s in %s)", i, j, describe(rest), place(permission.Namespace)))
			}
		}
	}
	for i, ref := range spec.RoleRefs {
		if !slices.ContainsFunc(p.RoleRefs, func(allowed v1alpha1.RoleReference) bool { return allows(allowed, ref) }) {
			excesses = append(excesses, fmt.Sprintf("spec.roleRefs[%d] (%s %s in %s)", i, ref.Kind, ref.Name, place(ref.Namespace)))
		}
	}
	if len(excesses) > 0 {
		return &ExceededError{Excesses: excesses}
	}
	return nil
}

// rulesIn returns the rules that may be granted in a namespace, or in the whole cluster for "".
func (p Policy) rulesIn(namespace string) []rbacv1.PolicyRule {
	var rules []rbacv1.PolicyRule
	for _, permission := range p.Permissions {
		if matchesNamespace(permission.Namespace, namespace) {
			rules = append(rules, permission.Rules...)
		}
	}
	return rules
}

func matchesNamespace(pattern, namespace string) bool {
	return pattern == "" || namespace != "" && matches(pattern, namespace)
}

func allows(allowed, asked v1alpha1.RoleReference) bool {
	if allowed.Kind != asked.Kind || !matches(allowed.Name, asked.Name) {
		return false
	}
	return matchesNamespace(allowed.Namespace, asked.Namespace)
}

// matches tells whether a name matches a pattern. A pattern that is malformed matches nothing; New has refused those that it
// was shown.
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
	for _, r := range rules {
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
	if more := len(parts) - maxDescribed; more > 0 {
		parts = append(parts[:maxDescribed], fmt.Sprintf("%d more", more))
	}
	return strings.Join(parts, ", ")
}
