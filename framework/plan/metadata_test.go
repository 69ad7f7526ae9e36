package plan_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/operatorkit/operatorkit/framework/plan"
)

func metadata(annotations map[string]string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: "a", Labels: map[string]string{"env": "prod"}, Annotations: annotations}
}

func TestChangesHaveTheLabelsAndAnnotationsOfTheObjectAsItIs(t *testing.T) {
	given := map[string]string{"owner": "ada", corev1.LastAppliedConfigAnnotation: `{"data":{"a":"b"}}`, "copy": `{"kind":"Secret","data":{"p":"aGVsbG8="}}`}
	current := &corev1.ConfigMap{ObjectMeta: metadata(given), Data: map[string]string{"a": "1"}}
	desired := &corev1.ConfigMap{ObjectMeta: metadata(map[string]string{"owner": "bob"}), Data: map[string]string{"a": "2"}}
	desired.Labels = map[string]string{"env": "test"}
	for action, test := range map[plan.Action]struct {
		part       any
		env, owner string
	}{
		plan.Create: {desired, "test", "bob"},
		plan.Update: {desired, "prod", "ada"},
		plan.Delete: {current, "prod", "ada"},
	} {
		got := plan.Describe(action, test.part, current)[0]
		want := plan.Change{Labels: map[string]string{"env": test.env}, Annotations: map[string]string{"owner": test.owner}}
		if diff := cmp.Diff(want, plan.Change{Labels: got.Labels, Annotations: got.Annotations}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", action, diff)
		}
	}
}

func TestR14AnnotationsOfSecretsAreNotInChanges(t *testing.T) {
	annotations := map[string]string{"note": "hunter2", "operatorkit.io/owner": "me"}
	untyped := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Secret"}}
	untyped.SetAnnotations(annotations)
	for _, secret := range []any{&corev1.Secret{ObjectMeta: metadata(annotations)}, untyped} {
		got := plan.Describe(plan.Delete, secret, nil)[0].Annotations
		if diff := cmp.Diff(map[string]string{"operatorkit.io/owner": "me"}, got); diff != "" {
			t.Errorf("%T (-want +got):\n%s", secret, diff)
		}
	}
}

func TestVerdictsLabelsAndAnnotationsAreNoPartOfWhatIsCompared(t *testing.T) {
	one := func(label string, verdicts ...plan.GuardVerdict) *plan.Plan {
		change := plan.Change{Action: plan.Delete, Object: plan.Object{Name: "a"}, Labels: map[string]string{"x": label}, Annotations: map[string]string{"y": label}}
		return &plan.Plan{Resources: []plan.Resource{{Name: "r", Changes: []plan.Change{change}, Verdicts: verdicts}}}
	}
	a, b := one("1"), one("2", plan.GuardVerdict{Guard: "g", Action: plan.Denied})
	if !plan.Equal(a, b) || plan.Difference(a, b) != "" {
		t.Errorf("they differ: %s", plan.Difference(a, b))
	}
	if a.Denied() || !b.Denied() {
		t.Error("only the second one is denied")
	}
}

func TestScrubHidesWhatIsKnownInLabelsAndAnnotations(t *testing.T) {
	given := []plan.Change{{Labels: map[string]string{"a": "known"}, Annotations: map[string]string{"known": "b"}}}
	got := plan.Scrub(given, func(text string) string { return strings.ReplaceAll(text, "known", "(sensitive)") })[0]
	if got.Labels["a"] != "(sensitive)" || got.Annotations["(sensitive)"] != "b" || given[0].Labels["a"] != "known" {
		t.Errorf("got %v, given %v", got, given)
	}
}

// password is a value that hides itself.
type password string

func (password) Sensitive() bool { return true }

func TestR14ShownHidesWhatMustNotBeShown(t *testing.T) {
	secret := &corev1.Secret{ObjectMeta: metadata(map[string]string{"note": "hunter2"}), Data: map[string][]byte{"p": []byte("hunter2")}, Type: "Opaque"}
	withText := &corev1.ConfigMap{ObjectMeta: metadata(nil), Data: map[string]string{"s": "kind: Secret\ndata:\n  p: hunter2", "known": "is known"}}
	other := struct {
		Name  string
		Token password
	}{"a", "hunter2"}
	for name, test := range map[string]struct {
		value any
		want  []string
	}{
		"a Secret":        {secret, []string{`"kind":"Secret"`, `"p":"(sensitive)"`, `"env":"prod"`, `"type":"Opaque"`}},
		"one in a text":   {withText, []string{`"s":"(sensitive)"`, `"known":"is (scrubbed)"`, `"name":"a"`}},
		"any other value": {other, []string{`"Name":"a"`, `"Token":"(sensitive)"`}},
		"nothing":         {(*corev1.Secret)(nil), []string{"null"}},
	} {
		scrub := func(text string) string {
			if strings.HasPrefix(text, "is ") {
				return "is (scrubbed)"
			}
			return text
		}
		text, err := json.Marshal(plan.Shown(test.value, scrub))
		if err != nil || strings.Contains(string(text), "hunter2") || strings.Contains(string(text), "aHVudGVyMg") {
			t.Errorf("%s: %s, %v", name, text, err)
		}
		for _, want := range test.want {
			if !strings.Contains(string(text), want) {
				t.Errorf("%s: %s lacks %s", name, text, want)
			}
		}
	}
	if secret.Data["p"] == nil || string(secret.Data["p"]) != "hunter2" {
		t.Error("the object was changed")
	}
}
