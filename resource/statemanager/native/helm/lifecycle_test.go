package helm_test

import (
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/kube"

	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/helm"
)

// reachable is what `helm list` needs of a client.
type reachable struct{ kube.Interface }

func (reachable) IsReachable() error { return nil }

const pageTemplate = `apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}-page
data:
  text: {{ .Values.text | quote }}
  revision: {{ .Release.Revision | quote }}
`

const extraTemplate = `apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}-extra
data: {}
`

func pageChart(version string) files {
	return chartOf("page", version, files{"page.yaml": pageTemplate, "values.yaml": "text: hello\n"})
}

func TestAChartIsInstalledUpgradedAndUninstalledAsARelease(t *testing.T) {
	k := newKit(t, helm.Config{})
	first := k.service(pageChart("1.0.0").with("templates/extra.yaml", extraTemplate))
	result := k.compute(first)
	equal(t, "the plan", summary(result.Changes), []string{"create HelmRelease web", "create ConfigMap web-extra", "create ConfigMap web-page"})
	if result.Found != nil || k.configMap("web-page") != nil {
		t.Error("planning has changed something")
	}
	k.carryOut(first, result)
	result = k.compute(first)
	equal(t, "what there is to do", summary(result.Changes), nil)
	equal(t, "health", result.Health, carrier.Health{Phase: v1alpha1.ServiceStateDeployed})
	equal(t, "helm list", k.listed(), []string{"web 1 deployed page-1.0.0"})
	page := k.configMap("web-page")
	for name, value := range carrier.LabelsOf(first) {
		if page.Labels[name] != value {
			t.Errorf("the label %s is %q, not %q", name, page.Labels[name], value)
		}
	}
	if result.Found.Fingerprint != first.Fingerprint || result.Found.Template != "web-1" || result.Found.Version != "1.0.0" || result.Found.Owner != first.Owner {
		t.Errorf("found %+v", result.Found)
	}
	if len(result.Found.Kinds) != 1 || result.Found.Kinds[0].Kind != "ConfigMap" {
		t.Errorf("kinds are %v", result.Found.Kinds)
	}

	second := k.service(pageChart("1.1.0"), values(map[string]any{"text": "bye"}))
	result = k.compute(second)
	equal(t, "the plan of the upgrade", summary(result.Changes), []string{"update HelmRelease web", "update ConfigMap web-page", "delete ConfigMap web-extra"})
	said := text(result.Changes)
	for _, part := range []string{`"1.0.0" -> "1.1.0"`, `data.text`, `"hello" -> "bye"`} {
		if !strings.Contains(strings.ReplaceAll(said, "→", "->"), part) {
			t.Errorf("the plan does not say %q:\n%s", part, said)
		}
	}
	k.carryOut(second, result)
	equal(t, "helm list", k.listed(), []string{"web 2 deployed page-1.1.0"})
	if k.configMap("web-extra") != nil || k.configMap("web-page").Data["text"] != "bye" {
		t.Error("the upgrade has not done what was planned")
	}
	equal(t, "what there is to do", summary(k.compute(second).Changes), nil)

	found, err := k.carrier.List(t.Context(), k.cluster, second.Owner)
	if err != nil || len(found) != 1 || !carrier.IsSealOf(found[0].Seal, second.Fingerprint) {
		t.Errorf("list: %+v, %v", found, err)
	}

	removal := k.service(nil, gone)
	result = k.compute(removal)
	equal(t, "the plan of the removal", summary(result.Changes), []string{"delete ConfigMap web-page", "update HelmRelease web"})
	k.eventually(removal, "everything is gone", func(r *carrier.Result) bool { return r.Found == nil })
	equal(t, "helm list", k.listed(), nil)
	if k.configMap("web-page") != nil {
		t.Error("the object is there still")
	}
	if found, err := k.carrier.List(t.Context(), k.cluster, second.Owner); err != nil || len(found) != 0 {
		t.Errorf("list: %+v, %v", found, err)
	}
}

func TestNothingToDoCostsOneRequestForTheReleaseAndOneForEachObjectThatIsNotWatched(t *testing.T) {
	k := newKit(t, helm.Config{})
	service := k.service(pageChart("1.0.0"))
	k.settle(service)
	before := k.requests.Load()
	k.compute(service)
	if n := k.requests.Load() - before; n != 2 {
		t.Errorf("%d requests, and not 2: the list of revisions and the only object", n)
	}
}
