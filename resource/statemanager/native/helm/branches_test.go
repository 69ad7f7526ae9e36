package helm_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
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
