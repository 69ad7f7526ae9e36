package helm_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/helm"
)

func TestValuesThatDoNotFitTheSchemaAreAPermanentErrorWithThePath(t *testing.T) {
	k := newKit(t, helm.Config{})
	chart := pageChart("1.0.0").with("values.schema.json", `{"properties":{"text":{"type":"string","enum":["hello"]},"port":{"type":"integer"}}}`)
	err := k.failure(k.service(chart, values(map[string]any{"port": "http"})), "values", "/port", "want integer")
	if !framework.IsPermanent(err) {
		t.Errorf("it is tried again: %v", err)
	}
	k.compute(k.service(chart, values(map[string]any{"port": "http"}), options(v1alpha1.ServiceHelmOptions{SkipSchemaValidation: pointer(true)})))
}

func TestASchemaMustNotReferToFilesOrAddresses(t *testing.T) {
	k := newKit(t, helm.Config{})
	for _, schema := range []string{
		`{"$ref":"file:///etc/passwd"}`, `{"properties":{"a":{"$ref":"http://127.0.0.1:1/"}}}`,
		`{"$id":"http://127.0.0.1:1/","items":[{"$ref":"other.json"}]}`, `{"$schema":"http://127.0.0.1:1/"}`,
	} {
		err := k.failure(k.service(pageChart("1.0.0").with("values.schema.json", schema)), "refers to", "skipSchemaValidation")
		if !framework.IsPermanent(err) {
			t.Errorf("it is tried again: %v", err)
		}
	}
	k.compute(k.service(pageChart("1.0.0").with("values.schema.json",
		`{"$schema":"https://json-schema.org/draft-07/schema#","definitions":{"s":{"type":"string"}},"properties":{"text":{"$ref":"#/definitions/s"}}}`)))
}

func TestWhatATemplateMakesUpIsAppliedAsPlanned(t *testing.T) {
	k := newKit(t, helm.Config{})
	service := k.service(chartOf("random", "1.0.0", files{"a.yaml": `apiVersion: v1
kind: ConfigMap
metadata: {name: made-up}
data: {token: {{ randAlphaNum 20 | quote }}}
`}))
	result := k.compute(service)
	k.carryOut(service, result)
	if token := k.configMap("made-up").Data["token"]; token == "" || !strings.Contains(text(result.Changes), token) {
		t.Errorf("the plan does not say %q:\n%s", token, text(result.Changes))
	}
}

func TestAPlanIsWhatIsApplied(t *testing.T) {
	k := newKit(t, helm.Config{})
	k.settle(k.service(serverChart("1.0.0")))
	next := k.service(serverChart("1.1.0").with("templates/page.yaml", strings.ReplaceAll(pageTemplate, ".Values.text", `"hi"`)))
	before := k.server()
	result := k.compute(next)
	k.carryOut(next, result)
	after := k.server()
	var planned []plan.Change
	for _, c := range result.Changes {
		if c.Object.Kind == "Deployment" {
			planned = append(planned, c)
		}
	}
	done := plan.Describe(plan.Update, after, before)
	for _, changes := range [][]plan.Change{planned, done} {
		for i := range changes {
			changes[i].Object.Version = ""
		}
	}
	equal(t, "what was done to the Deployment", done, planned)
}

func (k *kit) server() *unstructured.Unstructured {
	k.t.Helper()
	server := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment"}}
	if err := k.user.Get(k.t.Context(), client.ObjectKey{Namespace: k.namespace, Name: "server"}, server); err != nil {
		k.t.Fatal(err)
	}
	return server
}

func TestATemplateThatLoopsIsRefusedAndEndsWhenItCallsAFunction(t *testing.T) {
	k := newKit(t, helm.Config{RenderTimeout: time.Second, Renderings: 1})
	loop := chartOf("loop", "1.0.0", files{"a.yaml": `{{ range 1000000000000 }}{{ $x := lower "X" }}{{ end }}`})
	err := k.failure(k.service(loop), "did not end within 1s")
	if !framework.IsPermanent(err) {
		t.Errorf("it is tried again: %v", err)
	}
	operatortest.Eventually(t, "another chart gets its turn when the loop has ended", func() error {
		_, err := k.carrier.Compute(t.Context(), k.cluster, k.cluster.client, k.service(pageChart("1.0.0")))
		if framework.IsPermanent(err) && !strings.Contains(err.Error(), "did not end within 1s") { // which is short for any chart
			t.Fatal(err)
		}
		return err
	})
}

