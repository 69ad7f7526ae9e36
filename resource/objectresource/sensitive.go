package objectresource

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/operatorkit/operatorkit/context/secretscontext"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/resource/internal/serverside"
)

// mark has the values of sensitive objects scrubbed from what is told of the reconciliation.
func mark(ctx context.Context, items ...item) {
	if secretscontext.From(ctx) == nil {
		return
	}
	for _, it := range items {
		switch {
		case isSecret(it.Thing.key.GVK):
			informer.MarkSecrets(ctx, it.Thing.content)
		case it.Sensitive:
			for name, field := range it.Thing.content.Object {
				if !plan.ShownOfSecret(name) && name != "metadata" {
					secretscontext.AddAll(ctx, field)
				}
			}
		}
	}
}

// requestError says what was being done when the API server refused. Of a sensitive object it drops the server's own
// words, which may quote values.
func requestError(doing string, it item, err error) error {
	if err == nil {
		return nil
	}
	if it.Sensitive {
		err = serverside.WithoutWords(err)
	}
	if apierrors.IsInvalid(err) && it.Change.Action != plan.Create {
		return fmt.Errorf("%s %s: %w (a field that can't be changed takes deleting the object first, "+
			"which is what Config.Replace is for)", doing, it.Key, err)
	}
	return fmt.Errorf("%s %s: %w", doing, it.Key, err)
}
