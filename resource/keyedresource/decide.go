package keyedresource

import (
	"context"
	"reflect"
	"strings"

	"github.com/operatorkit/operatorkit/context/secretscontext"
	"github.com/operatorkit/operatorkit/framework/identity"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/resource/internal/keyed"
)

// decision is what is to be decided of a desired thing: what is there of it.
type decision[T any] struct {
	current    State[T]
	want, have item[T]
	found      bool
}

// decide returns what has to happen to a desired thing: an item with the action Create or Update, or with none.
func (r *resource[O, T]) decide(ctx context.Context, obj O, own ownership, d decision[T]) (item[T], error) {
	if len(own.marks) > 1 {
		identity.Take(ctx, d.want.key.String())
	}
	if !d.found {
		d.have, d.found = d.current.others[d.want.key]
	}
	if !d.found && r.config.Get != nil && !d.current.journal.has(d.want.key.Name) {
		have, found, err := r.look(ctx, obj, d.want.key)
		if err != nil {
			return item[T]{}, err
		}
		if found {
			have.claim = r.claimOn(own, d.current.journal, have, false)
		}
		d.have, d.found = have, found
	}
	if !d.found {
		return r.changed(ctx, d.want, plan.Create, nil), nil
	}
	c := d.have.claim
	if !c.inherited && !c.Writable(r.config.Adopt) {
		return item[T]{}, &RefusedError{Thing: d.want.key, Reason: c.Reason, Adoptable: c.Holder == keyed.Free}
	}
	d.want.claim = c
	if r.config.Keep != nil {
		d.want.content = r.config.Keep(d.have.content, d.want.content)
	}
	change := r.changed(ctx, d.want, plan.Update, []T{d.have.content})
	if !c.IsFormer() && r.equal(d.have.content, change) {
		if c.Holder == keyed.Ours || d.current.journal == nil {
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
