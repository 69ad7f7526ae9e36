package granter_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/operatorkit/operatorkit/operator/serviceprovider/clusteraccess/granter"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/v1alpha1"
)

func TestNoWildcardIncludesARightByWhichOneGetsOthers(t *testing.T) {
	rule := func(group, resource, verb string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: []string{verb}}
	}
	const authentication, admission, certificates = "authentication.k8s.io", "admissionregistration.k8s.io", "certificates.k8s.io"
	everything := granter.Policy{Permissions: []v1alpha1.Permission{{Rules: []rbacv1.PolicyRule{rule("*", "*", "*")}}}}
	for _, escalating := range []rbacv1.PolicyRule{
		rule("", "serviceaccounts/token", "create"),
		rule("", "users", "impersonate"),
		rule("", "groups", "impersonate"),
		rule("", "serviceaccounts", "impersonate"),
		rule(authentication, "uids", "impersonate"),
		rule(authentication, "userextras", "impersonate"),
		rule(authentication, "users", "impersonate:user-info"),
		rule(authentication, "groups", "impersonate:user-info"),
		rule(authentication, "serviceaccounts", "impersonate:serviceaccount"),
		rule(authentication, "nodes", "impersonate:arbitrary-node"),
		rule(authentication, "nodes", "impersonate:associated-node"),
		rule("rbac.authorization.k8s.io", "roles", "bind"),
		rule("rbac.authorization.k8s.io", "clusterroles", "escalate"),
		rule(certificates, "certificatesigningrequests/approval", "update"),
		rule(certificates, "certificatesigningrequests/approval", "patch"),
		rule(certificates, "signers", "approve"),
		rule(certificates, "signers", "sign"),
		rule("", "nodes/proxy", "get"),
		rule("", "nodes/proxy", "create"),
		rule("", "*/proxy", "get"),
		rule(admission, "mutatingwebhookconfigurations", "create"),
		rule(admission, "mutatingwebhookconfigurations", "patch"),
		rule(admission, "validatingwebhookconfigurations", "update"),
		rule(admission, "*", "*"),
	} {
		asked := &v1alpha1.AccessRequestSpec{Permissions: []v1alpha1.Permission{{Rules: []rbacv1.PolicyRule{escalating}}}}
		if everything.Check(asked) == nil {
			t.Errorf("a policy with wildcards allows %v", escalating)
		}
		inFull := granter.Policy{Permissions: append([]v1alpha1.Permission{{Rules: []rbacv1.PolicyRule{escalating}}}, everything.Permissions...)}
		if err := inFull.Check(asked); err != nil && escalating.Verbs[0] != "*" && escalating.Resources[0] != "*/proxy" {
			t.Errorf("a policy that names it in full does not allow %v: %v", escalating, err)
		}
	}
	for _, harmless := range []rbacv1.PolicyRule{
		rule("", "nodes", "get"), rule("", "services/proxy", "get"), rule(admission, "mutatingwebhookconfigurations", "get"),
		rule(certificates, "certificatesigningrequests", "create"), rule("", "secrets", "create"),
	} {
		if err := everything.Check(&v1alpha1.AccessRequestSpec{Permissions: []v1alpha1.Permission{{Rules: []rbacv1.PolicyRule{harmless}}}}); err != nil {
			t.Errorf("%v: %v", harmless, err)
		}
	}
}

// TestRulesWithTooManyCombinationsAreDeniedUnexpanded: expanded, the rules of these requests would need more memory than any machine has.
func TestRulesWithTooManyCombinationsAreDeniedUnexpanded(t *testing.T) {
	names := func(n int) (names []string) {
		for i := range n {
			names = append(names, fmt.Sprint("x", i))
		}
		return names
	}
	many := names(2000)
	everything := granter.Policy{Permissions: []v1alpha1.Permission{{Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}}, {NonResourceURLs: []string{"*"}, Verbs: []string{"*"}},
	}}}}
	for name, test := range map[string]struct {
		rules []rbacv1.PolicyRule
		names string
	}{
		"of resources": {[]rbacv1.PolicyRule{{APIGroups: many, Resources: many, Verbs: many}}, "rules[0]"},
		"of names": {[]rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get"}}, {APIGroups: many, Resources: many, Verbs: many, ResourceNames: many},
		}, "rules[1]"},
		"of names with what wildcards include": {[]rbacv1.PolicyRule{
			{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}, ResourceNames: names(20_000)},
		}, "rules[0]"},
		"of addresses": {[]rbacv1.PolicyRule{{NonResourceURLs: many, Verbs: many}}, "rules[0]"},
		"together": {[]rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: names(200), Verbs: names(200)}, {APIGroups: []string{""}, Resources: names(200), Verbs: names(200)},
		}, "rules[1]"},
	} {
		t.Run(name, func(t *testing.T) {
			err := everything.Check(&v1alpha1.AccessRequestSpec{Permissions: []v1alpha1.Permission{{Rules: test.rules}}})
			var exceeded *granter.ExceededError
			if !errors.As(err, &exceeded) || !strings.Contains(err.Error(), "spec.permissions[0]."+test.names+" (with it") {
				t.Errorf("err = %v, want one that names %s", err, test.names)
			}
		})
	}
	countable := &v1alpha1.AccessRequestSpec{Permissions: []v1alpha1.Permission{{Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: names(200), Verbs: names(200)}}}}}
	if err := everything.Check(countable); err != nil {
		t.Errorf("what the policy allows, and can be counted, is denied: %v", err)
	}
}
