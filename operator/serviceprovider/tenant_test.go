package serviceprovider_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/operator/serviceprovider"
	clustersv1alpha1 "github.com/operatorkit/operatorkit/operator/serviceprovider/v1alpha1"
)

// tenant gives somebody rights in the namespace of the cluster of a role, and returns the token.
func (w *world) tenant(role string, rules ...rbacv1.PolicyRule) string {
	w.t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: named("tenant")}
	w.create(role, account)
	w.create(role, &rbacv1.Role{ObjectMeta: named("tenant"), Rules: rules})
	w.create(role, &rbacv1.RoleBinding{
		ObjectMeta: named("tenant"), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "tenant"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: w.namespace, Name: "tenant"}},
	})
	request := &authenticationv1.TokenRequest{}
	if err := planes[role].user.SubResource("token").Create(w.t.Context(), account, request); err != nil {
		w.t.Fatal(err)
	}
	return request.Status.Token
}

// as is somebody with a token in the cluster of a role.
func (w *world) as(token, role string) client.Client {
	w.t.Helper()
	config := rest.AnonymousClientConfig(adminOf(role))
	config.BearerToken = token
	c, err := client.New(config, client.Options{Scheme: scheme, Mapper: planes[role].user.RESTMapper()})
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

// serve runs a stack until the test ends.
func (w *world) serve(s stack) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.run(ctx) }()
	w.t.Cleanup(func() {
		cancel()
		if err := errors.Join(<-ended, planes[platform].user.Delete(context.Background(), s.config())); err != nil {
			w.t.Error(err)
		}
	})
}

// TestATenantCantSkipTheCleanUpOfAClusterThatAnswers: with its own token a tenant lets go of its MCP, where it rules and takes the provider's
// account away at the same time.
func TestATenantCantSkipTheCleanUpOfAClusterThatAnswers(t *testing.T) {
	w := newWorld(t)
	s := stack{namespace: w.namespace, tells: true, author: w.author, wrap: func(_ string, next http.RoundTripper) http.RoundTripper { return next }}
	if err := s.prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.serve(s)
	token := w.tenant(onboarding,
		rbacv1.PolicyRule{APIGroups: []string{servicesGroup.Group}, Resources: []string{"postgreses"}, Verbs: []string{"create", "patch", "delete"}},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"events"}, Verbs: []string{"list"}})
	tenant, ruler := w.as(token, onboarding), w.as(w.tenant(mcp,
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"serviceaccounts"}, Verbs: []string{"deletecollection"}}), mcp)
	db := newPostgres("db", 3)
	db.Namespace = w.namespace
	operatortest.Eventually(t, "the tenant has ordered", func() error { return tenant.Create(t.Context(), db) }) // API servers look at roles through a cache
	w.eventuallyTells("db", "Ready/True/Ready")

	// The platform's word is not the tenant's.
	requests := &clustersv1alpha1.AccessRequestList{}
	if err := planes[platform].user.List(t.Context(), requests, client.InNamespace(w.namespace)); err != nil || len(requests.Items) != 2 {
		t.Fatalf("there are %d AccessRequests: %v", len(requests.Items), err)
	}
	abandon := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"`+clustersv1alpha1.AbandonAnnotation+`":"true"}}}`))
	for i := range requests.Items {
		if err := w.as(token, platform).Patch(t.Context(), &requests.Items[i], abandon); !apierrors.IsUnauthorized(err) {
			t.Errorf("to abandon the access is refused by %v", err)
		}
	}

	granted := client.MatchingLabels{"app.kubernetes.io/managed-by": "operatorkit-granter"}
	letGo := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"`+serviceprovider.LetGoAnnotation+`":"mcp"}}}`))
	if err := errors.Join(
		ruler.DeleteAllOf(t.Context(), &corev1.ServiceAccount{}, client.InNamespace(w.namespace), granted),
		tenant.Patch(t.Context(), db, letGo), tenant.Delete(t.Context(), db),
	); err != nil {
		t.Fatal(err)
	}
	operatortest.Eventually(t, "nothing is left in any cluster", func() error {
		left, err := s.traces(t.Context())
		if err == nil && len(left) > 0 {
			err = fmt.Errorf("there is %v", left)
		}
		return err
	})
	if !slices.Contains(w.author.all(), "Delete") {
		t.Errorf("the provider was not called to clean up: %q", w.author.all())
	}
	operatortest.Eventually(t, "the tenant is told that the cluster is cleaned up", func() bool {
		told := &corev1.EventList{}
		if err := tenant.List(t.Context(), told, client.InNamespace(w.namespace)); err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(told.Items, func(e corev1.Event) bool {
			return e.Reason == serviceprovider.ReasonClusterAnswers && strings.Contains(e.Message, "names the mcp cluster, which answers: it is cleaned up")
		})
	})
}
