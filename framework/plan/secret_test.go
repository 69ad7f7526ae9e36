package plan_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/operatorkit/operatorkit/framework/plan"
)

// token is a value that its author marks as secret.
type token string

func (token) Sensitive() bool { return true }

// String would give the token away.
func (t token) String() string { return string(t) }

// wrapped is an object of the author's with a Secret inside.
type wrapped struct {
	corev1.Secret
	Extra string
}

// sealed is a Kubernetes object that its author marks as secret.
type sealed struct{ corev1.ConfigMap }

func (*sealed) Sensitive() bool { return true }

// manifests are a value that is JSON itself, and holds what it is made of.
type manifests struct{ password string }

func (m manifests) MarshalJSON() ([]byte, error) {
	return json.Marshal([]any{untyped(m.password).Object})
}

// vault is a state with secrets in several forms.
type vault struct {
	Name   string
	Key    token
	secret *corev1.Secret
	Any    any
}

func secret(password string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: "token", Labels: map[string]string{"tier": "web"},
			Annotations: map[string]string{
				"kubectl.kubernetes.io/last-applied-configuration": `{"stringData":{"password":"` + password + `"}}`,
				"operatorkit.io/resource":                          "tokens",
			},
		},
		Type: corev1.SecretTypeOpaque,
		Data: map[string][]byte{"password": []byte(password)},
	}
}

func untyped(password string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "token", "annotations": map[string]any{"copy": password}},
		"stringData": map[string]any{"password": password},
	}}
}

// R14: whatever the form in which a part holds a secret, a plan shows that it changes, and not what it is.
func TestR14NoFormOfASecretIsInAPlan(t *testing.T) {
	for name, tc := range map[string]struct {
		part func(password string) any
		// changed is a line of the update.
		changed string
	}{
		"a typed Secret": {
			func(p string) any { return secret(p) },
			"  data.password: (sensitive, changed)",
		},
		"text": {
			func(p string) any { return &corev1.Secret{StringData: map[string]string{"password": p}} },
			"  data.password: (sensitive, changed)",
		},
		"a list": {
			func(p string) any { return &corev1.SecretList{Items: []corev1.Secret{*secret(p)}} },
			"  data.password: (sensitive, changed)",
		},
		"an untyped Secret": {
			func(p string) any { return []*unstructured.Unstructured{untyped(p)} },
			"  data.password: (sensitive, changed)",
		},
		"an untyped list": {
			func(p string) any {
				return &unstructured.UnstructuredList{Items: []unstructured.Unstructured{*untyped(p)}}
			},
			"  data.password: (sensitive, changed)",
		},
		"metadata": {
			func(p string) any {
				return &metav1.PartialObjectMetadata{
					TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: secret(p).ObjectMeta,
				}
			},
			`  metadata.annotations["kubectl.kubernetes.io/last-applied-configuration"]: (sensitive, changed)`,
		},
		"an object of the author's around one": {
			func(p string) any { return &wrapped{Secret: *secret(p), Extra: "x"} },
			"  data.password: (sensitive, changed)",
		},
		"an object that is marked": {
			func(p string) any { return &sealed{*configMap("a", map[string]string{"password": p})} },
			"  data.password: (sensitive, changed)",
		},
		"a value that is marked": {
			func(p string) any { return token(p) },
			"update token: (sensitive, changed)",
		},
		"values that are marked": {
			func(p string) any { return map[string]token{"x": token(p)} },
			"update token x: (sensitive, changed)",
		},
		"a struct": {
			func(p string) any { return vault{Name: "v", Key: token(p)} },
			"  Key: (sensitive, changed)",
		},
		"a field that is not exported": {
			func(p string) any { return &vault{Name: "v", secret: secret(p)} },
			"  secret.data.password: (sensitive, changed)",
		},
		"a list in a field": {
			func(p string) any { return vault{Name: "v", Any: []any{"public", token(p)}} },
			"  Any: (sensitive, changed)",
		},
		"JSON": {
			func(p string) any { return manifests{p} },
			"update manifests: (sensitive)",
		},
		"JSON in a field": {
			func(p string) any {
				b, _ := json.Marshal(untyped(p))
				return vault{Name: "v", Any: runtime.RawExtension{Raw: b}}
			},
			"  Any.data.password: (sensitive, changed)",
		},
		"an untyped object around one": {
			func(p string) any {
				return &unstructured.Unstructured{Object: map[string]any{
					"kind": "Website", "metadata": map[string]any{"name": "a"}, "spec": map[string]any{"objects": []any{untyped(p).Object}},
				}}
			},
			"  spec.objects[0].data.password: (sensitive, changed)",
		},
		"a changer": {
			func(p string) any {
				return teller{[]plan.Change{{
					Object: plan.Object{APIVersion: "v1", Kind: "Secret", Name: "token"},
					Fields: []plan.FieldChange{
						{Path: "data.password", Old: p + "x", New: p}, {Path: "data", New: secret(p)}, {Path: "metadata.labels.x", New: "shown"},
					},
				}}}
			},
			"  data.password: (sensitive, changed)",
		},
		"a changer with Go values": {
			func(p string) any {
				return teller{[]plan.Change{{
					Object: plan.Object{Name: "v"},
					Fields: []plan.FieldChange{{Path: "secret", Old: secret("x" + p), New: secret(p)}, {Path: "token", New: token(p)}},
				}}}
			},
			"  secret: (sensitive, changed)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			first, second := "hunter2-and-more", "correct-horse"
			create := plan.Describe(plan.Create, tc.part(first), nil)
			update := plan.Describe(plan.Update, tc.part(second), tc.part(first))
			remove := plan.Describe(plan.Delete, tc.part(second), nil)
			if len(create) == 0 || len(update) == 0 || len(remove) == 0 {
				t.Fatal("a change is missing")
			}
			if got := lines(update); !strings.Contains(strings.Join(got, "\n")+"\n", tc.changed+"\n") {
				t.Errorf("the update %q lacks %q", got, tc.changed)
			}
			for _, changes := range [][]plan.Change{create, update, remove} {
				wantHidden(t, shownForms(t, changes), first, second)
			}
		})
	}
}

