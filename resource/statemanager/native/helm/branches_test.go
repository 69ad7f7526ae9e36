package helm_test

import (
	"net/http"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/helm"
)

// choices is a Deployment with a choice of each kind that API servers fill in.
const choices = `apiVersion: apps/v1
kind: Deployment
metadata: {name: server}
spec:
  selector: {matchLabels: {app: server}}
  strategy: STRATEGY
  template:
    metadata: {labels: {app: server}}
    spec:
      volumes: [{name: config, VOLUME}, {name: other, emptyDir: {}}]
      containers:
      - name: server
        image: server
        livenessProbe: PROBE
        env: [{name: HOST, ENV}]
`

func choicesChart(strategy, volume, probe, env string) files {
	replaced := strings.NewReplacer("STRATEGY", strategy, "VOLUME", volume, "PROBE", probe, "ENV", env).Replace(choices)
	return chartOf("choices", "1.0.0", files{"server.yaml": replaced})
}

func TestAnotherBranchOfAChoiceIsTakenInOneUpgrade(t *testing.T) {
	k := newKit(t, helm.Config{})
	rolling := choicesChart("{type: RollingUpdate}", "configMap: {name: a}", "{httpGet: {port: 80}}", "valueFrom: {fieldRef: {fieldPath: status.hostIP}}")
	k.settle(k.service(rolling))
	next := k.service(choicesChart("{type: Recreate}", "secret: {secretName: a}", "{tcpSocket: {port: 80}}", "value: here"))
	result := k.compute(next)
	equal(t, "the plan", summary(result.Changes), []string{"update HelmRelease web", "update Deployment server"})
	if said := text(result.Changes); !strings.Contains(said, "spec.strategy.rollingUpdate") {
		t.Errorf("the plan does not say that the other branch goes:\n%s", said)
	}
	k.settle(next)
	strategy, _, _ := unstructured.NestedMap(k.server().Object, "spec", "strategy")
	equal(t, "the strategy", strategy, map[string]any{"type": "Recreate"})
	equal(t, "the field managers", len(k.server().GetManagedFields()), 1)
	said := text(k.compute(k.service(rolling)).Changes)
	for _, part := range []string{"spec.strategy", "secret", "tcpSocket", "fieldRef"} {
		if !strings.Contains(said, part) {
			t.Errorf("the way back does not say %q:\n%s", part, said)
		}
	}
	k.settle(k.service(rolling))
	// What somebody else has applied is not taken from him, and the refusal is told in brief.
	somebody := k.server()
	err := k.user.Patch(t.Context(), somebody, client.RawPatch("application/merge-patch+json",
		[]byte(`{"spec":{"strategy":{"rollingUpdate":{"maxSurge":3}}}}`)), client.FieldOwner("kubectl-edit"))
	if err != nil {
		t.Fatal(err)
	}
	k.fails(k.service(choicesChart("{type: Recreate}", "configMap: {name: a}", "{httpGet: {port: 80}}", "value: here")), "spec.strategy.rollingUpdate: Forbidden")
}

func TestARefusalIsToldWithoutTheWholePodTemplate(t *testing.T) {
	k := newKit(t, helm.Config{})
	k.settle(k.service(jobChart("{}")))
	next := jobChart("{}")
	next["templates/job.yaml"] = strings.ReplaceAll(next["templates/job.yaml"], "image: migrate", "image: other")
	err := k.failure(k.service(next), "Job", "migrate", "spec.template: field is immutable")
	if strings.Contains(err.Error(), "Containers") || len(err.Error()) > 400 {
		t.Errorf("it is told at length: %v", err)
	}
}

// replacing names kinds whose objects are created anew where they can't be changed.
func replacing(kinds ...string) func(*carrier.Service) {
	return func(s *carrier.Service) { s.Config.ReplaceKinds = kinds }
}

func TestWhatCanNotBeChangedIsReplacedWhereItsKindIsNamed(t *testing.T) {
	k := newKit(t, helm.Config{})
	k.settle(k.service(jobChart("{}")))
	chart := jobChart("{}")
	chart["templates/job.yaml"] = strings.ReplaceAll(chart["templates/job.yaml"], "image: migrate", "image: other")
	if err := k.failure(k.service(chart, replacing("ConfigMap")), "immutable", "replaceKinds"); !framework.IsPermanent(err) {
		t.Errorf("it is tried again and again: %v", err)
	}
	next := k.service(chart, replacing("Job.batch"))
	result := k.compute(next)
	equal(t, "the plan", summary(result.Changes), []string{"update HelmRelease web", "update ConfigMap web-page", "delete Job migrate", "create Job migrate"})
	objects, _ := k.done(next, result)
	equal(t, "what was done", objects, []string{"update ConfigMap web-page", "delete Job migrate", "create Job migrate"})
	equal(t, "what is left to do", summary(k.compute(next).Changes), nil)
	equal(t, "helm list", k.listed(), []string{"web 2 deployed page-1.0.0"})
}

