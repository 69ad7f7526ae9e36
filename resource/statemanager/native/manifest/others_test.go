package manifest_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/manifest"
)

func TestObjectsOfOthersAreRefused(t *testing.T) {
	k := newKit(t)
	k.settle(k.service(files{"a.yaml": configMap("of-service", "1")}, named("first")))
	controlled := true
	boss := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: k.namespace, Name: "boss"}}
	k.create(boss)
	for name, metadata := range map[string]metav1.ObjectMeta{
		"of-release": {Annotations: map[string]string{"meta.helm.sh/release-name": "redis"}},
		"of-flux":    {Labels: map[string]string{"kustomize.toolkit.fluxcd.io/name": "infra"}},
		"of-argo":    {Annotations: map[string]string{"argocd.argoproj.io/tracking-id": "shop:x"}},
		"of-applier": {Labels: map[string]string{"applyset.kubernetes.io/part-of": "applyset-1"}},
		"of-controller": {OwnerReferences: []metav1.OwnerReference{{
			APIVersion: "v1", Kind: "ConfigMap", Name: "boss", UID: boss.UID, Controller: &controlled,
		}}},
	} {
		metadata.Namespace, metadata.Name = k.namespace, name
		k.create(&corev1.ConfigMap{ObjectMeta: metadata})
	}
	for name, owner := range map[string]string{
		"of-service": "the service " + k.namespace + "/first", "of-release": "the Helm release redis", "of-flux": "the Kustomization infra of Flux",
		"of-argo": "the Application shop:x of Argo CD", "of-applier": "the apply set applyset-1", "of-controller": "ConfigMap boss, which controls it",
	} {
		err := k.refused(k.service(files{"x.yaml": configMap(name, "2")}))
		var refused *manifest.RefusedError
		if !errors.As(err, &refused) || !strings.Contains(err.Error(), owner) || !strings.Contains(err.Error(), name+" of x.yaml") {
			t.Errorf("%s is refused with %v, want the owner %s, the object and its file", name, err, owner)
		}
	}
}

func TestObjectOfNobodyIsTakenOverUnlessItDiffers(t *testing.T) {
	k := newKit(t)
	k.create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: k.namespace, Name: "a"}, Data: map[string]string{"text": "1"}})
	err := k.refused(k.service(files{"x.yaml": configMap("a", "2")}))
	var conflict *manifest.ConflictError
	if !errors.As(err, &conflict) || conflict.Managers[0] != "kubectl" || conflict.Fields[0] != "data.text" {
		t.Errorf("the error is %v", err)
	}
	k.settle(k.service(files{"x.yaml": configMap("a", "1")}))
	if k.configMap("a").Labels[carrier.ServiceLabel] != "web" {
		t.Error("it was not taken over")
	}
}

func TestOwnFieldsAreTakenBackUnlessConflictsStop(t *testing.T) {
	k := newKit(t)
	k.settle(k.service(files{"a.yaml": configMap("a", "1")}))
	k.patch(k.configMap("a"), `{"data":{"text":"theirs"}}`)
	err := k.refused(k.service(files{"a.yaml": configMap("a", "2")}, stopOnConflict))
	var conflict *manifest.ConflictError
	if !errors.As(err, &conflict) || conflict.Managers[0] != "kubectl-edit" {
		t.Errorf("the error is %v", err)
	}
	k.settle(k.service(files{"a.yaml": configMap("a", "2")}))
	if k.configMap("a").Data["text"] != "2" {
		t.Error("it was not taken back")
	}
}

func TestPruningLeavesWhatIsOfOthers(t *testing.T) {
	k := newKit(t)
	kept := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: kept, annotations: {services.operatorkit.io/prune: disabled}}\n"
	k.settle(k.service(files{"a.yaml": configMap("a", "1"), "b.yaml": configMap("taken", "1"), "c.yaml": kept, "d.yaml": configMap("d", "1")}))
	k.patch(k.configMap("taken"), `{"metadata":{"labels":{"services.operatorkit.io/service":"another"}}}`)
	s := k.service(files{"a.yaml": configMap("a", "1")})
	result := k.compute(s)
	k.wants(result.Changes, "delete ConfigMap d", "update ConfigMap kept")
	if len(result.Notes) != 2 {
		t.Errorf("notes: %q", result.Notes)
	}
	k.settle(s)
	if !k.exists("taken", &corev1.ConfigMap{}) || k.configMap("kept").Labels[carrier.OwnerLabel] != "" {
		t.Error("taken should be there, and kept be let go")
	}
}

func TestServiceChangesHandsWithoutBeingRendered(t *testing.T) {
	k := newKit(t)
	first := k.service(files{"a.yaml": configMap("a", "1")})
	k.settle(first)
	uid := k.configMap("a").UID
	second := k.service(files{"a.yaml": configMap("a", "1")}, ownedBy("other", "2"))
	result := k.compute(second)
	k.wants(result.Changes, "update ConfigMap a")
	k.carryOut(second, result)
	k.wants(k.compute(second).Changes)
	if second.Source.(*source).calls != 0 {
		t.Error("it was rendered anew")
	}
	if a := k.configMap("a"); a.UID != uid || a.Labels[carrier.OwnerLabel] != second.Owner.ID() {
		t.Errorf("it is %s with the labels %v", a.UID, a.Labels)
	}
	result = k.compute(gone(first))
	k.wants(result.Changes)
	if result.Found != nil || len(result.Notes) != 1 {
		t.Errorf("to its first owner it is still %v, with the notes %q", result.Found, result.Notes)
	}
}

