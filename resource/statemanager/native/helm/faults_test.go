package helm_test

import (
	"net/http"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/helm"
)

func TestAnUpgradeThatFailsIsNotTakenBackUnlessAskedFor(t *testing.T) {
	k := newKit(t, helm.Config{})
	k.settle(k.service(pageChart("1.0.0")))
	bad := k.service(jobChart(`{"helm.sh/hook": post-upgrade}`).with("templates/extra.yaml", extraTemplate))
	k.begins(bad)
	k.ends(batchv1.JobFailed, "the pod gave up")
	err := k.goesOn(bad)
	says(t, err, "release "+k.namespace+"/web", "post-upgrade", "hook Job "+k.namespace+"/migrate", "the pod gave up")
	if framework.IsPermanent(err) {
		t.Errorf("it is not tried again: %v", err)
	}
	equal(t, "the revisions", k.statuses("web"), []string{"1 deployed", "2 failed"})
	if k.configMap("web-extra") == nil {
		t.Error("what the upgrade has put there is gone")
	}
	bad.Failure = &carrier.Failure{Message: err.Error()}
	result := k.compute(bad)
	if result.Health.Phase != v1alpha1.ServiceStateFailed || !strings.Contains(result.Health.Message, "the pod gave up") || len(result.Changes) == 0 {
		t.Errorf("it is %+v, with %d changes", result.Health, len(result.Changes))
	}
	k.settle(k.service(pageChart("1.0.1")))
	equal(t, "the revisions after the repair", k.statuses("web"), []string{"1 superseded", "2 failed", "3 deployed"})
	if k.configMap("web-extra") != nil {
		t.Error("what the failed upgrade has put there is there still")
	}
}

func TestANamespaceThatGoesWhileSomethingIsPutThereIsToldAndWaitedFor(t *testing.T) {
	if testing.Short() {
		t.Skip("left to make test-all: it waits for the controller of namespaces")
	}
	k := newKit(t, helm.Config{})
	name := k.namespace + "-going"
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Finalizers: []string{"example.com/wait"}}}
	if err := k.user.Create(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	service := serviceIn(t, name, pageChart("1.0.0"), options(v1alpha1.ServiceHelmOptions{Atomic: pointer(true)}))
	result := k.compute(service)
	if err := k.user.Delete(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	err := k.carrier.CarryOut(t.Context(), k.cluster, service, result)
	says(t, err, "release "+name+"/web", "namespace "+name, "being terminated")
	if framework.IsPermanent(err) {
		t.Errorf("it is not tried again: %v", err)
	}
	if result := k.compute(service); len(result.Changes) > 0 || !strings.Contains(result.Health.Message, "waits until the namespace "+name+" is gone") {
		t.Errorf("it is not waited for: %+v", result)
	}
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))
	if err := k.user.Patch(t.Context(), namespace, patch); err != nil {
		t.Fatal(err)
	}
	k.eventually(service, "it is there", func(r *carrier.Result) bool { return r.Found != nil && r.Found.Fingerprint == service.Fingerprint })
	if err := k.user.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
		t.Fatal(err)
	}
}

func TestWhyAnObjectCouldNotBeDeletedIsTold(t *testing.T) {
	k := newKit(t, helm.Config{})
	k.settle(k.service(pageChart("1.0.0")))
	k.faults.On(func(r operatortest.Request) bool { return r.Method == http.MethodDelete && r.Name == "web-page" },
		operatortest.InternalError()).Times(1)
	removal := k.service(nil, gone)
	err := k.carrier.CarryOut(t.Context(), k.cluster, removal, k.compute(removal))
	says(t, err, "release "+k.namespace+"/web: uninstall: delete ConfigMap "+k.namespace+"/web-page: ", "Internal")
	k.eventually(removal, "it is gone", func(r *carrier.Result) bool { return r.Found == nil })
	if k.configMap("web-page") != nil {
		t.Error("it is there still")
	}
}

