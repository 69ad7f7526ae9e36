package native_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager/native"
)

// label labels the cluster "east".
func (w *world) label(labels map[string]string) {
	w.t.Helper()
	cluster := &v1alpha1.ClusterDeployment{}
	if err := w.client.Get(w.t.Context(), client.ObjectKey{Namespace: w.namespace, Name: "east"}, cluster); err != nil {
		w.t.Fatal(err)
	}
	cluster.Labels = labels
	if err := w.client.Update(w.t.Context(), cluster); err != nil {
		w.t.Fatal(err)
	}
}

// planned returns how a plan changes a field of an object, "old → new", or nothing.
func planned(changes []plan.Change, kind, path string) (all []string) {
	for _, change := range changes {
		for _, field := range change.Fields {
			if change.Object.Kind == kind && field.Path == path {
				old, _ := field.Old.(string)
				now, _ := field.New.(string)
				all = append(all, old+" → "+now)
			}
		}
	}
	return all
}

func TestValuesOfTheClustersDataAreRolledOutAnewWhenItChanges(t *testing.T) {
	w := newPlatform(t)
	w.useEast()
	w.charts(map[string][]byte{"app-1.0.0.tgz": chartOf(t, "app", "1.0.0", nil)})
	w.manifests("text", configMapText("text", "${title}"))
	w.configMap("network", map[string]string{"subnet": "10.0.0.0/8"})
	w.label(map[string]string{"region": "eu"})
	const values = "title: {{ .Cluster.metadata.labels.region }} {{ .Objects.net.data.subnet }}\n"
	filled := &v1alpha1.ValuesTemplate{Objects: []v1alpha1.ValuesObject{{As: "net", Kind: "ConfigMap", Name: "network"}}}
	chart, text := w.service("app", "app-1.0.0"), w.service("text", "text")
	chart.Values, chart.ValuesTemplate = values, filled
	text.Values, text.ValuesTemplate = values, filled
	literal := w.service("literal", "app-1.0.0")
	literal.Values = "title: '{{ .Cluster.metadata.labels.region }}'\n"
	w.set("a", "east", chart, literal, text)
	const deployed = "app Deployed, literal Deployed, text Deployed"
	w.settle("a", deployed)
	w.quiet("a")
	shows := func(title string) {
		t.Helper()
		if got := w.page("app")["title"]; got != title {
			t.Errorf("the title of the chart is %q, want %q", got, title)
		}
		if got := w.onEast("text").Data["text"]; got != title {
			t.Errorf("the text of the manifests is %q, want %q", got, title)
		}
	}
	shows("eu 10.0.0.0/8")
	if got := w.page("literal")["title"]; got != "{{ .Cluster.metadata.labels.region }}" {
		t.Errorf("values without a valuesTemplate came to %q", got)
	}

	w.label(map[string]string{"region": "us"})
	work, err := w.compute("a")
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range work.Operations {
		path := "data.title"
		if o.Service.Name == "text" {
			path = "data.text"
		}
		if got := planned(o.Changes, "ConfigMap", path); o.Service.Name == "literal" || len(got) != 1 || got[0] != "eu 10.0.0.0/8 → us 10.0.0.0/8" {
			t.Errorf("the plan of %s changes %q", o.Service.Name, got)
		}
	}
	if len(work.Operations) != 2 {
		t.Errorf("the plan is %+v", work.Operations)
	}
	w.settle("a", deployed)
	shows("us 10.0.0.0/8")
	w.configMap("network", map[string]string{"subnet": "fd00::/8"})
	w.settle("a", deployed)
	shows("us fd00::/8")
	w.quiet("a")

	// What is missing leaves what runs as it is.
	w.label(nil)
	w.settle("a", "app Failed, literal Deployed, text Failed")
	for _, name := range []string{"app", "text"} {
		says(t, w.stateOf("a", name).FailureMessage, w.namespace+"/"+name, `no entry for key "region"`)
	}
	shows("us fd00::/8")
	w.label(map[string]string{"region": "us"})
	w.settle("a", deployed)
	if err := w.client.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "network"}}); err != nil {
		t.Fatal(err)
	}
	w.settle("a", deployed)
	resolved := w.condition("a", "app", native.ConditionResolved)
	if resolved.Status != metav1.ConditionFalse || !strings.Contains(resolved.Message, "ConfigMap "+w.namespace+"/network does not exist") {
		t.Errorf("the condition is %+v", resolved)
	}
	shows("us fd00::/8")
}