func TestATemplateThatMakesTooMuchIsRefused(t *testing.T) {
	k := newKit(t, helm.Config{RenderTimeout: 10 * time.Minute}) // one of them makes and reads 32 MB of JSON before it is refused
	// A map grows when something is put into one that is in it.
	const grown = `{{ $r := dict }}{{ $a := $r }}{{ range 40 }}{{ $b := dict }}{{ $_ := set $a "x" $b }}{{ $_ := set $a "y" $b }}{{ $a = $b }}{{ end }}`
	for text, want := range map[string]string{
		`{{ $x := repeat 20000000 "x" }}`:                                                                        "a text of more than 16777216 bytes",
		`{{ $x := repeat 100000000000 "x" }}`:                                                                    "more than 67108864 bytes",
		`{{ $x := until 10000000000 }}`:                                                                          "more than 67108864 bytes",
		`{{ $x := "x" }}{{ range 26 }}{{ $x = printf "%s%s" $x $x }}{{ end }}`:                                   "a text of more than 16777216 bytes",
		`{{ $x := dict }}{{ $y := set $x "x" $x }}{{ $x }}`:                                                      "a part of itself",
		`{{ $x := list 1 }}{{ range 40 }}{{ $x = list $x $x }}{{ end }}`:                                         "a list or a map of more than 67108864 bytes",
		`{{ $x := randBytes 100000000 }}`:                                                                        "more than 67108864 bytes",
		`{{ $x := randAlphaNum 100000000 }}`:                                                                     "more than 67108864 bytes",
		`{{ fail (fromYaml (print "a: &a " (repeat 100000 "x") "\nb: [" (repeat 1000 "*a,") "]")).Error }}`:      "more than 67108864 bytes, with aliases",
		`{{ fail (fromYamlArray (print "- &a " (repeat 100000 "x") "\n- [" (repeat 1000 "*a,") "]") | first) }}`: "more than 67108864 bytes, with aliases",
		grown + `{{ $x := toYaml $r }}`:                                                                          "a list or a map of more than 67108864 bytes",
		grown + `{{ $x := toJson $r }}`:                                                                          "a list or a map of more than 67108864 bytes",
		grown + `{{ $x := toToml $r }}`:                                                                          "a list or a map of more than 67108864 bytes",
		grown + `{{ $x := toYamlPretty $r }}`:                                                                    "a list or a map of more than 67108864 bytes",
		grown + `{{ $x := print $r }}`:                                                                           "a list or a map of more than 67108864 bytes",
		`{{ $x := list 1 }}{{ range 23 }}{{ $x = fromJson (toJson (dict "x" (dict "Capabilities" 1 "Chart" 1 "Release" 1 "Values" (list $x $x)))) }}{{ end }}`: "more than",
		`{{ $_ := set .Values "root" $ }}{{ $x := print .Values }}`:      "a part of itself",
		`{{ $_ := set .Values "root" $ }}{{ $x := deepCopy .Values }}`:   "a part of itself",
		`{{ $_ := set .Values "root" $ }}{{ $x := toToml .Values }}`:     "a part of itself",
		`{{ $_ := set .Values "root" $ }}{{ $x := mustToYaml .Values }}`: "a part of itself",
	} {
		k.fails(k.service(chartOf("much", "1.0.0", files{"a.yaml": text})), want)
	}
}

func TestDocumentsThatAreLargeTogetherAreRefused(t *testing.T) {
	k := newKit(t, helm.Config{})
	document := "x: &a " + strings.Repeat("x", 100_000) + "\ny: [" + strings.Repeat("*a,", 120) + "]\n"
	all := strings.Repeat("--- \n"+document+"---\n"+document, 3)
	for name, chart := range map[string]files{
		"templates/a.yaml": chartOf("much", "1.0.0", files{"a.yaml": all}),
		"crds/":            chartOf("much", "1.0.0", nil).with("crds/a.yaml", all),
	} {
		if err := k.failure(k.service(chart), name, "have more than 67108864 bytes, with aliases"); !framework.IsPermanent(err) {
			t.Errorf("it is tried again: %v", err)
		}
	}
}

// Charts do so where they call templates of a library, in a loop over a part of their values.
func TestATemplateMayPutItsContextIntoItsValues(t *testing.T) {
	k := newKit(t, helm.Config{})
	const template = `{{ define "line" }}{{ .name }}-of-{{ .root.Release.Name }}{{ end -}}
apiVersion: v1
kind: ConfigMap
metadata: {name: web-extra}
data:
{{- $all := list }}
{{- range .Values.parts }}
  {{- $_ := set . "root" $ }}
  {{- range 300 }}{{ $all = append $all (dict "context" $) }}{{ end }}
  {{ .name }}: {{ include "line" . }}
{{- end }}
  contexts: "{{ len $all }}"
`
	chart := chartOf("parts", "1.0.0", files{"a.yaml": template})
	service := k.service(chart, func(s *carrier.Service) {
		s.Values = map[string]any{"parts": []any{map[string]any{"name": "first"}, map[string]any{"name": "second"}}}
	})
	_, _ = k.done(service, k.compute(service))
	equal(t, "what is there", k.configMap("web-extra").Data, map[string]string{"first": "first-of-web", "second": "second-of-web", "contexts": "600"})
}

