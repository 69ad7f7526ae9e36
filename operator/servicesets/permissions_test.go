package servicesets_test

import (
	"context"
	"net/http"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// permissions are those that the documentation of the package names.
func permissions() []rbacv1.PolicyRule {
	group := []string{v1alpha1.GroupVersion.Group}
	return []rbacv1.PolicyRule{
		{APIGroups: group, Resources: []string{"*"}, Verbs: []string{"get", "list", "watch"}},
		{APIGroups: group, Resources: []string{
			"clusterdeployments", "clusterdeployments/status", "multiclusterservices", "multiclusterservices/status",
			"servicetemplatechains", "servicetemplatechains/status",
		}, Verbs: []string{"patch"}},
		{APIGroups: group, Resources: []string{"servicesets"}, Verbs: []string{"create", "update", "delete"}},
		{APIGroups: []string{""}, Resources: []string{"events"}, Verbs: []string{"create", "patch"}},
	}
}

func TestThePermissionsThatAreDocumentedAreEnough(t *testing.T) {
	w := newWorld(t)
	w.templates("a-1-0-0", "m-1-0-0")
	name := "operator-" + w.namespace
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: permissions()}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: name}},
	}
	if err := w.user.Create(t.Context(), role); err != nil {
		t.Fatal(err)
	}
	if err := w.user.Create(t.Context(), binding); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.user.Delete(context.Background(), binding); err != nil {
			t.Error(err)
		}
		if err := w.user.Delete(context.Background(), role); err != nil {
			t.Error(err)
		}
	})
	w.as = rest.ImpersonationConfig{UserName: name}
	operatortest.EventuallyAllowed(t, w.user, authorizationv1.SubjectAccessReviewSpec{
		User: name, ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: w.namespace, Verb: "create", Resource: "events"},
	})
	w.start()
	one, mcs := cluster("one", "gold", service("a=a-1-0-0", "b")), w.multi("base", "gold", service("m=m-1-0-0"))
	mcs.Spec.ServiceSpec.Provider.SelfManagement = true
	w.create(one, mcs)
	w.wants(one, "Blocked=True DependencyAbsent")
	change(w, one, func(cd *v1alpha1.ClusterDeployment) { cd.Spec.ServiceSpec.Services[0].DependsOn = nil })
	w.report(w.setName(one, nil), v1alpha1.ServiceStateDeployed, "a")
	w.report(w.setName(one, mcs), v1alpha1.ServiceStateDeployed, "m")
	w.report(w.setName(nil, mcs), v1alpha1.ServiceStateDeployed, "m")
	w.wants(one, "Ready=True")
	w.wants(mcs, "Ready=True")
	w.wantEvents(one, "1 Normal Ready: the service is deployed",
		"1 Warning DependencyAbsent: service default/a depends on default/b, which is not listed: list it or take it out of dependsOn")
	if err := w.user.Delete(t.Context(), one); err != nil {
		t.Fatal(err)
	}
	w.wantGone(one)
	if err := w.user.Delete(t.Context(), mcs); err != nil {
		t.Fatal(err)
	}
	w.takeAway(w.setName(nil, mcs))
	w.wantGone(mcs)
	for _, write := range w.faults.Writes() {
		if write.Status == http.StatusForbidden {
			t.Errorf("%s was forbidden", write)
		}
	}
}
