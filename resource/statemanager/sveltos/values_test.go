package sveltos_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager"
)

// TestValuesTemplatesAreRenderedBeforeSveltosGetsThem holds that a values template means the same with Sveltos as elsewhere, and that Sveltos
// takes what it comes to as it is.
func TestValuesTemplatesAreRenderedBeforeSveltosGetsThem(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		network := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "network"}, Data: map[string]string{"subnet": "10.0.0.0/8"}}
		if err := w.client.Create(t.Context(), network); err != nil {
			t.Fatal(err)
		}
		filled := &v1alpha1.ValuesTemplate{Objects: []v1alpha1.ValuesObject{{As: "net", Kind: "ConfigMap", Name: "network"}}}
		w.set.Cluster = w.cluster.DeepCopy()
		w.set.Cluster.Labels = map[string]string{"region": "eu"}
		fill := func(name, text string) {
			entry := chart(w.set, name, "1.0.0")
			entry.Values, entry.ValuesTemplate = text, filled
		}
		fill("web", "region: {{ .Cluster.metadata.labels.region }}\nsubnet: {{ .Objects.net.data.subnet }}\n")
		fill("alerts", `text: {{ "{{ $labels.job }} {{{{" | quote }}`+"\nregion: {{ .Cluster.metadata.labels.region }}\n")
		chart(w.set, "theirs", "1.0.0").Values = "region: '{{ .Cluster.metadata.name }}'\n"
		overlay := kustomization(w.set, "overlay")
		overlay.Values, overlay.ValuesTemplate = "region: {{ .Cluster.metadata.labels.region }}\nid: 1234567890123456789\n", filled
		w.settle(w.set)

		values := func(name string) string {
			t.Helper()
			for _, c := range w.profile(w.set).Spec.HelmCharts {
				if c.ReleaseName == name {
					return c.Values
				}
			}
			t.Fatalf("the profile has no chart %s", name)
			return ""
		}
		if got := values("web"); got != "region: eu\nsubnet: 10.0.0.0/8\n" {
			t.Errorf("the values are %q", got)
		}
		if got := values("theirs"); got != "region: '{{ .Cluster.metadata.name }}'\n" {
			t.Errorf("values without a valuesTemplate are %q", got)
		}
		alerts := map[string]string{}
		if err := yaml.Unmarshal([]byte(values("alerts")), &alerts); err != nil || alerts["text"] != "{{ $labels.job }} {{{{" || alerts["region"] != "eu" {
			t.Errorf("the values are %v, %v", alerts, err)
		}
		if strings.Contains(values("alerts"), "{{") {
			t.Errorf("Sveltos would take this for a template: %s", values("alerts"))
		}
		if got := w.profile(w.set).Spec.KustomizationRefs[0].Values["region"]; got != "eu" {
			t.Errorf("the substitution is %q", got)
		}
		if got := w.profile(w.set).Spec.KustomizationRefs[0].Values["id"]; got != "1234567890123456789" {
			t.Errorf("the number has become %s", got)
		}

		w.set.Cluster.Labels["region"] = "us"
		work, err := w.manager.Compute(t.Context(), w.set)
		if err != nil {
			t.Fatal(err)
		}
		if text := textOf(t, work); !strings.Contains(text, "region: us") {
			t.Errorf("the plan is %s", text)
		}
		w.settle(w.set)
		if got := values("web"); got != "region: us\nsubnet: 10.0.0.0/8\n" {
			t.Errorf("after another label the values are %q", got)
		}

		// What can't be made leaves what there is, and the others go on.
		overlay = kustomization(w.set, "overlay")
		overlay.Values, overlay.ValuesTemplate = `region: {{ "{{ x }}" | quote }}`, filled
		fill("web", "region: {{ .Cluster.metadata.labels.tier }}\n")
		fill("alerts", "region: other\n")
		want := map[string]string{"web": `the values template of service apps/web: `, "overlay": "which Sveltos would take for a template"}
		for _, o := range w.settle(w.set).Operations {
			text, bad := want[o.Service.Name]
			if bad && (o.Err == nil || !strings.Contains(o.Err.Error(), text) || !framework.IsPermanent(o.Err)) {
				t.Errorf("the error of %s is %v", o.Service.Name, o.Err)
			}
			delete(want, o.Service.Name)
		}
		if len(want) > 0 {
			t.Errorf("nothing was said of %v", want)
		}
		if values("web") != "region: us\nsubnet: 10.0.0.0/8\n" || values("alerts") != "region: other\n" {
			t.Errorf("the values are %q and %q", values("web"), values("alerts"))
		}
	})
}

func TestOptionalValuesAreSoForSveltosAndWhatIsForTheNativeOneOnlyIsRefused(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		chart(w.set, "web", "1.0.0").ValuesFrom = []v1alpha1.ValuesFrom{{Kind: "ConfigMap", Name: "more", Optional: true}, {Kind: "ConfigMap", Name: "base"}}
		chart(w.set, "targeted", "1.0.0").ValuesFrom = []v1alpha1.ValuesFrom{{Kind: "Secret", Name: "login", TargetPath: "auth.password"}}
		chart(w.set, "ignoring", "1.0.0").IgnoreDifferences = []v1alpha1.IgnoredDifference{{Kind: "Deployment", JSONPointers: []string{"/spec/replicas"}}}
		chart(w.set, "patched", "1.0.0").Patches = []v1alpha1.Patch{{Patch: "{}", Target: &v1alpha1.PatchTarget{Kind: "Deployment"}}}
		chart(w.set, "tenant", "1.0.0").ServiceAccountName = "deployer"
		chart(w.set, "checked", "1.0.0").HealthCheckExprs = []v1alpha1.HealthCheckExpr{{APIVersion: "v1", Kind: "Secret", Current: "true"}}
		work := w.settle(w.set)
		charts := w.profile(w.set).Spec.HelmCharts
		if len(charts) != 1 || len(charts[0].ValuesFrom) != 2 || !charts[0].ValuesFrom[0].Optional || charts[0].ValuesFrom[1].Optional {
			t.Errorf("the charts are %+v", charts)
		}
		said := map[string]string{}
		for _, o := range work.Operations {
			if o.Err != nil {
				said[o.Service.Name] = o.Err.Error()
			}
		}
		if !strings.Contains(said["targeted"], "valuesFrom[0] has a targetPath, which Sveltos does not know") || !strings.Contains(said["ignoring"], "ignoreDifferences") ||
			!strings.Contains(said["patched"], "patches") || !strings.Contains(said["checked"], "healthCheckExprs") ||
			!strings.Contains(said["tenant"], "serviceAccountName") || len(said) != 5 {
			t.Errorf("what was said is %v", said)
		}
	})
}

// kustomization adds a service with a kustomization in a ConfigMap.
func kustomization(set *statemanager.Set, name string) *v1alpha1.ServiceWithValues {
	set.Templates[name] = &v1alpha1.ServiceTemplate{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1alpha1.ServiceTemplateSpec{Kustomize: &v1alpha1.FileSource{LocalSource: &v1alpha1.LocalSource{Kind: "ConfigMap", Name: name}}},
	}
	return service(set, name, name, "")
}

// textOf is the changes of a work as people read them.
func textOf(t *testing.T, work *statemanager.Work) string {
	t.Helper()
	var text strings.Builder
	for _, o := range work.Operations {
		if err := plan.WriteChangesText(&text, o.Changes, plan.TextOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	return text.String()
}