func TestWhatWouldNotBeCreatedAnewIsNotDeleted(t *testing.T) {
	k := newKit(t, helm.Config{})
	with := func(strategy string) *carrier.Service {
		return k.service(choicesChart(strategy, "emptyDir: {}", "{tcpSocket: {port: 80}}", "value: here"), replacing("Deployment"))
	}
	k.settle(with("{type: RollingUpdate}"))
	uid := k.server().GetUID()
	for range 2 {
		result, err := k.carrier.Compute(t.Context(), k.cluster, k.cluster.client, with("{type: Recreate, rollingUpdate: {maxSurge: 1}}"))
		says(t, err, "replace Deployment "+k.namespace+"/server", "it would not be created anew", "spec.strategy.rollingUpdate: Forbidden")
		equal(t, "the plan", summary(result.Changes), nil)
	}
	equal(t, "the Deployment", k.server().GetUID(), uid)
}

func TestWhatIsPlannedToBeReplacedIsNotDeletedWhenItWouldNotBeCreatedAnyMore(t *testing.T) {
	k := newKit(t, helm.Config{})
	k.settle(k.service(jobChart("{}")))
	chart := jobChart("{}")
	chart["templates/job.yaml"] = strings.ReplaceAll(chart["templates/job.yaml"], "image: migrate", "image: other")
	next := k.service(chart, replacing("Job"))
	result := k.compute(next)
	k.faults.On(func(r operatortest.Request) bool { return r.Method == http.MethodPost && r.Resource == "jobs" }, operatortest.InternalError()).Times(1)
	before := k.faults.Count()
	says(t, k.carrier.CarryOut(t.Context(), k.cluster, next, result), "replace Job "+k.namespace+"/migrate", "it would not be created anew")
	for _, write := range k.faults.Writes()[before:] {
		if write.Method == http.MethodDelete {
			t.Errorf("%s is deleted", write.Name)
		}
	}
	k.settle(next)
}

func TestAQuotaThatIsUsedUpByWhatIsReplacedIsNoReasonToLeaveIt(t *testing.T) {
	k := newKit(t, helm.Config{})
	k.settle(k.service(jobChart("{}")))
	one := corev1.ResourceList{"count/jobs.batch": resource.MustParse("1")}
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: k.namespace, Name: "jobs"}, Spec: corev1.ResourceQuotaSpec{Hard: one}}
	if err := k.user.Create(t.Context(), quota); err != nil {
		t.Fatal(err)
	}
	quota.Status = corev1.ResourceQuotaStatus{Hard: one, Used: one}
	if err := k.user.Status().Update(t.Context(), quota); err != nil {
		t.Fatal(err)
	}
	another := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: k.namespace, Name: "another"}}
	another.Spec.Template.Spec = corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "main", Image: "main"}}}
	operatortest.Eventually(t, "the quota is used up", func() bool {
		return apierrors.IsForbidden(k.user.Create(t.Context(), another.DeepCopy(), client.DryRunAll))
	})
	chart := jobChart("{}")
	chart["templates/job.yaml"] = strings.ReplaceAll(chart["templates/job.yaml"], "image: migrate", "image: other")
	result := k.compute(k.service(chart, replacing("Job")))
	equal(t, "the plan", summary(result.Changes), []string{"update HelmRelease web", "update ConfigMap web-page", "delete Job migrate", "create Job migrate"})
}

func TestWhatIsReplacedIsWaitedForWhileItGoes(t *testing.T) {
	k := newKit(t, helm.Config{})
	k.settle(k.service(jobChart("{}")))
	k.editJob(`{"metadata":{"finalizers":["example.com/hold"]}}`)
	chart := jobChart("{}")
	chart["templates/job.yaml"] = strings.ReplaceAll(chart["templates/job.yaml"], "image: migrate", "image: other")
	next := k.service(chart, replacing("Job"))
	says(t, k.carrier.CarryOut(t.Context(), k.cluster, next, k.compute(next)), "Job "+k.namespace+"/migrate", "wait until it is gone")
	if result := k.compute(next); len(result.Changes) > 0 || !strings.Contains(result.Health.Message, "waits until Job") {
		t.Errorf("it is not waited for: %+v", result)
	}
	k.editJob(`{"metadata":{"finalizers":null}}`)
	k.settle(next)
	equal(t, "helm list", k.listed(), []string{"web 3 deployed page-1.0.0"})
}