func TestFinalizerHoldsRemovalAndWhatComesAfter(t *testing.T) {
	k := newKit(t)
	s := k.service(files{
		"ingress.yaml": "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: web, finalizers: [example.com/hold]}\n" +
			"spec: {defaultBackend: {service: {name: web, port: {number: 80}}}}\n",
		"deployment.yaml": deployment("web", "registry.example.com/web:1"),
	})
	k.settle(s)
	result := k.compute(gone(s))
	k.wants(result.Changes, "delete Ingress web", "delete Deployment web")
	k.carryOut(gone(s), result)
	result = k.compute(gone(s))
	k.wants(result.Changes)
	k.wantsPhase(result, v1alpha1.ServiceStateDeleting)
	if !strings.Contains(result.Health.Message, "Ingress.networking.k8s.io "+k.namespace+"/web is being deleted, and waits for example.com/hold") {
		t.Errorf("the message is %q", result.Health.Message)
	}
	if !k.exists("web", &appsv1.Deployment{}) {
		t.Error("the deployment, which may have to remove the finalizer, is gone before")
	}
	ingress := ingressOf(k, "web")
	k.patch(ingress, `{"metadata":{"finalizers":null}}`)
	operatortest.Eventually(t, "the service is gone", func() bool {
		result := k.compute(gone(s))
		if len(result.Changes) > 0 {
			k.carryOut(gone(s), result)
		}
		return result.Found == nil
	})
	if k.exists("web", &appsv1.Deployment{}) {
		t.Error("the deployment is left")
	}
}

func TestNamespaceWithAnotherServiceStays(t *testing.T) {
	k := newKit(t)
	shared := k.namespace + "-shared"
	s := k.service(files{"ns.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: {name: " + shared + "}\n"})
	k.settle(s)
	other := k.service(files{"a.yaml": configMap("a", "1")}, named("other"))
	other.Key.Namespace = shared
	k.settle(other)
	result := k.compute(gone(s))
	k.wants(result.Changes, "update Namespace "+shared)
	k.carryOut(gone(s), result)
	var namespace corev1.Namespace
	if err := k.user.Get(t.Context(), client.ObjectKey{Name: shared}, &namespace); err != nil || namespace.DeletionTimestamp != nil ||
		namespace.Labels[carrier.OwnerLabel] != "" {
		t.Errorf("the namespace should stay and be let go: %v, %v", namespace.ObjectMeta, err)
	}
}

func TestNamespaceOfItsOwnGoesLast(t *testing.T) {
	if testing.Short() {
		t.Skip("left to make test-all: it waits for the controller of namespaces")
	}
	k := newKit(t)
	own := k.namespace + "-own"
	s := k.service(files{"ns.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: {name: " + own + "}\n", "a.yaml": configMap("a", "1")})
	s.Key.Namespace = own
	result := k.compute(s)
	k.wants(result.Changes, "create Namespace "+own, "create ConfigMap a")
	k.settle(s)
	operatortest.Eventually(t, "the service is gone", func() bool {
		result := k.compute(gone(s))
		if len(result.Changes) > 0 {
			k.carryOut(gone(s), result)
		}
		return result.Found == nil
	})
	operatortest.Eventually(t, "its namespace is gone", func() bool {
		return client.IgnoreNotFound(k.user.Get(t.Context(), keyOf("", own), &corev1.Namespace{})) == nil &&
			k.user.Get(t.Context(), keyOf("", own), &corev1.Namespace{}) != nil
	})
}

func TestNamespaceThatIsTerminatingIsWaitedFor(t *testing.T) {
	if testing.Short() {
		t.Skip("left to make test-all: it waits for the controller of namespaces")
	}
	k := newKit(t)
	ending := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: k.namespace + "-ending", Finalizers: []string{"example.com/hold"}}}
	k.create(ending)
	if err := k.user.Delete(t.Context(), ending); err != nil {
		t.Fatal(err)
	}
	s := k.service(files{"a.yaml": configMap("a", "1")})
	s.Key.Namespace = ending.Name
	result := k.compute(s)
	k.wants(result.Changes)
	k.wantsPhase(result, v1alpha1.ServiceStateProvisioning)
	if result.Requeue == 0 || !strings.Contains(result.Health.Message, "the namespace "+ending.Name+" is being deleted") {
		t.Errorf("the message is %q, and it is looked at again after %s", result.Health.Message, result.Requeue)
	}
	k.patch(ending, `{"metadata":{"finalizers":null}}`)
	operatortest.Eventually(t, "the service is there", func() error {
		result, err := k.carrier.Compute(t.Context(), k.cluster, k.cluster.client, s)
		if err == nil && len(result.Changes) > 0 {
			// What is put into the new namespace is refused while the API server knows the old one.
			err = k.carrier.CarryOut(t.Context(), k.cluster, s, result)
		}
		if err == nil && result.Health.Phase != v1alpha1.ServiceStateDeployed {
			err = fmt.Errorf("it is %+v", result.Health)
		}
		return err
	})
}

func TestARepairThatIsRefusedTellsOfAllObjects(t *testing.T) {
	k := newKit(t)
	content := files{"a.yaml": configMap("a", "1"), "b.yaml": configMap("b", "1")}
	k.settle(k.service(content))
	for _, name := range []string{"a", "b"} {
		k.patch(k.configMap(name), `{"data":{"text":"theirs"}}`)
	}
	err := k.refused(k.service(content, mode(v1alpha1.SyncModeContinuousWithDriftDetection), stopOnConflict))
	for _, file := range []string{"a of a.yaml", "b of b.yaml"} {
		if err == nil || !strings.Contains(err.Error(), file) {
			t.Errorf("%s is not told by %v", file, err)
		}
	}
}
