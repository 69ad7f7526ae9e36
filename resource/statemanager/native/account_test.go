package native_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"helm.sh/helm/v4/pkg/release/common"
	release "helm.sh/helm/v4/pkg/release/v1"
	"helm.sh/helm/v4/pkg/storage/driver"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager/native"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
	"github.com/operatorkit/operatorkit/resource/statemanager/target"
)

const roleText = `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: {{ .Release.Namespace }}-all}
rules: [{apiGroups: ["*"], resources: ["*"], verbs: ["*"]}]
`

// tenant gives the service account "deployer" of the namespace rights for ConfigMaps and Secrets of that.
func (w *world) tenant() {
	w.t.Helper()
	w.tenantOf(w.namespace)
}

func (w *world) tenantOf(namespace string) {
	w.t.Helper()
	verbs := []string{"get", "list", "create", "update", "patch", "delete"}
	for _, object := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}},
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "deployer"}},
		&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "deployer"}, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"configmaps", "secrets"}, Verbs: verbs},
		}},
		&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "deployer"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "deployer"},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: "deployer"}},
		},
	} {
		if err := w.east.Create(w.t.Context(), object); err != nil {
			w.t.Fatal(err)
		}
	}
}

// actors are those as whom writes to the cluster were asked for.
func (w *world) actors() func() []string {
	var mu sync.Mutex
	var seen []string
	w.requests.mu.Lock()
	defer w.requests.mu.Unlock()
	w.requests.before = func(_ target.Key, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if as := r.Header.Get("Impersonate-User"); r.Method != http.MethodGet && !slices.Contains(seen, as) {
			seen = append(seen, as)
		}
	}
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(seen)
	}
}

func TestATenantsServiceCanDoWhatItsServiceAccountMay(t *testing.T) {
	w := newPlatform(t)
	w.useEast()
	w.tenant()
	actors := w.actors()
	w.charts(map[string][]byte{
		"app-1.0.0.tgz":  chartOf(t, "app", "1.0.0", files{"templates/page.yaml": allTemplate}),
		"root-1.0.0.tgz": chartOf(t, "root", "1.0.0", files{"templates/role.yaml": roleText}),
		"peep-1.0.0.tgz": chartOf(t, "peep", "1.0.0", files{"templates/page.yaml": "{apiVersion: v1, kind: ConfigMap, metadata: {name: peep}, data: {all: {{ lookup \"v1\" \"ConfigMap\" \"kube-system\" \"\" | toJson | quote }}}}"}),
	})
	w.manifests("page", configMapText("page", "hello"))
	w.manifests("away", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: away, namespace: kube-system}\n")
	var all []v1alpha1.ServiceWithValues
	for name, template := range map[string]string{"app": "app-1.0.0", "root": "root-1.0.0", "peep": "peep-1.0.0", "page": "page", "away": "away"} {
		service := w.service(name, template)
		service.ServiceAccountName = "deployer"
		all = append(all, service)
	}
	w.set("a", "east", all...)
	w.settle("a", "app Deployed, away Failed, page Deployed, peep Failed, root Failed")
	account := "the service account " + w.namespace + "/deployer lacks a right"
	says(t, w.stateOf("a", "root").FailureMessage, account, `cannot get resource "clusterroles"`)
	says(t, w.stateOf("a", "away").FailureMessage, account, `cannot get resource "configmaps" in API group "" in the namespace "kube-system"`)
	says(t, w.stateOf("a", "peep").FailureMessage, account, `cannot list resource "configmaps" in API group "" in the namespace "kube-system"`)
	for _, object := range []client.Object{
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: w.namespace + "-all"}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "away"}},
	} {
		if err := w.east.Get(t.Context(), client.ObjectKeyFromObject(object), object); !apierrors.IsNotFound(err) {
			t.Errorf("%T %s: %v", object, object.GetName(), err)
		}
	}
	w.change("a", func(s *v1alpha1.ServiceSet) {
		s.Spec.Removing = nil
		for _, service := range s.Spec.Services {
			s.Spec.Removing = append(s.Spec.Removing, v1alpha1.ServiceRemoval{Name: service.Name, Namespace: service.Namespace, ServiceAccountName: "deployer"})
		}
		s.Spec.Services = nil
	})
	w.settle("a", "")
	left := &corev1.ConfigMapList{}
	if err := w.east.List(t.Context(), left, client.InNamespace(w.namespace), client.HasLabels{carrier.OwnerLabel}); err != nil || len(left.Items) > 0 {
		t.Errorf("%d are left, %v", len(left.Items), err)
	}
	if got := actors(); !slices.Equal(got, []string{"system:serviceaccount:" + w.namespace + ":deployer"}) {
		t.Errorf("there were writes as %q", got)
	}
}

func TestNoServiceIsWithoutTheDefaultServiceAccount(t *testing.T) {
	w := newPlatform(t)
	w.config.DefaultServiceAccount = "nobody"
	w.restart()
	w.useEast()
	w.tenant()
	w.manifests("page", configMapText("page", "hello"))
	w.set("a", "east", w.service("page", "page"))
	w.settle("a", "page Failed")
	says(t, w.stateOf("a", "page").FailureMessage, "the service account "+w.namespace+"/nobody lacks a right", "cannot get resource", "secrets")

	w.change("a", func(s *v1alpha1.ServiceSet) {
		s.Spec.Provider.Config = &apiextensionsv1.JSON{Raw: []byte(`{"serviceAccountName": "deployer"}`)}
	})
	w.settle("a", "page Deployed")
	// What runs stays, and is told that it can't be looked at.
	w.change("a", func(s *v1alpha1.ServiceSet) { s.Spec.Services[0].ServiceAccountName = "nobody" })
	if _, err := w.step("a"); !apierrors.IsForbidden(err) {
		t.Errorf("the error is %v", err)
	}
	says(t, w.condition("a", "page", native.ConditionResolved).Message, "the service account "+w.namespace+"/nobody lacks a right")
	w.config.DefaultServiceAccount = "not a name"
	if _, err := native.New(w.config); err == nil || !strings.Contains(err.Error(), "DefaultServiceAccount") {
		t.Errorf("the error is %v", err)
	}
}

