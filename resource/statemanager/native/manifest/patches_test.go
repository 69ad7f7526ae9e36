package manifest_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
)

func patchedBy(patches ...v1alpha1.Patch) option {
	return func(s *carrier.Service) { s.Entry.Patches = patches }
}

func TestPatchesComeAfterValuesForManifestsAndKustomizations(t *testing.T) {
	content := files{
		"a.yaml":             configMap("first", "${word}"),
		"b.yaml":             configMap("second", "two"),
		"c.yaml":             configMap("third", "three"),
		"kustomization.yaml": "resources: [a.yaml, b.yaml, c.yaml]\n",
	}
	plain := files{"a.yaml": content["a.yaml"], "b.yaml": content["b.yaml"], "c.yaml": content["c.yaml"]}
	patches := patchedBy(
		v1alpha1.Patch{Patch: "- {op: test, path: /data/text, value: hello}\n- {op: add, path: /data/more, value: \"${word}\"}", Target: &v1alpha1.PatchTarget{Name: "first"}},
		v1alpha1.Patch{Patch: "{apiVersion: v1, kind: ConfigMap, metadata: {name: third}, $patch: delete}"},
	)
	for name, tt := range map[string]struct {
		files   files
		options []option
	}{
		"manifests":     {plain, []option{values("word: hello"), patches}},
		"kustomization": {content, []option{values("word: hello"), patches, kustomize(".")}},
	} {
		t.Run(name, func(t *testing.T) {
			k := newKit(t)
			service := k.service(tt.files, tt.options...)
			planned := k.compute(service)
			k.wants(planned.Changes, "create ConfigMap first", "create ConfigMap second")
			if said := textOf(planned.Changes); !strings.Contains(said, "more") {
				t.Errorf("the plan is:\n%s", said)
			}
			k.settle(service)
			if data := k.configMap("first").Data; data["text"] != "hello" || data["more"] != "${word}" {
				t.Errorf("it is %v", data)
			}
			if k.exists("third", &corev1.ConfigMap{}) {
				t.Error("what a patch deletes is there")
			}
			if result := k.compute(service); len(result.Drift) > 0 || len(result.Changes) > 0 {
				t.Errorf("there is something to do still: %v, %v", told(result.Changes), told(result.Drift))
			}
		})
	}
}

func TestAPatchForNothingIsRefused(t *testing.T) {
	k := newKit(t)
	content := files{"a.yaml": configMap("first", "one")}
	for want, patch := range map[string]v1alpha1.Patch{
		`patches[0]: no object has kind "Secret"`:           {Patch: "a: 1", Target: &v1alpha1.PatchTarget{Kind: "Secret"}},
		"patches[0]: there is no ConfigMap other of v1":     {Patch: "{apiVersion: v1, kind: ConfigMap, metadata: {name: other}}"},
		"its patches leave no object":                       {Patch: "$patch: delete", Target: &v1alpha1.PatchTarget{Kind: "ConfigMap"}},
		"ConfigMap first of v1: what it makes has no":       {Patch: "[{op: remove, path: /metadata/name}]", Target: &v1alpha1.PatchTarget{Name: "first"}},
		"metadata.labels is no map of texts: put quotes ar": {Patch: "metadata: {labels: {a: 1}}", Target: &v1alpha1.PatchTarget{Name: "first"}},
	} {
		if err := k.refused(k.service(content, patchedBy(patch))); !framework.IsPermanent(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, and the error is %v", want, err)
		}
	}
}

// TestAnObjectThatAPatchMakesASecretIsHidden holds that what is hidden is decided by what is applied.
func TestAnObjectThatAPatchMakesASecretIsHidden(t *testing.T) {
	k := newKit(t)
	service := k.service(files{"a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: first}\nstringData: {word: hunter2}\n"}, patchedBy(
		v1alpha1.Patch{Patch: "[{op: replace, path: /kind, value: Secret}]", Target: &v1alpha1.PatchTarget{Name: "first"}}))
	planned := k.compute(service)
	k.wants(planned.Changes, "create Secret first")
	if said := textOf(planned.Changes); strings.Contains(said, "hunter2") {
		t.Errorf("the plan is:\n%s", said)
	}
}
