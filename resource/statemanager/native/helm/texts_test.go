package helm_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	release "helm.sh/helm/v4/pkg/release/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/helm"
)

const definitionOfDots = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: dots.texts.operatorkit.io
  annotations: {%s}
spec:
  group: texts.operatorkit.io
  scope: Namespaced
  names: {kind: Dot, plural: dots}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
`

// withTexts is a chart with an object, an item of a list, a hook or a definition that has these labels or annotations.
func withTexts(place, metadata string) files {
	object := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: cx, " + metadata + "}\n"
	switch place {
	case "a list":
		object = "apiVersion: v1\nkind: List\nitems:\n- " + strings.TrimSpace(strings.ReplaceAll(object, "\n", "\n  ")) + "\n"
	case "a typed list":
		object = "apiVersion: v1\nkind: ConfigMapList\nitems:\n- metadata: {name: cx, " + metadata + "}\n"
	case "a hook":
		object = strings.Replace(object, "annotations: {", `annotations: {helm.sh/hook: pre-install, `, 1)
	case "crds/":
		_, annotations, _ := strings.Cut(metadata, "annotations: {")
		return chartOf("texts", "1.0.0", files{"crds/dots.yaml": fmt.Sprintf(definitionOfDots, strings.TrimSuffix(annotations, "}"))})
	}
	return chartOf("texts", "1.0.0", files{"a.yaml": object})
}

func TestLabelsAndAnnotationsThatAreNoTextsAreRefusedBeforeAnythingIsDone(t *testing.T) {
	k := newKit(t, helm.Config{})
	for _, place := range []string{"an object", "a list", "a typed list", "a hook", "crds/"} {
		for metadata, want := range map[string]string{
			"annotations: {a: b, scrape: true}":                 `metadata.annotations is no map of texts: put quotes around the value of "scrape", the boolean true`,
			"labels: {version: 1.10}, annotations: {a: 'true'}": `metadata.labels is no map of texts: put quotes around the value of "version", the number 1.1`,
		} {
			if place == "crds/" && strings.Contains(metadata, "labels") {
				continue
			}
			err := k.failure(k.service(withTexts(place, metadata)), want)
			if !framework.IsPermanent(err) {
				t.Errorf("%s with %s: it is tried again: %v", place, metadata, err)
			}
		}
	}
	equal(t, "what Helm lists", k.listed(), nil)
}

func TestANullAmongLabelsIsAnEmptyText(t *testing.T) {
	k := newKit(t, helm.Config{})
	service := k.service(withTexts("an object", "labels: {app: web, tier: }, annotations: {note: }"))
	k.settle(service)
	got := k.configMap("cx")
	tier, labelled := got.Labels["tier"]
	note, noted := got.Annotations["note"]
	if !labelled || !noted || tier+note != "" || got.Labels["app"] != "web" {
		t.Errorf("its labels are %v, its annotations %v", got.Labels, got.Annotations)
	}
	equal(t, "drift", summary(k.compute(service).Drift), nil)
}

func TestItemsOfATypedListNeedNoKind(t *testing.T) {
	k := newKit(t, helm.Config{})
	chart := chartOf("lists", "1.0.0", files{"a.yaml": "apiVersion: v1\nkind: ConfigMapList\nitems:\n" +
		"- {metadata: {name: one}, data: {a: b}}\n- {metadata: {name: two}, data: {a: c}}\n"})
	helms, _ := byHelm(t, "web", chart)
	service := k.service(chart)
	k.settle(service)
	if one, two := k.configMap("one"), k.configMap("two"); one == nil || two == nil || one.Data["a"]+two.Data["a"] != "bc" {
		t.Errorf("they are %v and %v", one, two)
	}
	equal(t, "the manifest of the record", k.list()[0].Manifest, helms.Manifest)
	k.eventually(k.service(nil, gone), "they are gone", func(*carrier.Result) bool { return k.configMap("one") == nil && k.configMap("two") == nil })
}

// TestWhatAFormerReleaseWantedToKeepIsKept holds for a release whose texts nobody has checked: that of somebody's Helm.
func TestWhatAFormerReleaseWantedToKeepIsKept(t *testing.T) {
	k := newKit(t, helm.Config{})
	const kept, written = "helm.sh/resource-policy: keep, t: 'true'", "helm.sh/resource-policy: keep, t: true"
	k.settle(k.service(withTexts("an object", "annotations: {"+kept+"}")))
	config := k.helmConfig()
	last, err := config.Releases.Last("web")
	if err != nil {
		t.Fatal(err)
	}
	stored := last.(*release.Release)
	if stored.Manifest = strings.Replace(stored.Manifest, kept, written, 1); !strings.Contains(stored.Manifest, written) {
		t.Fatalf("the manifest is %s", stored.Manifest)
	}
	if err := config.Releases.Update(stored); err != nil {
		t.Fatal(err)
	}
	// That Helm has lost what the object said of it.
	k.edit("cx", `{"metadata":{"annotations":{"helm.sh/resource-policy":null,"t":null}}}`)
	k.eventually(k.service(nil, gone), "the release is gone", func(r *carrier.Result) bool { return r.Found == nil })
	if k.configMap("cx") == nil {
		t.Error("it is deleted")
	}
}

func TestAWithdrawnKeyOfStringDataIsPlannedAndGoes(t *testing.T) {
	k := newKit(t, helm.Config{})
	secret := func(data string) files {
		return chartOf("secrets", "1.0.0", files{"a.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: login}\nstringData: {" + data + "}\n"})
	}
	k.settle(k.service(secret("user: me, password: hunter2")))
	after := k.service(secret("user: me"))
	planned := k.compute(after)
	var paths []string
	for _, change := range planned.Changes {
		for _, field := range change.Fields {
			paths = append(paths, change.Object.Kind+" "+field.Path)
		}
	}
	if !slices.Contains(paths, "Secret data.password") || slices.Contains(paths, "Secret data.user") {
		t.Errorf("the plan is %v", paths)
	}
	k.settle(after)
	live := &corev1.Secret{}
	if err := k.user.Get(t.Context(), client.ObjectKey{Namespace: k.namespace, Name: "login"}, live); err != nil {
		t.Fatal(err)
	}
	if _, left := live.Data["password"]; left || string(live.Data["user"]) != "me" {
		t.Errorf("its data is %v", live.Data)
	}
	equal(t, "drift", summary(k.compute(after).Drift), nil)
}
