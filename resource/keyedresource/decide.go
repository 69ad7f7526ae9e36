package keyedresource

import (
	"context"
	"reflect"
	"strings"

	"github.com/operatorkit/operatorkit/context/secretscontext"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/resource/internal/keyed"
)

// Compare implements keyed.Backend.
func (r *things[O, T]) Compare(ctx context.Context, have *item[T], want item[T]) (item[T], error) {
	if have == nil {
		return r.changed(ctx, want, plan.Create, nil), nil
	}
	want.claim = have.claim
	if r.config.Keep != nil {
		want.content = r.config.Keep(have.content, want.content)
	}
	change := r.changed(ctx, want, plan.Update, []T{have.content})
	if !have.claim.IsFormer() && r.equal(have.content, change) {
		if have.claim.Holder == keyed.Ours || r.journal == nil {
			return item[T]{}, nil
		}
		// It is put once more, so that the journal knows it: what that does not know is never deleted.
		change.description = "taken over as it is"
	}
	return change, nil
}

// equal tells whether a thing is as the change would make it.
func (r *resource[O, T]) equal(have T, change item[T]) bool {
	if r.config.Equal != nil {
		return r.config.Equal(have, change.content)
	}
	return len(change.fields) == 0 && change.description == "" || reflect.DeepEqual(have, change.content)
}

// changed returns the change of a thing with the fields that differ, as they may be shown. What must not be shown is scrubbed from all that
// is told of the reconciliation from now on.
func (r *resource[O, T]) changed(ctx context.Context, want item[T], action plan.Action, before []T) item[T] {
	want.action = action
	for _, c := range plan.Describe(action, []T{want.content}, before) {
		want.description = c.Description
		for _, f := range c.Fields {
			if r.config.Sensitive != nil && sensitive(f.Path, r.config.Sensitive) {
				secretscontext.AddAll(ctx, []any{f.Old, f.New})
				f = f.Hidden()
			}
			want.fields = append(want.fields, f)
		}
	}
	want.description = strings.Trim(want.description+"; "+want.claim.Takeover(), "; ")
	return want
}

// sensitive tells whether a path is that of a field that must not be shown, or of one in it.
func sensitive(path string, is func(string) bool) bool {
	for i, c := range path {
		if (c == '.' || c == '[') && i > 0 && is(path[:i]) {
			return true
		}
	}
	return is(path)
}
