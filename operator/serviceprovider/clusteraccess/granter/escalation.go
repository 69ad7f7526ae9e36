package granter

import (
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	rbacv1 "k8s.io/api/rbac/v1"
)

// right is a verb of a resource by which somebody becomes somebody else, or gets rights that nobody has given them.
type right struct{ group, resource, verb string }

// escalations are such rights. No wildcard of a policy includes them.
var escalations = slices.Concat(
	rights("", []string{"serviceaccounts/token"}, "create"),
	rights("", []string{"users", "groups", "serviceaccounts"}, "impersonate"),
	rights(authenticationv1.GroupName, []string{"uids", "userextras"}, "impersonate"),
	// Constrained impersonation: https://kubernetes.io/docs/reference/access-authn-authz/user-impersonation/.
	rights(authenticationv1.GroupName, []string{"users", "groups", "uids", "userextras"}, "impersonate:user-info"),
	rights(authenticationv1.GroupName, []string{"serviceaccounts"}, "impersonate:serviceaccount"),
	rights(authenticationv1.GroupName, []string{"nodes"}, "impersonate:arbitrary-node", "impersonate:associated-node"),
	rights(rbacv1.GroupName, []string{"roles", "clusterroles"}, "bind", "escalate"),
	rights(certificatesv1.GroupName, []string{"certificatesigningrequests/approval"}, "update", "patch"),
	rights(certificatesv1.GroupName, []string{"signers"}, "approve", "sign"),
	// The kubelet runs commands in every container of its node, and takes a get for that too.
	rights("", []string{"nodes/proxy"}, "get", "create"),
	// What an API server asks at each write can change it, and reads Secrets.
	rights(admissionv1.GroupName, []string{"mutatingwebhookconfigurations", "validatingwebhookconfigurations"}, "create", "update", "patch"),
)

func rights(group string, resources []string, verbs ...string) []right {
	var all []right
	for _, resource := range resources {
		for _, verb := range verbs {
			all = append(all, right{group, resource, verb})
		}
	}
	return all
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
