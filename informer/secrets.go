package informer

import (
	"context"
	"encoding/json"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/operatorkit/operatorkit/context/secretscontext"
)

// helmRelease is the type of the Secrets in which Helm keeps its releases: what is in them is compressed, so that no text quotes it.
const helmRelease = "helm.sh/release.v1"

// MarkSecrets has what is read of a reconciliation scrubbed of the values of obj, if that is a Secret or a list of them, in whatever
// form, or if its method Sensitive says that it is to be treated so. See package secretscontext. The name of a Secret, its labels and the
// names of its values are not secret. A Reader does so by itself with what it is asked for.
func MarkSecrets(ctx context.Context, obj any) {
	switch o := obj.(type) {
	case nil:
	case *corev1.Secret:
		if o != nil {
			markSecret(ctx, o)
		}
	case *corev1.SecretList:
		for i := range o.Items {
			markSecret(ctx, &o.Items[i])
		}
	case *unstructured.Unstructured:
		if o != nil && isSecret(o.Object) {
			markUntyped(ctx, o)
		}
	case *unstructured.UnstructuredList:
		of := isSecret(o.Object)
		for i := range o.Items {
			if of || isSecret(o.Items[i].Object) {
				markUntyped(ctx, &o.Items[i])
			}
		}
	case interface{ Sensitive() bool }:
		if o.Sensitive() {
			secretscontext.AddAll(ctx, o)
		}
	}
}

// isSecret tells whether an untyped object is a Secret, or a list of them.
func isSecret(object map[string]any) bool {
	kind, _ := object["kind"].(string)
	return object["apiVersion"] == corev1.SchemeGroupVersion.String() && strings.TrimSuffix(kind, "List") == "Secret"
}

func markUntyped(ctx context.Context, u *unstructured.Unstructured) {
	if secretscontext.From(ctx) == nil {
		return
	}
	values := map[string]any{"type": u.Object["type"], "data": u.Object["data"], "stringData": u.Object["stringData"]}
	var s corev1.Secret
	encoded, err := json.Marshal(values)
	if err == nil {
		err = json.Unmarshal(encoded, &s)
	}
	if err != nil {
		secretscontext.AddAll(ctx, values) // It is none that a server has made, and may hold values as they are.
		return
	}
	markSecret(ctx, &s)
}

func markSecret(ctx context.Context, s *corev1.Secret) {
	if s.Type == helmRelease {
		return
	}
	for _, value := range s.Data {
		secretscontext.Add(ctx, string(value))
	}
	for _, value := range s.StringData {
		secretscontext.Add(ctx, value)
	}
}