// What prints it would have no end, and take the whole process with it.
func TestAContextInValuesCanBePrinted(t *testing.T) {
	k := newKit(t, helm.Config{})
	const template = `{{ define "name" }}{{ .Release.Name }}{{ end -}}
{{ $_ := set .Values "root" $ -}}
{{ $root := .Values.root -}}
{{ $_ = set $root "More" (dict "own" "more") -}}
# {{ .Values }}
# {{ dict "context" $ "forged" (dict "Capabilities" 1 "Chart" 1 "Release" 1 "Values" 1) }}
apiVersion: v1
kind: ConfigMap
metadata: {name: web-extra}
data:
  include: {{ include "name" $root }}
  tpl: {{ tpl "{{ .Release.Name }}" $root }}
  index: {{ index $root "Release" "Name" }}
  get: {{ (get $root "Release").Name }}
  kind: {{ kindOf $root }} {{ kindIs "map" $root }}
  set: {{ .More.own }}
  dig: {{ dig "root" "Release" "Name" "none" (dict "root" (merge (dict) $)) }} {{ dig "Release" "None" "none" $root }}
  keys: {{ keys $root | has "Values" | quote }}
  merged: {{ (merge (dict "root" (dict "own" "merged")) (dict "root" $root)).root.own }}
  silent: {{ toYaml .Values | quote }}
  encoded: {{ toJson (dict "a" (dict "Capabilities" 1 "Chart" 1 "Release" 1 "Values" 1)) | quote }}
`
	service := k.service(chartOf("parts", "1.0.0", files{"a.yaml": template}))
	_, _ = k.done(service, k.compute(service))
	equal(t, "what is there", k.configMap("web-extra").Data, map[string]string{
		"include": "web", "tpl": "web", "index": "web", "get": "web", "kind": "map true", "set": "more", "dig": "web none", "keys": "true", "merged": "merged", "silent": "",
		"encoded": `{"a":{"Capabilities":1,"Chart":1,"Release":1,"Values":1}}`,
	})
}

func TestATemplateThatFailsSaysWhereAndWhy(t *testing.T) {
	k := newKit(t, helm.Config{})
	k.fails(k.service(chartOf("bad", "1.0.0", files{"a.yaml": `{{ required "a host is needed" .Values.host }}`})), "bad/templates/a.yaml", "a host is needed")
	k.fails(k.service(chartOf("bad", "1.0.0", files{"a.yaml": "kind: [\n"})), "a.yaml")
}

func TestOfAnObjectThatAChartRendersTwiceTheLastOneCounts(t *testing.T) {
	k := newKit(t, helm.Config{})
	twice := strings.Replace(extraTemplate, "{}", "{x: first}", 1) + "---\n" + strings.Replace(extraTemplate, "{}", "{x: last}", 1)
	service := k.service(chartOf("twice", "1.0.0", files{"a.yaml": twice}))
	result := k.compute(service)
	equal(t, "the plan", summary(result.Changes), []string{"create HelmRelease web", "create ConfigMap web-extra"})
	equal(t, "the notes", result.Notes, []string{"of 2 objects that the chart renders 1 are there more than once: the last one counts"})
	objects, _ := k.done(service, result)
	equal(t, "what was done", objects, []string{"create ConfigMap web-extra"})
	equal(t, "what is there", k.configMap("web-extra").Data, map[string]string{"x": "last"})
	result = k.compute(service)
	equal(t, "what is left to do", summary(result.Changes), nil)
	equal(t, "drift", summary(result.Drift), nil)
}

func TestLookupReadsFromTheCluster(t *testing.T) {
	k := newKit(t, helm.Config{})
	mine := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: k.namespace, Name: "seen"}, Data: map[string]string{"a": "from the cluster"}}
	if err := k.user.Create(t.Context(), mine); err != nil {
		t.Fatal(err)
	}
	k.settle(k.service(chartOf("look", "1.0.0", files{"a.yaml": `apiVersion: v1
kind: ConfigMap
metadata: {name: looked}
data: {a: {{ (lookup "v1" "ConfigMap" .Release.Namespace "seen").data.a | quote }}}
`})))
	equal(t, "what was looked up", k.configMap("looked").Data["a"], "from the cluster")
}

