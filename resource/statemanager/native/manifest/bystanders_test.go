package manifest_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/manifest"
)

func namespaceManifest(name string) string {
	return "apiVersion: v1\nkind: Namespace\nmetadata: {name: " + name + "}\n"
}

func in(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

// staysWith expects that a plan leaves a namespace where it is, and says why.
func (k *kit) staysWith(result *carrier.Result, action plan.Action, namespace string, reasons ...string) {
	k.t.Helper()
	for _, change := range result.Changes {
		if change.Object.Kind == "Namespace" && change.Object.Name == namespace && change.Action != action {
			k.t.Errorf("the plan is to %s the namespace", change.Action)
		}
	}
	notes := strings.Join(result.Notes, "\n")
	for _, reason := range append([]string{"Namespace " + namespace + " stays, because "}, reasons...) {
		if !strings.Contains(notes, reason) {
			k.t.Errorf("the notes do not say %q: %s", reason, notes)
		}
	}
}

func (k *kit) namespaceStands(name string) {
	k.t.Helper()
	var namespace corev1.Namespace
	if err := k.user.Get(k.t.Context(), client.ObjectKey{Name: name}, &namespace); err != nil || namespace.DeletionTimestamp != nil {
		k.t.Errorf("the namespace %s is deleted: %v", name, err)
	}
}

func TestNamespaceWithAnythingOfOthersStays(t *testing.T) {
	k := newKit(t)
	k.settle(k.service(files{"crd.yaml": k.widgets()}, named("kinds")))
	for name, stranger := range map[string]struct {
		make func(namespace string)
		says string
	}{
		"person": {func(namespace string) {
			k.create(&corev1.ConfigMap{ObjectMeta: in(namespace, "settings")})
		}, "ConfigMap settings"},
		"claim": {func(namespace string) {
			k.create(&corev1.PersistentVolumeClaim{ObjectMeta: in(namespace, "data-web-0"), Spec: corev1.PersistentVolumeClaimSpec{
				AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{"storage": resource.MustParse("1Gi")}},
			}})
		}, "PersistentVolumeClaim data-web-0"},
		"custom": {func(namespace string) {
			widget := k.widgetNamed("theirs")
			widget.SetNamespace(namespace)
			k.create(widget)
		}, "Widget." + k.namespace + ".example.com theirs"},
		"neighbour": {func(namespace string) {
			k.settle(k.service(files{"a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: " + namespace + "}\n"}, named("beside")))
		}, "ConfigMap a (of service " + k.namespace + "/beside)"},
		"owned": {func(namespace string) {
			owner := &corev1.Secret{ObjectMeta: in(namespace, "theirs")}
			k.create(owner)
			owned := &corev1.ConfigMap{ObjectMeta: in(namespace, "of-theirs")}
			owned.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Secret", Name: owner.Name, UID: owner.UID}}
			k.create(owned)
		}, "ConfigMap of-theirs"},
		"many": {func(namespace string) {
			for i := range 5 {
				k.create(&corev1.ConfigMap{ObjectMeta: in(namespace, fmt.Sprintf("c%d", i))})
			}
		}, "ConfigMap c0, ConfigMap c1, ConfigMap c2, more"},
	} {
		shared := k.namespace + "-" + name
		s := k.service(files{"ns.yaml": namespaceManifest(shared), "a.yaml": configMap("a-"+name, "1")}, named(name))
		k.settle(s)
		stranger.make(shared)
		for what, next := range map[string]*carrier.Service{
			"taken away": gone(s), "pruned": k.service(files{"a.yaml": configMap("a-"+name, "1")}, named(name)),
		} {
			t.Run(name+" "+what, func(t *testing.T) {
				k := *k
				k.t = t
				k.staysWith(k.compute(next), plan.Update, shared, stranger.says)
			})
		}
		k.settle(gone(s))
		k.namespaceStands(shared)
	}
}

// TestNamespaceWithWhatIsKeptInItStays: an object that is let go would be deleted with its namespace all the same.
func TestNamespaceWithWhatIsKeptInItStays(t *testing.T) {
	k := newKit(t)
	own := k.namespace + "-own"
	s := k.service(files{"ns.yaml": namespaceManifest(own), "a.yaml": "apiVersion: v1\nkind: ConfigMap\n" +
		"metadata: {name: a, namespace: " + own + ", annotations: {services.operatorkit.io/prune: disabled}}\n"})
	k.settle(s)
	k.staysWith(k.compute(gone(s)), plan.Update, own, "ConfigMap a")
	k.settle(gone(s))
	k.namespaceStands(own)
}

