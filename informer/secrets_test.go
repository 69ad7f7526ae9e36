package informer_test

import (
	"encoding/base64"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/operatorkit/operatorkit/context/secretscontext"
	"github.com/operatorkit/operatorkit/informer"
)

// guarded is an object that says that it is sensitive.
type guarded struct{ Inner map[string]string }

func (guarded) Sensitive() bool { return true }

func TestR14TheValuesOfASecretAreKnownInWhateverFormItIsRead(t *testing.T) {
	const value = "hunter2-and-more"
	encoded := base64.StdEncoding.EncodeToString([]byte(value))
	data := map[string]any{"password": encoded}
	whole := map[string]any{"apiVersion": "v1", "kind": "Secret", "data": data}
	for name, obj := range map[string]any{
		"typed":             &corev1.Secret{Data: map[string][]byte{"password": []byte(value)}},
		"text":              &corev1.Secret{StringData: map[string]string{"password": value}},
		"a list":            &corev1.SecretList{Items: []corev1.Secret{{Data: map[string][]byte{"password": []byte(value)}}}},
		"untyped":           &unstructured.Unstructured{Object: whole},
		"untyped text":      &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Secret", "stringData": map[string]string{"a": value}}},
		"untyped, not read": &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Secret", "data": map[string]any{"a": value}}},
		"an untyped list":   &unstructured.UnstructuredList{Items: []unstructured.Unstructured{{Object: whole}}},
		"a list without kinds": &unstructured.UnstructuredList{
			Object: map[string]any{"apiVersion": "v1", "kind": "SecretList"}, Items: []unstructured.Unstructured{{Object: map[string]any{"data": data}}},
		},
		"what is sensitive": guarded{map[string]string{"a": value}},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := secretscontext.NewContext(t.Context())
			informer.MarkSecrets(ctx, obj)
			if got := secretscontext.Scrub(ctx, value+" "+encoded); got != "(sensitive) (sensitive)" {
				t.Errorf("a text with it becomes %q", got)
			}
			informer.MarkSecrets(t.Context(), obj) // without a reconciliation it has no effect
		})
	}
	for name, obj := range map[string]any{
		"nothing":           nil,
		"no Secret":         (*corev1.Secret)(nil),
		"another kind":      &corev1.ConfigMap{Data: map[string]string{"a": value}},
		"a release of Helm": &corev1.Secret{Type: "helm.sh/release.v1", Data: map[string][]byte{"release": []byte(value)}},
	} {
		ctx := secretscontext.NewContext(t.Context())
		if informer.MarkSecrets(ctx, obj); !secretscontext.From(ctx).Empty() {
			t.Errorf("%s has secret values", name)
		}
	}
}