func TestAFieldThatTheClusterDoesNotKnowIsAnError(t *testing.T) {
	k := newKit(t, helm.Config{})
	chart := chartOf("typo", "1.0.0", files{"a.yaml": strings.Replace(extraTemplate, "data: {}", "dta: {}", 1)})
	k.fails(k.service(chart), "ConfigMap "+k.namespace+"/web-extra", "dta")
}

func TestAFieldThatCanNotChangeIsFoundBeforeAnythingIsTouched(t *testing.T) {
	k := newKit(t, helm.Config{})
	k.settle(k.service(jobChart("{}")))
	next := jobChart("{}")
	next["templates/job.yaml"] = strings.ReplaceAll(next["templates/job.yaml"], "image: migrate", "image: other")
	k.fails(k.service(next, values(map[string]any{"text": "changed"})), "Job", "migrate", "immutable")
	equal(t, "helm list", k.listed(), []string{"web 1 deployed page-1.0.0"})
}

func TestAChartHasToBringWhatItDependsOn(t *testing.T) {
	k := newKit(t, helm.Config{})
	needs := "apiVersion: v2\nname: page\nversion: 1.0.0\ndependencies: [{name: base, version: 1.0.0, repository: 'https://example.com'}]\n"
	chart := pageChart("1.0.0").with("Chart.yaml", needs)
	if err := k.failure(k.service(chart), "base", "helm package --dependency-update"); !framework.IsPermanent(err) {
		t.Errorf("it is tried again: %v", err)
	}
	chart = chart.with("charts/base/Chart.yaml", "apiVersion: v2\nname: base\nversion: 1.0.0\n").with("charts/base/templates/extra.yaml", extraTemplate)
	k.settle(k.service(chart))
	if k.configMap("web-extra") == nil {
		t.Error("what the chart depends on is not there")
	}
}

