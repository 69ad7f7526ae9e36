package statemanagers_test

import (
	"errors"
	"net/http"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/operator/statemanagers"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// managementPermissions are those on the management cluster that the documentation of the package names.
func managementPermissions() []rbacv1.PolicyRule {
	group, read := []string{v1alpha1.GroupVersion.Group}, []string{"get", "list", "watch"}
	return []rbacv1.PolicyRule{
		{APIGroups: group, Resources: []string{"clusterdeployments", "servicesets", "servicetemplates", "statemanagementproviders"}, Verbs: read},
		{APIGroups: []string{""}, Resources: []string{"configmaps", "secrets"}, Verbs: read},
		{APIGroups: group, Resources: []string{"servicesets", "servicesets/status", "statemanagementproviders", "statemanagementproviders/status"}, Verbs: []string{"patch"}},
		{APIGroups: group, Resources: []string{"statemanagementproviders"}, Verbs: []string{"create"}},
		{APIGroups: []string{""}, Resources: []string{"namespaces"}, ResourceNames: []string{"kube-system"}, Verbs: []string{"get"}},
		{APIGroups: []string{""}, Resources: []string{"events"}, Verbs: []string{"create", "patch"}},
	}
}

// targetPermissions are those on a target cluster whose services consist of ConfigMaps and Secrets.
func targetPermissions() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"get"}},
		{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get", "list", "watch", "create", "update", "patch", "delete"}},
		{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list", "watch", "create", "patch", "delete"}},
	}
}

func TestThePermissionsThatAreDocumentedAreEnough(t *testing.T) {
	w := newWorld(t)
	provider := w.ownProvider()
	w.config.LeaveProviders = false
	operator, guest := "operator-"+w.namespace, "guest-"+w.namespace
	w.kube.Permit(t, operator, managementPermissions()...)
	w.kube.Permit(t, guest, targetPermissions()...)
	w.as = rest.ImpersonationConfig{UserName: operator}
	w.files("rules", map[string]string{"rules.yaml": mapManifest})
	w.files("look", kustomization)
	w.create(filesTemplate("rules"), kustomizeTemplate("look"), pageTemplate(w.charts, "1.0.0"), pageTemplate(w.charts, "2.0.0"))
	w.create(cluster("one"), kubeconfigSecret(t, "one", w.kube.RESTConfig(), guest))
	set := w.ownSet(provider.Name, map[string]string{statemanagers.ProviderLabel: provider.Name}, "rules=rules")
	set.Spec.Services = append(set.Spec.Services,
		v1alpha1.ServiceWithValues{Name: "look", Namespace: w.namespace, Template: "look", Version: "1.0.0"},
		v1alpha1.ServiceWithValues{Name: "shop", Namespace: w.namespace, Template: "page-1.0.0", Version: "1.0.0"})
	w.create(set)
	w.run(func(r *running) []*framework.Framework { return r.managers })

	w.wantProvider(provider, "Ready=True Running")
	w.wantSet(set.Name, "Ready=True Deployed: all 3 services are deployed")
	w.wantEvent(set, statemanagers.EventDeployed)
	change(w, set, func(s *v1alpha1.ServiceSet) {
		s.Spec.Services[2].Template, s.Spec.Services[2].Version = "page-2.0.0", "2.0.0"
	})
	w.edit("rules-files", func(files map[string]string) { files["rules.yaml"] = dataMap("rules", "allow: all") })
	w.wantText("shop", "version", "2.0.0")
	w.wantText("rules", "allow", "all")
	if err := w.user.Delete(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	w.wantGone(set)
	w.wantText("shop", "version", "")
	w.wantText("my-look", "colour", "")
	for where, faults := range map[string]*operatortest.Faults{"management": w.faults, "target": w.east} {
		for _, write := range faults.Writes() {
			if write.Status == http.StatusForbidden {
				t.Errorf("%s cluster: %s was forbidden", where, write)
			}
		}
	}
}

// wantEvent waits until there is an event on an object.
func (w *world) wantEvent(o client.Object, reason string) {
	w.t.Helper()
	operatortest.Eventually(w.t, "there is an event "+reason, func() error {
		events := &corev1.EventList{}
		if err := w.user.List(w.t.Context(), events, client.InNamespace(w.namespace)); err != nil {
			return err
		}
		for i := range events.Items {
			if events.Items[i].InvolvedObject.UID == o.GetUID() && events.Items[i].Reason == reason {
				return nil
			}
		}
		return errors.New("there is none among the events")
	})
}
