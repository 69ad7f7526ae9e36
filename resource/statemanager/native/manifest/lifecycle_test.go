package manifest_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/manifest"
)

func TestServiceComesChangesAndGoes(t *testing.T) {
	k := newKit(t)
	one := k.service(files{"b.yaml": configMap("b", "1"), "a.yaml": configMap("a", "1") + "---\n" + configMap("z", "1"), "README.md": "no"})

	result := k.compute(one)
	k.wants(result.Changes, "create ConfigMap a", "create ConfigMap z", "create ConfigMap b")
	if result.Found != nil || k.faults.Count() > 0 {
		t.Errorf("computing found %v, and wrote %v", result.Found, k.faults.Writes())
	}
	k.carryOut(one, result)
	result = k.compute(one)
	k.wants(result.Changes)
	k.wantsPhase(result, v1alpha1.ServiceStateDeployed)
	want := &carrier.Found{
		Key: one.Key, Owner: one.Owner, Template: "web-1", Version: "1.0.0", Fingerprint: one.Fingerprint,
		Type: v1alpha1.ServiceTypeResource, Kinds: []schemaGVK{corev1.SchemeGroupVersion.WithKind("ConfigMap")},
	}
	want.Seal = result.Found.Seal // another one each time
	if diff := cmp.Diff(want, result.Found); diff != "" {
		t.Errorf("what is found (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(carrier.LabelsOf(one), k.configMap("a").Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}

	two := k.service(files{"a.yaml": configMap("a", "2"), "c.yaml": configMap("c", "1")})
	result = k.compute(two)
	k.wants(result.Changes, "update ConfigMap a", "create ConfigMap c", "delete ConfigMap b", "delete ConfigMap z")
	k.carryOut(two, result)
	k.wants(k.compute(two).Changes)
	if k.exists("b", &corev1.ConfigMap{}) || k.configMap("a").Data["text"] != "2" {
		t.Error("b should be gone, and a be new")
	}

	result = k.compute(gone(two))
	k.wants(result.Changes, "delete ConfigMap c", "delete ConfigMap a")
	k.wantsPhase(result, v1alpha1.ServiceStateDeleting)
	k.carryOut(gone(two), result)
	if result = k.compute(gone(two)); result.Found != nil || len(result.Changes) > 0 {
		t.Errorf("after it is taken away there is %v, and %v to do", result.Found, told(result.Changes))
	}
	if k.exists("a", &corev1.ConfigMap{}) || k.exists(manifest.InventoryPrefix+"web", &corev1.Secret{}) {
		t.Error("something is left")
	}
}

func TestFieldsThatAreLeftOutGo(t *testing.T) {
	k := newKit(t)
	k.settle(k.service(files{"a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {x: '1', y: '1'}"}))
	k.patch(k.configMap("a"), `{"data":{"theirs":"1"}}`)
	k.settle(k.service(files{"a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {x: '1'}"}))
	if diff := cmp.Diff(map[string]string{"x": "1", "theirs": "1"}, k.configMap("a").Data); diff != "" {
		t.Errorf("data (-want +got):\n%s", diff)
	}
}

func TestNamespaceOfServiceIsMadeAndStays(t *testing.T) {
	k := newKit(t)
	s := k.service(files{"a.yaml": configMap("a", "1")})
	s.Key.Namespace = k.namespace + "-more"
	result := k.compute(s)
	k.wants(result.Changes, "create Namespace "+s.Key.Namespace, "create ConfigMap a")
	k.carryOut(s, result)
	k.wantsPhase(k.compute(s), v1alpha1.ServiceStateDeployed)
	k.settle(gone(s))
	if k.user.Get(t.Context(), keyOf("", s.Key.Namespace), &corev1.Namespace{}) != nil {
		t.Error("the namespace is gone, with whatever others have put there")
	}
}

func TestObjectsWithoutNamespace(t *testing.T) {
	k := newKit(t)
	role := k.namespace + "-reader"
	s := k.service(files{"role.yaml": "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: " + role +
		", namespace: nonsense}\nrules: []\n", "a.yaml": configMap("a", "1")})
	result := k.compute(s)
	k.wants(result.Changes, "create ClusterRole "+role, "create ConfigMap a")
	k.carryOut(s, result)
	k.wants(k.compute(s).Changes)
	k.settle(gone(s))
	if k.user.Get(t.Context(), keyOf("", role), &rbacv1.ClusterRole{}) == nil {
		t.Error("the cluster role is still there")
	}
}

func TestNothingIsFetchedForWhatIsThere(t *testing.T) {
	k := newKit(t)
	s := k.service(files{"a.yaml": configMap("a", "1")})
	k.settle(s)
	calls := s.Source.(*source).calls
	k.compute(s)
	if s.Source.(*source).calls != calls {
		t.Error("the source was asked for what is on the cluster already")
	}
}

func TestListFindsServicesOfOwner(t *testing.T) {
	k := newKit(t)
	mine := []option{ownedBy("list-"+k.namespace, "1")}
	web := k.service(files{"a.yaml": configMap("a", "1")}, mine...)
	other := k.service(files{"b.yaml": configMap("b", "1")}, append(slices.Clone(mine), named("other"))...)
	k.settle(web)
	k.settle(other)
	k.settle(k.service(files{"c.yaml": configMap("c", "1")}, named("third")))
	unreadable := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "list-" + k.namespace, Labels: map[string]string{
		manifest.InventoryLabel: "manifest", carrier.OwnerLabel: web.Owner.ID(), carrier.ServiceLabel: "lost",
	}}}
	k.create(unreadable)
	t.Cleanup(func() { _ = k.user.Delete(context.Background(), unreadable) })
	found, err := k.carrier.List(t.Context(), k.cluster, web.Owner)
	if err != nil {
		t.Fatal(err)
	}
	if len(found) != 3 || found[0].Key != keyOf("default", "lost") || found[0].Unreadable == nil || !strings.Contains(found[0].Unreadable.Error(), "Secret default/list-") {
		t.Fatalf("found %+v", found)
	}
	found = found[1:]
	want := []carrier.Found{*k.compute(other).Found, *k.compute(web).Found}
	for i := range want {
		want[i].Fingerprint = "" // of which a list knows the seal only
	}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Errorf("found (-want +got):\n%s", diff)
	}
}

func TestRequestsWhereNothingChanges(t *testing.T) {
	k := newKit(t)
	content := files{}
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		content[name+".yaml"] = configMap(name, "1")
	}
	s := k.service(content)
	k.settle(s)
	before := k.requests.Load()
	if _, err := k.carrier.Compute(t.Context(), k.cluster, k.user, s); err != nil { // k.user stands for the watches here: it is not counted.
		t.Fatal(err)
	}
	if n := k.requests.Load() - before; n != 1 {
		t.Errorf("%d requests where nothing changes, want 1", n)
	}
}
