package helm_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/kube"
	release "helm.sh/helm/v4/pkg/release/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/helm"
)

// byHelm installs a chart with Helm's own library, as its command line does, in a namespace of its own.
func byHelm(t *testing.T, name string, chart files) (*release.Release, string) {
	t.Helper()
	server := operatortest.Start(t)
	namespace, cfg := server.Namespace(t), server.RESTConfig()
	flags := genericclioptions.NewConfigFlags(false)
	flags.WrapConfigFn = func(*rest.Config) *rest.Config { return cfg }
	flags.Namespace = &namespace
	config := action.NewConfiguration()
	if err := config.Init(flags, namespace, "secrets"); err != nil {
		t.Fatal(err)
	}
	install := action.NewInstall(config)
	install.ReleaseName, install.Namespace, install.WaitStrategy = name, namespace, kube.HookOnlyStrategy
	fetched, err := source{files: chart}.Chart(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	made, err := install.RunWithContext(t.Context(), fetched.Chart, map[string]any{})
	if err != nil {
		t.Fatal(err)
	}
	return made.(*release.Release), namespace
}

// texts is a chart whose documents have what is easily lost between rendering and applying.
func texts() files {
	const head = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: "
	return chartOf("texts", "1.0.0", files{
		"last.yaml":     head + "last\ndata:\n  text: |\n    one\n    two\n",
		"trimmed.yaml":  head + "trimmed\ndata:\n  text: |\n    one\n    two\n{{- if false }}{{ end }}",
		"kept.yaml":     head + "kept\ndata:\n  text: |+\n    one\n\n",
		"folded.yaml":   head + "folded\ndata:\n  text: >\n    one\n    two\n",
		"several.yaml":  head + "first\ndata:\n  text: |\n    one\n---\n# a comment\n" + head + "second\ndata:\n  text: |\n    two\n--- \n" + head + "third\ndata:\n  text: |\n    three\n",
		"braces.yaml":   head + "braces\ndata:\n  text: |\n    {{ \"{{\" }} .not.a.template }} {{ \"{{{\" }} {{ \"{{-\" }} x -}}\n",
		"returned.yaml": strings.ReplaceAll(head+"returned\ndata:\n  text: |\n    one\n    two\n", "\n", "\r\n"),
		"anchors.yaml":  head + "anchors\ndata:\n  a: &a \"yes\"\n  b: *a\n  c: \"0x1F\"\n  d: \"1_000\"\n  e: ''\n",
		"list.yaml":     "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: ConfigMap\n  metadata: {name: listed}\n  data:\n    text: |\n      one\n",
		"hook.yaml": head + "hooked\n  annotations: {helm.sh/hook: \"pre-install,post-install\", helm.sh/hook-weight: \"-5\"}\n" +
			"data:\n  text: |\n    of a hook\n",
		"charts/sub/Chart.yaml":             "apiVersion: v2\nname: sub\nversion: 0.1.0\n",
		"charts/sub/templates/within.yaml":  head + "within\ndata:\n  text: |\n    {{ .Chart.Name }}\n",
		"charts/sub/templates/_helpers.tpl": "{{ define \"x\" }}{{ end }}",
		"NOTES.txt":                         "{{ .Release.Name }} is there",
	})
}

// contents are the data of the ConfigMaps of a namespace, by name.
func (k *kit) contents(namespace string) map[string]map[string]string {
	k.t.Helper()
	list := &corev1.ConfigMapList{}
	if err := k.user.List(k.t.Context(), list, client.InNamespace(namespace)); err != nil {
		k.t.Fatal(err)
	}
	found := map[string]map[string]string{}
	for _, item := range list.Items {
		found[item.Name] = item.Data
	}
	delete(found, "kube-root-ca.crt")
	return found
}

func TestThePlanAndTheClusterAndTheRecordAreHelmsByteForByte(t *testing.T) {
	k := newKit(t, helm.Config{})
	want, namespace := byHelm(t, "web", texts())
	service := k.service(texts())
	result := k.compute(service)
	planned := map[string]map[string]string{}
	for _, change := range result.Changes {
		if change.Object.Kind != "ConfigMap" {
			continue
		}
		data := map[string]string{}
		for _, field := range change.Fields {
			if name, ok := strings.CutPrefix(field.Path, "data."); ok {
				data[name] = field.New.(string)
			}
		}
		planned[change.Object.Name] = data
	}
	k.carryOut(service, result)
	helms, ours := k.contents(namespace), k.contents(k.namespace)
	for _, name := range slices.Sorted(maps.Keys(helms)) {
		equal(t, "what the cluster has of "+name, ours[name], helms[name])
		if name != "hooked" {
			equal(t, "what the plan has of "+name, planned[name], helms[name])
		}
	}
	equal(t, "the objects", slices.Sorted(maps.Keys(ours)), slices.Sorted(maps.Keys(helms)))
	got := k.list()[0]
	equal(t, "the manifest of the record", got.Manifest, want.Manifest)
	equal(t, "the notes of the record", got.Info.Notes, want.Info.Notes)
	equal(t, "the number of hooks", len(got.Hooks), len(want.Hooks))
	for i := range want.Hooks {
		equal(t, "the path of a hook", got.Hooks[i].Path, want.Hooks[i].Path)
		equal(t, "the manifest of a hook", got.Hooks[i].Manifest, want.Hooks[i].Manifest)
	}
	equal(t, "what is left to do", summary(k.compute(service).Changes), nil)
	equal(t, "drift", summary(k.compute(service).Drift), nil)
}
