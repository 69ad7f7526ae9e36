package normalize_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/operatorkit/operatorkit/internal/normalize"
)

func read(t *testing.T, text string) map[string]any {
	t.Helper()
	encoded, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	u := map[string]any{}
	if err := json.Unmarshal(encoded, &u); err != nil {
		t.Fatal(err)
	}
	return u
}

const head = "apiVersion: v1\nkind: ConfigMap\n"

func TestWhatIsNoTextAmongLabelsAndAnnotationsIsRefusedByName(t *testing.T) {
	for text, want := range map[string]string{
		head + "metadata: {labels: {version: 1.10}}":                        `metadata.labels is no map of texts: put quotes around the value of "version", the number 1.1`,
		head + "metadata: {annotations: {a: b, scrape: true}}":              `metadata.annotations is no map of texts: put quotes around the value of "scrape", the boolean true`,
		head + "metadata: {annotations: {a: [b]}}":                          `around the value of "a", a list`,
		head + "metadata: {annotations: {a: {b: c}}}":                       `around the value of "a", a map`,
		head + "metadata: {labels: [a]}":                                    "metadata.labels is no map of texts: it is a list",
		head + "metadata: {labels: a}":                                      `metadata.labels is no map of texts: it is the text "a"`,
		head + "metadata: a":                                                "metadata is no map",
		head + "metadata: {name: 'A b/ü'}":                                  "metadata.name may not contain '/'",
		head + "metadata: {name: a, namespace: ../x}":                       "metadata.namespace may not contain '/'",
		head + "metadata: {name: ..}":                                       "metadata.name may not be '..'",
		"apiVersion: v1\nmetadata: {name: a}":                               "it needs apiVersion and kind",
		"apiVersion: a/b/c\nkind: A":                                        "a/b/c",
		"apiVersion: v1\nkind: Secret\nstringData: {pin: 1234}":             `stringData is no map of texts: put quotes around the value of "pin"`,
		"apiVersion: v1\nkind: Secret\nstringData: hunter2":                 "stringData is no map of texts",
		head + "metadata: {labels: {a: , b: c}, annotations: {a: }}":        "",
		head + "metadata: {labels: , annotations: {}}":                      "",
		head + "metadata:":                                                  "",
		"apiVersion: v1\nkind: Secret\nstringData: {a: }":                   "",
		"apiVersion: example.com/v1\nkind: Secret\nstringData: {pin: 1234}": "",
	} {
		err := normalize.Check(read(t, text))
		switch {
		case want == "" && err != nil:
			t.Errorf("%s: %v", text, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: the error is %v, want %q", text, err, want)
		case err != nil && (strings.Contains(err.Error(), "1234") || strings.Contains(err.Error(), "hunter2")):
			t.Errorf("%s: the error shows a secret: %v", text, err)
		}
	}
}

func TestObjectsBecomeWhatAPIServersMakeOfThem(t *testing.T) {
	for text, want := range map[string]string{
		head + "metadata: {labels: {a: , b: c, d: 1, e: true}, annotations: }": head + "metadata: {labels: {a: '', b: c, d: '1', e: 'true'}}",
		"apiVersion: v1\nkind: Secret\ndata: {a: eA==, b: eA==, d: }\nstringData: {b: yy, c: }": "apiVersion: v1\nkind: Secret\n" +
			"data: {a: eA==, b: eXk=, c: '', d: ''}",
		"apiVersion: v1\nkind: Secret\ndata: {}":                       "apiVersion: v1\nkind: Secret",
		"apiVersion: example.com/v1\nkind: Secret\nstringData: {a: b}": "apiVersion: example.com/v1\nkind: Secret\nstringData: {a: b}",
	} {
		got := read(t, text)
		normalize.Object(got)
		if diff := cmp.Diff(read(t, want), got); diff != "" {
			t.Errorf("%s:\n%s", text, diff)
		}
	}
}

func TestItemsHaveTheKindOfTheirList(t *testing.T) {
	list := read(t, "apiVersion: apps/v1\nkind: DeploymentList\nitems:\n- metadata: {name: a}\n- {apiVersion: v1, kind: Pod}\n- text\n")
	want := []any{
		map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "a"}},
		map[string]any{"apiVersion": "v1", "kind": "Pod"}, "text",
	}
	if diff := cmp.Diff(want, normalize.Items(list)); diff != "" {
		t.Error(diff)
	}
	plain := read(t, "apiVersion: v1\nkind: List\nitems: [{metadata: {name: a}}]")
	if diff := cmp.Diff(plain["items"], any(normalize.Items(plain))); diff != "" {
		t.Error(diff)
	}
}

func TestMarksKeepWhateverElseAnObjectHas(t *testing.T) {
	for name, given := range map[string]any{
		"texts":             map[string]any{"app": "web"},
		"a number":          map[string]any{"app": "web", "version": 1.1},
		"Go's own map":      map[string]string{"app": "web"},
		"a number of Go's":  map[string]any{"app": "web", "version": 1},
		"a null beside one": map[string]any{"app": "web", "version": nil},
	} {
		u := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"labels": given, "annotations": given}}}
		normalize.Mark(u, map[string]string{"owner": "a"}, map[string]string{"owned-by": "b"})
		for field, mark := range map[string]string{"labels": "owner", "annotations": "owned-by"} {
			texts, _, err := unstructured.NestedStringMap(u.Object, "metadata", field)
			if err != nil || texts["app"] != "web" || texts[mark] == "" {
				t.Errorf("%s: the %s are %v, %v", name, field, texts, err)
			}
			if before, ok := given.(map[string]any); ok && before[mark] != nil {
				t.Errorf("%s: the map that was given has become %v", name, before)
			}
		}
	}
	for _, object := range []metav1.Object{&unstructured.Unstructured{}, &corev1.ConfigMap{}} {
		normalize.Mark(object, map[string]string{"owner": "a"}, map[string]string{"owned-by": "b"})
		if object.GetLabels()["owner"] != "a" || object.GetAnnotations()["owned-by"] != "b" {
			t.Errorf("it is %v", object)
		}
	}
}
