package granter

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

// right is a verb of a resource by which somebody becomes somebody else, or gets rights that nobody has given them.
type right struct{ group, resource, verb string }

// escalations are such rights. No wildcard of a policy includes them.
var escalations = []right{
	{"", "serviceaccounts/token", "create"},
	{"", "users", "impersonate"},
	{"", "groups", "impersonate"},
	{"", "serviceaccounts", "impersonate"},
	{rbacv1.GroupName, "roles", "bind"},
	{rbacv1.GroupName, "roles", "escalate"},
	{rbacv1.GroupName, "clusterroles", "bind"},
	{rbacv1.GroupName, "clusterroles", "escalate"},
	{"certificates.k8s.io", "certificatesigningrequests/approval", "update"},
	{"certificates.k8s.io", "signers", "approve"},
	{"certificates.k8s.io", "signers", "sign"},
}

// escalatingRoles are the roles that Kubernetes brings and that hold such rights, beside those of its own components.
var escalatingRoles = []string{"cluster-admin", "admin", "edit"}

// rule is the right as a rule, for the objects that another rule names.
func (r right) rule(names []string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{r.group}, Resources: []string{r.resource}, Verbs: []string{r.verb}, ResourceNames: names}
}

// in tells whether a rule includes the right, be it for some objects only.
func (r right) in(rule rbacv1.PolicyRule) bool {
	_, subresource, _ := strings.Cut(r.resource, "/")
	return has(rule.Verbs, r.verb) && has(rule.APIGroups, r.group) &&
		(has(rule.Resources, r.resource) || subresource != "" && slices.Contains(rule.Resources, "*/"+subresource))
}

func has(list []string, item string) bool {
	return slices.Contains(list, item) || slices.Contains(list, rbacv1.VerbAll)
}

// inFull returns the rules without all that they say by a wildcard.
func inFull(rules []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	var named []rbacv1.PolicyRule
	for _, rule := range rules {
		rule.Verbs, rule.APIGroups, rule.Resources = withoutWildcards(rule.Verbs), withoutWildcards(rule.APIGroups), withoutWildcards(rule.Resources)
		if len(rule.Verbs) > 0 && len(rule.APIGroups) > 0 && len(rule.Resources) > 0 {
			named = append(named, rule)
		}
	}
	return named
}

func withoutWildcards(list []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(item string) bool { return strings.HasPrefix(item, "*") })
}

// escalates tells whether a role of this name is known to hold such rights.
func escalates(role string) bool {
	return slices.Contains(escalatingRoles, role) || strings.HasPrefix(role, "system:")
}
