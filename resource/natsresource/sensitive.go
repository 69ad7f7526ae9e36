package natsresource

import (
	"context"
	"strings"

	"github.com/operatorkit/operatorkit/context/secretscontext"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/informer/natsinformer"
)

// shown are the metadata of sensitive entries whose values may be shown. Annotations and the messages of conditions are
// not among them: they may repeat the content.
var shown = []string{
	".labels", ".finalizers", ".ownerKey", ".ownerKind", ".deletionTimestamp",
	".annotations" + plan.Segment(MadeByAnnotation),
	".annotations" + plan.Segment(AppliedAnnotation),
}

// show returns the changes of an entry, without their values where these must not be shown.
func show[T natsinformer.Entity](it item[T], changes []plan.FieldChange) []plan.FieldChange {
	if it.Sensitive {
		plan.Hide(changes, showable[T])
	}
	return changes
}

// markSecrets has the values of a sensitive entry scrubbed from what is told of the reconciliation.
func markSecrets[T natsinformer.Entity](ctx context.Context, it item[T]) {
	if !it.Sensitive || secretscontext.From(ctx) == nil {
		return
	}
	fields, err := fieldsOf(it.Thing)
	if err != nil {
		return // It can't be written either, which is the error that counts.
	}
	for _, f := range plan.Diff(nil, fields) {
		if !showable[T](f.Path) {
			secretscontext.AddAll(ctx, f.New)
		}
	}
}

// showable tells whether the path leads to one of the shown fields. None does where metadata have no place of their own.
func showable[T natsinformer.Entity](path string) bool {
	meta := metaPath[T]()
	rest, ok := strings.CutPrefix(path, meta)
	return ok && meta != "" && plan.Below(rest, shown...)
}
