package informer

import (
	"context"
	"encoding/base64"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/operatorkit/operatorkit/context/secretscontext"
)

// helmRelease is the type of the Secrets in which Helm keeps its releases. Their content is
// compressed, so no text quotes it.
const helmRelease = "helm.sh/release.v1"

// MarkSecrets makes the values of obj secret in the reconciliation of ctx (package secretscontext)
// if obj is a Secret or a list of Secrets, typed or not, or if its method Sensitive returns true.
// The name of a Secret, its labels and the names of its values are not secret. A Reader calls it
// for the objects it reads.
func MarkSecrets(ctx context.Context, obj any) {
	switch o := obj.(type) {
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
			markUntyped(ctx, o.Object)
		}
	case *unstructured.UnstructuredList:
		for _, item := range o.Items {
			if isSecret(o.Object) || isSecret(item.Object) {
				markUntyped(ctx, item.Object)
			}
		}
	case interface{ Sensitive() bool }:
		if o.Sensitive() {
			secretscontext.AddAll(ctx, o)
		}
	}
}

// isSecret reports whether an untyped object is a Secret, or a list of them.
func isSecret(object map[string]any) bool {
	kind, _ := object["kind"].(string)
	return object["apiVersion"] == corev1.SchemeGroupVersion.String() && strings.TrimSuffix(kind, "List") == "Secret"
}

func markUntyped(ctx context.Context, object map[string]any) {
	if object["type"] == helmRelease {
		return
	}
	secretscontext.AddAll(ctx, object["stringData"])
	data, _ := object["data"].(map[string]any)
	for _, value := range data {
		text, _ := value.(string)
		if decoded, err := base64.StdEncoding.DecodeString(text); err == nil {
			text = string(decoded)
		}
		secretscontext.Add(ctx, text)
	}
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
