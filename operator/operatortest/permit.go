package operatortest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Permit gives a user these permissions in all namespaces until the test ends: to try whether those that an operator's documentation names
// are enough. The operator is the user by impersonation, or by the configuration that User returns. It waits until the API server knows of
// the last rule. An error ends the test.
func (i *Instance) Permit(t testing.TB, user string, rules ...rbacv1.PolicyRule) {
	t.Helper()
	meta := metav1.ObjectMeta{GenerateName: namePrefix(t.Name())}
	role := &rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules}
	err := i.withClient(func(c kubernetes.Interface) (err error) {
		if role, err = c.RbacV1().ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
			return err
		}
		t.Cleanup(func() { i.withdraw(t, role.Name) })
		_, err = c.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: role.Name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}},
		}, metav1.CreateOptions{})
		return err
	})
	if err != nil {
		t.Fatalf("operatortest: give permissions to %s: %v", user, err)
	}
	EventuallyAllowed(t, NewClient(t, i.RESTConfig(), nil), authorizationv1.SubjectAccessReviewSpec{User: user, ResourceAttributes: resourceOf(rules[len(rules)-1])})
}

// EventuallyAllowed waits until the API server lets somebody make a request: it hears of roles and their bindings a moment after they were
// made, and refuses until then what they allow.
func EventuallyAllowed(t testing.TB, c client.Client, request authorizationv1.SubjectAccessReviewSpec) {
	t.Helper()
	Eventually(t, "the API server knows what "+request.User+" may do", func() error { return allowed(t.Context(), c, request) })
}

// allowed returns an error that says why the API server does not let somebody make a request.
func allowed(ctx context.Context, c client.Client, request authorizationv1.SubjectAccessReviewSpec) error {
	review := &authorizationv1.SubjectAccessReview{Spec: request}
	if err := c.Create(ctx, review); err != nil {
		return err
	}
	if !review.Status.Allowed {
		return fmt.Errorf("%s is denied %+v %+v: %s", request.User, request.ResourceAttributes, request.NonResourceAttributes, review.Status.Reason)
	}
	return nil
}

// resourceOf is a request that a rule allows in all namespaces.
func resourceOf(rule rbacv1.PolicyRule) *authorizationv1.ResourceAttributes {
	attributes := &authorizationv1.ResourceAttributes{Verb: rule.Verbs[0], Group: rule.APIGroups[0]}
	attributes.Resource, attributes.Subresource, _ = strings.Cut(rule.Resources[0], "/")
	if len(rule.ResourceNames) > 0 {
		attributes.Name = rule.ResourceNames[0]
	}
	return attributes
}

// withdraw takes permissions away again.
func (i *Instance) withdraw(t testing.TB, role string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), cleanupTimeout)
	defer cancel()
	err := i.withClient(func(c kubernetes.Interface) error {
		rbac := c.RbacV1()
		return errors.Join(client.IgnoreNotFound(rbac.ClusterRoleBindings().Delete(ctx, role, metav1.DeleteOptions{})),
			client.IgnoreNotFound(rbac.ClusterRoles().Delete(ctx, role, metav1.DeleteOptions{})))
	})
	if err != nil {
		t.Errorf("operatortest: take the permissions of %s away: %v", role, err)
	}
}