func definition(group, description string) string {
	return fmt.Sprintf(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.%s}
spec:
  group: %s
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, description: %s, x-kubernetes-preserve-unknown-fields: true}}
`, group, group, description)
}

func widget(group string) string {
	return "apiVersion: " + group + "/v1\nkind: Widget\nmetadata: {name: one}\n"
}

func (k *kit) description(group string) string {
	k.t.Helper()
	crd := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}}
	if err := k.user.Get(k.t.Context(), client.ObjectKey{Name: "widgets." + group}, crd); err != nil {
		return err.Error()
	}
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	said, _, _ := unstructured.NestedString(versions[0].(map[string]any), "schema", "openAPIV3Schema", "description")
	return said
}

func TestDefinitionsAreThereBeforeTheirObjectsAndAreUpdatedByUpgradesAndKept(t *testing.T) {
	k := newKit(t, helm.Config{})
	group := k.namespace + ".example.com"
	chart := func(said string) files {
		return pageChart("1.0.0").with("crds/widget.yaml", definition(group, said)).with("templates/widget.yaml", widget(group))
	}
	first := k.service(chart("first"))
	equal(t, "the plan", summary(k.compute(first).Changes), []string{
		"create CustomResourceDefinition widgets." + group, "create HelmRelease web", "create ConfigMap web-page", "create Widget one"})
	k.settle(first)
	k.settle(k.service(chart("second")))
	equal(t, "the definition after the upgrade", k.description(group), "second")
	k.settle(k.service(chart("third"), options(v1alpha1.ServiceHelmOptions{SkipCRDs: pointer(true)})))
	equal(t, "the definition where it is skipped", k.description(group), "second")
	other := k.service(pageChart("1.0.0").with("crds/widget.yaml", definition(group, "other")), named("other"))
	if notes := k.compute(other).Notes; len(notes) != 1 || !strings.Contains(notes[0], "widgets."+group+" is not from this service, and stays as it is") {
		t.Errorf("the notes are %q", notes)
	}
	k.settle(other)
	equal(t, "the definition after another service brought it", k.description(group), "second")
	k.eventually(k.service(nil, gone), "it is gone", func(r *carrier.Result) bool { return r.Found == nil })
	equal(t, "the definition at the end", k.description(group), "second")
}

func TestDefinitionsOfADependencyComeOnlyWhereItIsSwitchedOn(t *testing.T) {
	k := newKit(t, helm.Config{})
	group := k.namespace + ".example.com"
	chart := pageChart("1.0.0").with("charts/base/Chart.yaml", "apiVersion: v2\nname: base\nversion: 1.0.0\n").
		with("charts/base/crds/widget.yaml", definition(group, "here")).
		with("Chart.yaml", "apiVersion: v2\nname: page\nversion: 1.0.0\ndependencies: [{name: base, version: 1.0.0, condition: base.enabled}]\n")
	with := func(enabled bool) *carrier.Service {
		return k.service(chart, values(map[string]any{"base": map[string]any{"enabled": enabled}}))
	}
	equal(t, "the plan", summary(k.compute(with(false)).Changes), []string{"create HelmRelease web", "create ConfigMap web-page"})
	k.settle(with(false))
	if said := k.description(group); !strings.Contains(said, "not found") {
		t.Errorf("the definition is there: %s", said)
	}
	k.settle(with(true))
	equal(t, "the definition where the dependency is switched on", k.description(group), "here")
}

func TestADefinitionAmongTheTemplatesWorksToo(t *testing.T) {
	k := newKit(t, helm.Config{})
	group := k.namespace + ".example.org"
	k.settle(k.service(pageChart("1.0.0").with("templates/crd.yaml", definition(group, "here")).with("templates/widget.yaml", widget(group))))
	k.eventually(k.service(nil, gone), "it is gone", func(r *carrier.Result) bool { return r.Found == nil })
	operatortest.Eventually(t, "the definition is gone", func() bool { return strings.Contains(k.description(group), "not found") })
}

func TestAKindThatComesLateIsWaitedFor(t *testing.T) {
	k := newKit(t, helm.Config{})
	group := k.namespace + ".example.net"
	service := k.service(pageChart("1.0.0").with("templates/widget.yaml", widget(group)))
	result := k.compute(service)
	if len(result.Changes) > 0 || len(result.Missing) != 1 || !strings.Contains(result.Health.Message, "waits for the kind Widget") {
		t.Errorf("it is not waited for: %+v", result)
	}
	k.settle(k.service(chartOf("definitions", "1.0.0", files{"crds/widget.yaml": definition(group, "late")}), named("definitions")))
	operatortest.Eventually(t, "the service is there", func() error {
		k.cluster.mapper.Reset()
		result, err := k.carrier.Compute(t.Context(), k.cluster, k.cluster.client, service)
		if err != nil || len(result.Changes) == 0 {
			return fmt.Errorf("nothing to do: %w", err)
		}
		return k.carrier.CarryOut(t.Context(), k.cluster, service, result)
	})
	if k.configMap("web-page") == nil {
		t.Error("it is not there")
	}
}

func TestANamespaceIsCreatedUnlessNotWanted(t *testing.T) {
	k := newKit(t, helm.Config{})
	name := k.namespace + "-new"
	off := serviceIn(t, name, pageChart("1.0.0"), options(v1alpha1.ServiceHelmOptions{CreateNamespace: pointer(false)}))
	k.fails(off, "namespace "+name+" does not exist", "createNamespace")
	on := serviceIn(t, name, pageChart("1.0.0"))
	equal(t, "the plan", summary(k.compute(on).Changes), []string{"create Namespace " + name, "create HelmRelease web", "create ConfigMap web-page"})
	k.settle(on)
	made := &corev1.Namespace{}
	if err := k.user.Get(t.Context(), client.ObjectKey{Name: name}, made); err != nil || made.Labels["name"] != name {
		t.Errorf("the namespace has not the label that Helm gives it: %v, %v", made.Labels, err)
	}
	if err := k.user.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
		t.Fatal(err)
	}
}

func TestANamespaceThatIsBeingDeletedIsWaitedFor(t *testing.T) {
	if testing.Short() {
		t.Skip("left to make test-all: it waits for the controller of namespaces")
	}
	k := newKit(t, helm.Config{})
	name := k.namespace + "-going"
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	held := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "held", Finalizers: []string{"example.com/wait"}}}
	for _, o := range []client.Object{namespace, held} {
		if err := k.user.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	if err := k.user.Delete(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	service := serviceIn(t, name, pageChart("1.0.0"))
	result := k.compute(service)
	if len(result.Changes) > 0 || result.Requeue <= 0 || !strings.Contains(result.Health.Message, "waits until the namespace "+name+" is gone") {
		t.Errorf("it is not waited for: %+v", result)
	}
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))
	if err := k.user.Patch(t.Context(), held, patch); err != nil {
		t.Fatal(err)
	}
	k.eventually(service, "it is there", func(r *carrier.Result) bool {
		return r.Found != nil && r.Health.Phase == v1alpha1.ServiceStateDeployed
	})
	if err := k.user.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
		t.Fatal(err)
	}
}
