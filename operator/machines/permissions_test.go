package machines_test

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/operator/machines"
	"github.com/operatorkit/operatorkit/operator/machines/v1alpha1"
	"github.com/operatorkit/operatorkit/operator/operatortest"
)

// permissions are those that the documentation of the package names.
func permissions() []rbacv1.PolicyRule {
	group, core, read := []string{v1alpha1.GroupVersion.Group}, []string{""}, []string{"get", "list", "watch"}
	return []rbacv1.PolicyRule{
		{APIGroups: group, Resources: []string{"machines", "machineservices"}, Verbs: read},
		{APIGroups: core, Resources: []string{"configmaps", "secrets"}, Verbs: read},
		{APIGroups: group, Resources: []string{"machines", "machines/status", "machineservices", "machineservices/status"}, Verbs: []string{"patch"}},
		{APIGroups: core, Resources: []string{"events"}, Verbs: []string{"create", "patch"}},
	}
}

func TestThePermissionsThatAreDocumentedAreEnough(t *testing.T) {
	w := newWorld(t, 1)
	user := "operator-" + w.namespace
	w.kube.Permit(t, user, permissions()...)
	w.as = rest.ImpersonationConfig{UserName: user}
	w.create(configMap("settings", map[string]string{"GREETING": "hello"}))
	w.start()
	web := service("web", "app:1", 1)
	web.Spec.EnvFrom = []v1alpha1.EnvFrom{{ConfigMapRef: &v1alpha1.ObjectReference{Name: "settings"}}}
	w.create(web)
	w.want(web, "Ready=True Deployed: ")
	operatortest.Eventually(t, "there is an event", func() error {
		events := &corev1.EventList{}
		if err := w.user.List(t.Context(), events, client.InNamespace(w.namespace)); err != nil {
			return err
		}
		for i := range events.Items {
			if events.Items[i].InvolvedObject.UID == web.UID && events.Items[i].Reason == machines.EventDeployed {
				return nil
			}
		}
		return errors.New("there is none of the deployment")
	})
	m := w.machine(0)
	for _, o := range []client.Object{web, m} {
		if err := w.user.Delete(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	w.wantGone(web)
	w.wantGone(m)
	if log := w.log.String(); strings.Contains(strings.ToLower(log), "forbidden") {
		t.Errorf("something was forbidden:\n%s", log)
	}
}