// shownForms is everything in which changes can be seen.
func shownForms(t *testing.T, changes []plan.Change) string {
	t.Helper()
	p := &plan.Plan{Resources: []plan.Resource{{Name: "r", Changes: changes}}}
	b, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%s\n%v\n%+v\n%#v\n%s\n%q", lines(changes), changes, changes, changes, b, changes)
}

func wantHidden(t *testing.T, shown string, secrets ...string) {
	t.Helper()
	for _, s := range secrets {
		for _, form := range []string{s, strings.TrimRight(base64.StdEncoding.EncodeToString([]byte(s)), "="), fmt.Sprintf("%d", []byte(s)), fmt.Sprintf("%x", s)} {
			if strings.Contains(shown, strings.Trim(form, "[]")) {
				t.Errorf("%q is shown as %q in:\n%s", s, form, shown)
			}
		}
	}
}

func TestOfASecretIsShownWhatIsNotSecret(t *testing.T) {
	before, after := secret("a"), secret("a")
	after.Labels["tier"] = "db"
	after.Data["new"] = []byte("x")
	delete(after.Data, "password")
	got := lines(plan.Describe(plan.Update, after, before))
	want := []string{
		"update Secret default/token",
		"  data.new: (sensitive)",
		"  data.password: (sensitive, removed)",
		`  metadata.labels.tier: "web" -> "db"`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAKindOfTheSameNameInAnotherGroupIsNoSecret(t *testing.T) {
	external := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Secret", "metadata": map[string]any{"name": "a"}, "spec": "shown",
	}}
	got := lines(plan.Describe(plan.Create, external, nil))
	if diff := cmp.Diff([]string{"create Secret a", `  spec: "shown"`}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
