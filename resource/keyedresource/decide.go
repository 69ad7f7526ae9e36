package keyedresource

import (
	"context"
	"reflect"

	"github.com/operatorkit/operatorkit/context/secretscontext"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/resource/internal/keyed"
)

// Compare implements keyed.Backend.
func (r *things[O, T]) Compare(ctx context.Context, have *item[T], want item[T]) (item[T], error) {
	if have == nil {
		return r.changed(ctx, want, plan.Create, nil), nil
	}
	if r.config.Keep != nil {
		want.Thing = r.config.Keep(have.Thing, want.Thing)
	}
	change := r.changed(ctx, want, plan.Update, []T{have.Thing})
	if !have.Claim.IsFormer() && r.equal(have.Thing, change) {
		if have.Claim.Holder == keyed.Ours || r.journal == nil {
			return item[T]{}, nil
		}
		// It is put once more, so that the journal knows it: what that does not know is never deleted.
		change.Change.Description = "taken over as it is"
	}
	return change, nil
}

// equal tells whether a thing is as the change would make it.
func (r *resource[O, T]) equal(have T, change item[T]) bool {
	if r.config.Equal != nil {
		return r.config.Equal(have, change.Thing)
	}
	return len(change.Change.Fields) == 0 && change.Change.Description == "" || reflect.DeepEqual(have, change.Thing)
}

// changed returns the change of a thing with the fields that differ, as they may be shown. What must not be shown is scrubbed from all that
// is told of the reconciliation from now on.
func (r *resource[O, T]) changed(ctx context.Context, want item[T], action plan.Action, before []T) item[T] {
	want.Change.Action = action
	for _, c := range plan.Describe(action, []T{want.Thing}, before) {
		want.Change.Description = c.Description
		for _, f := range c.Fields {
			if r.config.Sensitive != nil && sensitive(f.Path, r.config.Sensitive) {
				secretscontext.AddAll(ctx, []any{f.Old, f.New})
				f = f.Hidden()
			}
			want.Change.Fields = append(want.Change.Fields, f)
		}
	}
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