func TestARemovalWhoseHookFailsSaysSoAndIsTriedAgain(t *testing.T) {
	k := newKit(t, helm.Config{})
	k.settle(k.service(jobChart(`{"helm.sh/hook": pre-delete}`)))
	removal := k.service(nil, gone)
	result := k.compute(removal)
	equal(t, "notes", result.Notes, []string{"runs the hook pre-delete: Job migrate"})
	k.begins(removal)
	k.ends(batchv1.JobFailed, "the pod gave up")
	says(t, k.goesOn(removal), "uninstall", "hook Job "+k.namespace+"/migrate", "the pod gave up")
	if k.configMap("web-page") == nil {
		t.Error("its objects are gone, although what comes before has failed")
	}
	k.begins(removal)
	k.ends(batchv1.JobComplete, "")
	k.eventually(removal, "it is gone", func(r *carrier.Result) bool { return r.Found == nil })
}

func TestARemovalLeavesAnObjectThatIsNotTheReleasesAnyMore(t *testing.T) {
	k := newKit(t, helm.Config{})
	k.settle(k.service(pageChart("1.0.0").with("templates/extra.yaml", extraTemplate)))
	k.edit("web-page", `{"metadata":{"annotations":{"meta.helm.sh/release-name":"other"}}}`)
	removal := k.service(nil, gone)
	equal(t, "the plan", summary(k.compute(removal).Changes), []string{"delete ConfigMap web-extra", "update HelmRelease web"})
	k.eventually(removal, "it is gone", func(r *carrier.Result) bool { return r.Found == nil })
	if k.configMap("web-page") == nil || k.configMap("web-extra") != nil {
		t.Error("web-page should be there, and web-extra should not")
	}
}

func TestAHookNeverReplacesAnObjectOfSomebodyElse(t *testing.T) {
	k := newKit(t, helm.Config{})
	mine := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: k.namespace, Name: "web-hook"}, Data: map[string]string{"version": "mine"}}
	if err := k.user.Create(t.Context(), mine); err != nil {
		t.Fatal(err)
	}
	service := k.service(hookChart("1.0.0"))
	if err := k.failure(service, "ConfigMap "+k.namespace+"/web-hook is there already", "rename the hook"); !carrier.IsConflict(err) {
		t.Errorf("it is no conflict: %v", err)
	}
	if err := k.user.Delete(t.Context(), mine); err != nil {
		t.Fatal(err)
	}
	// It comes when all is planned.
	for _, policy := range []string{"before-hook-creation", "hook-succeeded"} {
		chart := hookChart("1.0.0")
		chart["templates/hook.yaml"] = strings.Replace(chart["templates/hook.yaml"], `"helm.sh/hook":`, `"helm.sh/hook-delete-policy": `+policy+`, "helm.sh/hook":`, 1)
		service = k.service(chart)
		result := k.compute(service)
		mine.ResourceVersion = ""
		if err := k.user.Create(t.Context(), mine); err != nil {
			t.Fatal(err)
		}
		says(t, k.carrier.CarryOut(t.Context(), k.cluster, service, result), "ConfigMap "+k.namespace+"/web-hook is there already")
		if text := k.configMap("web-hook").Data["version"]; text != "mine" {
			t.Errorf("it says %q", text)
		}
		if err := k.user.Delete(t.Context(), mine); err != nil {
			t.Fatal(err)
		}
	}
	k.settle(service)
	equal(t, "helm list", k.listed()[0][:4], "web ")
}

func TestAHookThatIsToBeKeptRunsAgainAndStays(t *testing.T) {
	k := newKit(t, helm.Config{})
	kept := func(version string) files {
		chart := hookChart(version)
		chart["templates/hook.yaml"] = strings.Replace(chart["templates/hook.yaml"], `"helm.sh/hook":`, `"helm.sh/resource-policy": keep, "helm.sh/hook":`, 1)
		return chart
	}
	k.settle(k.service(kept("1.0.0")))
	uid := k.configMap("web-hook").UID
	k.settle(k.service(kept("1.1.0")))
	if hook := k.configMap("web-hook"); hook.UID == uid || hook.Data["version"] != "1.1.0" {
		t.Errorf("it was not run again: %v", hook.Data)
	}
	k.eventually(k.service(nil, gone), "it is gone", func(r *carrier.Result) bool { return r.Found == nil })
	if k.configMap("web-hook") == nil {
		t.Error("what the hook has left, which is to be kept, is gone")
	}
}
