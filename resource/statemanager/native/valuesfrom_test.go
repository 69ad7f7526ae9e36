package native_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// allTemplate shows all values of a chart.
const allTemplate = `apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Release.Name }}-all}
data: {all: {{ .Values | toJson | quote }}}
`

func (w *world) valuesOf(name string) map[string]any {
	w.t.Helper()
	values := map[string]any{}
	if err := json.Unmarshal([]byte(w.onEast(name + "-all").Data["all"]), &values); err != nil {
		w.t.Fatal(err)
	}
	return values
}

func TestATargetPathPutsASingleValueWhereItIsWanted(t *testing.T) {
	w := newPlatform(t)
	w.useEast()
	w.charts(map[string][]byte{"app-1.0.0.tgz": chartOf(t, "app", "1.0.0", files{"templates/all.yaml": allTemplate})})
	w.configMap("settings", map[string]string{
		"values.yaml": "hosts: [{name: a, port: 1}, {name: b, port: 2}]\nsize: {cpu: 1}\ndrop: {me: 1}\n",
		"replicas":    "3", "quoted": "'3'", "flag": "true", "none": "null", "list": `a,b,{c},\d`, "braces": "{a,b}", "host": "x.example.com", "lines": "a\nb\n",
	})
	at := func(key, path string) v1alpha1.ValuesFrom {
		return v1alpha1.ValuesFrom{Kind: "ConfigMap", Name: "settings", Key: key, TargetPath: path}
	}
	app := w.service("app", "app-1.0.0")
	app.ValuesFrom = []v1alpha1.ValuesFrom{
		at("", ""), at("replicas", "size.replicas"), at("quoted", "size.text"), at("flag", "size.flag"), at("none", "drop.me"),
		at("list", `annotations.example\.com/list`), at("braces", "size.braces"), at("host", "hosts[1].name"), at("lines", "lines"),
	}
	w.set("a", "east", app)
	w.settle("a", "app Deployed")
	w.quiet("a")
	want := map[string]any{
		"title": "hello", "lines": "a\nb\n", "drop": map[string]any{}, "annotations": map[string]any{"example.com/list": `a,b,{c},\d`},
		"hosts": []any{map[string]any{"name": "a", "port": 1.0}, map[string]any{"name": "x.example.com", "port": 2.0}},
		"size":  map[string]any{"cpu": 1.0, "replicas": 3.0, "text": "3", "flag": true, "braces": "{a,b}"},
	}
	if diff := cmp.Diff(want, dropNulls(w.valuesOf("app"))); diff != "" {
		t.Errorf("the values differ (-want +got):\n%s", diff)
	}

	for path, part := range map[string]string{"size[0]": "targetPath \"size[0]\"", "size.cpu.x": "targetPath \"size.cpu.x\"", "size.": "targetPath \"size.\""} {
		w.change("a", func(s *v1alpha1.ServiceSet) {
			s.Spec.Services[0].ValuesFrom = []v1alpha1.ValuesFrom{at("", ""), at("host", path)}
		})
		w.settle("a", "app Failed")
		says(t, w.stateOf("a", "app").FailureMessage, "entry \"host\" of ConfigMap "+w.namespace+"/settings", part)
	}
}

// dropNulls leaves out what is null: Helm takes it out of the values of a chart.
func dropNulls(values map[string]any) map[string]any {
	for name, value := range values {
		switch value := value.(type) {
		case nil:
			delete(values, name)
		case map[string]any:
			dropNulls(value)
		}
	}
	return values
}