// forge creates a Helm release as the service account "deployer", with the mark of the set and a hook that makes its author an administrator.
func (w *world) forge(name, mark string) {
	w.t.Helper()
	config := rest.CopyConfig(eastern(w.t).RESTConfig())
	config.Impersonate.UserName = "system:serviceaccount:" + w.namespace + ":deployer"
	set, err := kubernetes.NewForConfig(config)
	if err != nil {
		w.t.Fatal(err)
	}
	forged := &release.Release{
		Name: name, Namespace: w.namespace, Version: 1, Info: &release.Info{Status: common.StatusDeployed},
		Labels: map[string]string{carrier.OwnerLabel: mark, carrier.ServiceLabel: name, carrier.ServiceNamespaceLabel: w.namespace},
		Hooks: []*release.Hook{{
			Name: name, Kind: "ClusterRoleBinding", Path: "app/templates/hook.yaml", Events: []release.HookEvent{release.HookPreDelete},
			Manifest: "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: " + w.namespace + "-" + name + "}\n" +
				"roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}\n" +
				"subjects: [{kind: ServiceAccount, namespace: " + w.namespace + ", name: deployer}]\n",
		}},
	}
	if err := driver.NewSecrets(set.CoreV1().Secrets(w.namespace)).Create("sh.helm.release.v1."+name+".v1", forged); err != nil {
		w.t.Fatal(err)
	}
}

func TestAForgedReleaseRunsNothing(t *testing.T) {
	w := newPlatform(t)
	w.useEast()
	w.tenant()
	w.charts(map[string][]byte{"app-1.0.0.tgz": chartOf(t, "app", "1.0.0", nil)})
	service := w.service("app", "app-1.0.0")
	service.ServiceAccountName = "deployer"
	w.set("a", "east", service)
	w.settle("a", "app Deployed")
	page := &corev1.ConfigMap{}
	if err := w.east.Get(t.Context(), client.ObjectKey{Namespace: w.namespace, Name: "app-page"}, page); err != nil {
		t.Fatal(err)
	}
	w.requests.drain()
	for name, begin := range map[string]func(){
		"at-once":                      func() {},
		"after-the-status-was-written": func() { w.tellOnly("a"); w.restart() },
	} {
		w.forge(name, page.Labels[carrier.OwnerLabel])
		w.restart()
		begin()
		w.settle("a", "app Deployed")
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "sh.helm.release.v1." + name + ".v1"}}
		if err := w.east.Get(t.Context(), client.ObjectKeyFromObject(secret), secret); !apierrors.IsNotFound(err) {
			t.Errorf("%s: the forged release is there still: %v", name, err)
		}
	}
	says(t, w.all.String(), "the hooks of the Helm release "+w.namespace+"/at-once are not run")
	for _, sent := range w.requests.drain() {
		if strings.Contains(sent, "clusterrolebindings") && !strings.HasPrefix(sent, http.MethodGet) {
			t.Errorf("there was %s", sent)
		}
	}
}

// TestAnAccountIsOfTheNamespaceOfTheSet holds that nobody gets the rights of another namespace by having a service go there.
func TestAnAccountIsOfTheNamespaceOfTheSet(t *testing.T) {
	w := newPlatform(t)
	w.useEast()
	w.tenant()
	other := w.namespace + "-other"
	w.tenantOf(other) // whose deployer may do there what the service does
	t.Cleanup(func() {
		if err := w.east.Delete(context.WithoutCancel(t.Context()), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: other}}); err != nil {
			t.Error(err)
		}
	})
	actors := w.actors()
	w.manifests("page", configMapText("page", "hello"))
	service := w.service("page", "page")
	service.Namespace, service.ServiceAccountName = other, "deployer"
	w.set("a", "east", service)
	w.settle("a", "page Failed")
	says(t, failures(w.get("a")), "the service account "+w.namespace+"/deployer lacks a right")
	if got := actors(); slices.Contains(got, "system:serviceaccount:"+other+":deployer") {
		t.Errorf("there were writes as %q", got)
	}
}

// TestAServiceWithAnAccountIsLookedAtWithItsRights holds that what the watches of others have shown is not shown to it.
func TestAServiceWithAnAccountIsLookedAtWithItsRights(t *testing.T) {
	w := newPlatform(t)
	w.useEast()
	w.tenant()
	w.manifests("page", configMapText("page", "hello"))
	service := w.service("page", "page")
	service.ServiceAccountName = "deployer"
	w.set("a", "east", service)
	w.settle("a", "page Deployed")
	w.quiet("a")
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "deployer"}}
	if err := w.east.Get(t.Context(), client.ObjectKeyFromObject(role), role); err != nil {
		t.Fatal(err)
	}
	role.Rules = []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: role.Rules[0].Verbs},
		{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"create", "update", "patch", "delete"}},
	}
	if err := w.east.Update(t.Context(), role); err != nil {
		t.Fatal(err)
	}
	operatortest.Eventually(t, "it can't be looked at", func() error {
		if _, err := w.step("a"); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `resource "configmaps"`) {
			return fmt.Errorf("the error is another one: %w", err)
		}
		return nil
	})
}