func TestNamespaceWithNothingOfOthersGoes(t *testing.T) {
	k := newKit(t)
	own := k.namespace + "-own"
	s := k.service(files{"ns.yaml": namespaceManifest(own), "a.yaml": configMap("a", "1"), "role.yaml": "apiVersion: rbac.authorization.k8s.io/v1\n" +
		"kind: ClusterRole\nmetadata: {name: " + own + "}\nrules: []\n"})
	s.Key.Namespace = own
	k.settle(s)
	a := &corev1.ConfigMap{}
	role := &rbacv1.ClusterRole{}
	for key, object := range map[client.ObjectKey]client.Object{keyOf(own, "a"): a, keyOf("", own): role} {
		if err := k.user.Get(t.Context(), key, object); err != nil {
			t.Fatal(err)
		}
	}
	owned := func(name string, owner client.Object, kind, apiVersion string) metav1.ObjectMeta {
		meta := in(own, name)
		meta.OwnerReferences = []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: owner.GetName(), UID: owner.GetUID()}}
		return meta
	}
	child := &corev1.Secret{ObjectMeta: owned("child", a, "ConfigMap", "v1")}
	k.create(child)
	account := &corev1.ServiceAccount{ObjectMeta: in(own, "default")}
	if err := client.IgnoreAlreadyExists(k.user.Create(t.Context(), account)); err != nil {
		t.Fatal(err)
	}
	if err := k.user.Get(t.Context(), client.ObjectKeyFromObject(account), account); err != nil {
		t.Fatal(err)
	}
	for _, object := range []client.Object{
		&corev1.ConfigMap{ObjectMeta: owned("grandchild", child, "Secret", "v1")},
		&corev1.ConfigMap{ObjectMeta: owned("of-role", role, "ClusterRole", "rbac.authorization.k8s.io/v1")},
		&corev1.ConfigMap{ObjectMeta: in(own, "kube-root-ca.crt")},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: own, Name: "default-token", Annotations: map[string]string{
			corev1.ServiceAccountNameKey: account.Name, corev1.ServiceAccountUIDKey: string(account.UID),
		}}, Type: corev1.SecretTypeServiceAccountToken},
		&corev1.Event{ObjectMeta: in(own, "event"), InvolvedObject: corev1.ObjectReference{Namespace: own, Name: "a"}},
		&coordinationv1.Lease{ObjectMeta: in(own, "lease")},
		&discoveryv1.EndpointSlice{ObjectMeta: owned("slice", a, "ConfigMap", "v1"), AddressType: discoveryv1.AddressTypeIPv4},
	} {
		if err := client.IgnoreAlreadyExists(k.user.Create(t.Context(), object)); err != nil {
			t.Fatal(err)
		}
	}
	result := k.compute(gone(s))
	k.wants(result.Changes, "delete ConfigMap a", "delete ClusterRole "+own, "delete Namespace "+own)
	if len(result.Notes) > 0 {
		t.Errorf("notes: %q", result.Notes)
	}
}

// TestNamespaceOfWhichSomethingCanNotBeListedStays: what is in it can't be known.
func TestNamespaceOfWhichSomethingCanNotBeListedStays(t *testing.T) {
	k := newKit(t)
	own := k.namespace + "-own"
	s := k.service(files{"ns.yaml": namespaceManifest(own)})
	k.settle(s)

	server := operatortest.Start(t)
	server.Permit(t, k.namespace, rbacv1.PolicyRule{
		APIGroups: []string{""}, Resources: []string{"namespaces", "secrets", "configmaps", "serviceaccounts"}, Verbs: []string{"*"},
	})
	tenant, config := *k, rest.CopyConfig(server.RESTConfig())
	config.Impersonate.UserName = k.namespace
	var err error
	if tenant.cluster, err = newCluster(config); err != nil {
		t.Fatal(err)
	}
	tenant.staysWith(tenant.compute(gone(s)), plan.Update, own, "other objects in it can't be ruled out: ", "can't be listed (", "is forbidden")

	group := k.namespace + ".example.org"
	api := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": map[string]any{"name": "v1." + group},
		"spec": map[string]any{
			"group": group, "version": "v1", "groupPriorityMinimum": int64(10), "versionPriority": int64(10), "insecureSkipTLSVerify": true,
			"service": map[string]any{"namespace": k.namespace, "name": "nowhere"},
		},
	}}
	k.create(api)
	deleteAPI := func() { _ = k.user.Delete(t.Context(), api) }
	operatortest.Eventually(t, "the plan says that an API is down", func() error {
		if result := k.compute(gone(s)); !strings.Contains(strings.Join(result.Notes, "\n"), "the API "+group+"/v1 is not available") {
			return fmt.Errorf("the notes are %q, the changes %q", result.Notes, told(result.Changes))
		}
		return nil
	})
	k.staysWith(k.compute(gone(s)), plan.Update, own)
	deleteAPI()
	operatortest.Eventually(t, "the namespace goes when the API is gone", func() bool {
		return len(k.compute(gone(s)).Notes) == 0
	})
}

func TestWhatOthersPutIntoANamespaceAfterThePlanKeepsIt(t *testing.T) {
	k := newKit(t)
	own := k.namespace + "-own"
	s := k.service(files{"ns.yaml": namespaceManifest(own)})
	k.settle(s)
	result := k.compute(gone(s))
	k.wants(result.Changes, "delete Namespace "+own)
	k.create(&corev1.ConfigMap{ObjectMeta: in(own, "late")})
	if err := k.carrier.CarryOut(t.Context(), k.cluster, gone(s), result); err == nil || !strings.Contains(err.Error(), "ConfigMap late") {
		t.Errorf("the error is %v", err)
	}
	k.settle(gone(s))
	k.namespaceStands(own)
	if k.exists(manifest.InventoryPrefix+"web", &corev1.Secret{}) {
		t.Error("the service is still there")
	}
}

// TestDefinitionIsNotHeldByWhatGoesWithTheService: objects that the objects of the service own are deleted with these.
func TestDefinitionIsNotHeldByWhatGoesWithTheService(t *testing.T) {
	k := newKitWith(t, manifest.Config{DefinitionTimeout: 5 * time.Minute})
	definition := "widgets." + k.namespace + ".example.com"
	s := k.service(files{"crd.yaml": k.widgets(), "a.yaml": k.widget("a")})
	k.settle(s)
	a := fetchAs(k, "a", k.widgetNamed("a"))
	child := k.widgetNamed("child")
	child.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: a.GetAPIVersion(), Kind: a.GetKind(), Name: "a", UID: a.GetUID()}})
	k.create(child)
	k.wants(k.compute(gone(s)).Changes, "delete Widget a", "delete CustomResourceDefinition "+definition)
}
