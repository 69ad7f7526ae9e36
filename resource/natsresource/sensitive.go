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
func (it item[T]) show(changes []plan.FieldChange) []plan.FieldChange {
	if it.sensitive {
		plan.Hide(changes, showable[T])
	}
	return changes
}

// mark has the values of a sensitive entry scrubbed from what is told of the reconciliation.
func (it item[T]) mark(ctx context.Context) {
	if !it.sensitive || secretscontext.From(ctx) == nil {
		return
	}
	fields, err := fieldsOf(it.content)
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