func TestAValueOfASecretIsNotToldWhereverATargetPathPutsIt(t *testing.T) {
	w := newPlatform(t)
	w.useEast()
	w.charts(map[string][]byte{"app-1.0.0.tgz": chartOf(t, "app", "1.0.0", nil)})
	w.secret("login", map[string]string{"password": "open,sesame"})
	w.configMap("users", map[string]string{"values.yaml": "users: [{name: ann}]\n", "name": "bob"})
	app := w.service("app", "app-1.0.0")
	app.ValuesFrom = []v1alpha1.ValuesFrom{
		{Kind: "ConfigMap", Name: "users"},
		{Kind: "Secret", Name: "login", Key: "password", TargetPath: "title"},
		{Kind: "Secret", Name: "login", Key: "password", TargetPath: "users[0].password"},
		// The list stays secret.
		{Kind: "ConfigMap", Name: "users", Key: "name", TargetPath: "users[0].name"},
	}
	w.set("a", "east", app)
	w.settle("a", "app Deployed")
	if got := w.page("app")["title"]; got != "open,sesame" {
		t.Errorf("the title is %q", got)
	}
	w.secret("login", map[string]string{"password": "shut,sesame"})
	w.settle("a", "app Deployed")
	if got := w.page("app")["title"]; got != "shut,sesame" {
		t.Errorf("the title is %q", got)
	}
	w.change("a", func(s *v1alpha1.ServiceSet) { s.Spec.Services[0].ValuesFrom[1].TargetPath = "users.x" })
	w.settle("a", "app Failed")
	says(t, w.stateOf("a", "app").FailureMessage, `entry "password" of Secret `+w.namespace+`/login can't be put at the targetPath`)
	w.neverTold("open,sesame", "shut,sesame")
	if !strings.Contains(w.all.String(), "users") {
		t.Error("the plans say nothing of the users")
	}
}

func TestOptionalValuesAreLeftOutUntilTheyAreThere(t *testing.T) {
	w := newPlatform(t)
	w.useEast()
	w.charts(map[string][]byte{"app-1.0.0.tgz": chartOf(t, "app", "1.0.0", nil)})
	app := w.service("app", "app-1.0.0")
	app.ValuesFrom = []v1alpha1.ValuesFrom{
		{Kind: "ConfigMap", Name: "extra", Optional: true}, {Kind: "Secret", Name: "login", Key: "title", TargetPath: "title", Optional: true},
	}
	w.set("a", "east", app)
	title := func(want string) {
		t.Helper()
		w.settle("a", "app Deployed")
		if got := w.page("app")["title"]; got != want {
			t.Errorf("the title is %q, want %q", got, want)
		}
		w.quiet("a")
	}
	title("hello")
	w.configMap("extra", map[string]string{"values.yaml": "title: more\n"})
	title("more")
	w.secret("login", map[string]string{"title": "tell-nobody-title"})
	title("tell-nobody-title")
	if err := w.client.Delete(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "login"}}); err != nil {
		t.Fatal(err)
	}
	title("more")
	w.neverTold("tell-nobody-title")

	// An object without the entry is no object that is not there.
	w.configMap("extra", map[string]string{"other.yaml": "title: other\n"})
	w.change("a", func(s *v1alpha1.ServiceSet) { s.Spec.Services[0].Values = "unused: 1" })
	w.settle("a", "app Failed")
	says(t, w.stateOf("a", "app").FailureMessage, `entry "values.yaml" of ConfigMap `+w.namespace+"/extra", "does not exist")
}

func TestValuesWhoseAliasesMakeThemLargeAreRefused(t *testing.T) {
	w := newPlatform(t)
	w.useEast()
	w.charts(map[string][]byte{"app-1.0.0.tgz": chartOf(t, "app", "1.0.0", nil)})
	w.configMap("large", map[string]string{"values.yaml": "a: &a " + strings.Repeat("x", 100_000) + "\nb: [" + strings.Repeat("*a,", 1000) + "]\n"})
	app := w.service("app", "app-1.0.0")
	app.ValuesFrom = []v1alpha1.ValuesFrom{{Kind: "ConfigMap", Name: "large"}}
	w.set("a", "east", app)
	w.settle("a", "app Failed")
	says(t, w.stateOf("a", "app").FailureMessage, "ConfigMap "+w.namespace+"/large", "more than 16777216 bytes, with aliases as what they stand for")
}
