package natsresource

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/operatorkit/operatorkit/context/requeuecontext"
	"github.com/operatorkit/operatorkit/framework/identity"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/informer/natsinformer"
)

// decide returns what has to happen to a desired entry: an item with an action, or with none. An entry
// that was not found among the resource's own is looked up: it may belong to somebody else.
func (r *resource[O, T]) decide(ctx context.Context, p ownership, have item[T], found bool, want item[T]) (item[T], error) {
	if len(p.marks) > 1 {
		identity.Take(ctx, want.key.String())
	}
	if !found {
		var err error
		have, found, err = r.lookUp(want.key)
		if err != nil {
			return item[T]{}, unreadable(want, err)
		}
		if !found {
			return creation(want), nil
		}
	}
	have, err := r.claim(p, have)
	if err != nil {
		return item[T]{}, err
	}
	if have.content.GetDeletionTimestamp() != nil {
		if r.waits(have) {
			requeuecontext.SetAfter(ctx, vanishing)
			return item[T]{}, nil
		}
		requeuecontext.SetAfter(ctx, 0) // It is made anew once it is gone, and own writes wake nobody.
		return deletion(have), nil
	}
	return r.updating(have, want)
}

// unreadable drops a decoder's own words for a sensitive entry: they may quote it.
func unreadable[T natsinformer.Entity](want item[T], err error) error {
	if errors.Is(err, natsinformer.ErrUndecodable) {
		if want.sensitive {
			err = natsinformer.ErrUndecodable
		}
		return fmt.Errorf("refusing to overwrite %s: %w: mend or delete it", want.key, err)
	}
	return err
}

// creation is the change that creates an entry. Its fields are found out when somebody asks for them.
func creation[T natsinformer.Entity](want item[T]) item[T] {
	want.action = plan.Create
	return want
}

// updating is the change that makes have what is desired, without an action if it is that already.
func (r *resource[O, T]) updating(have, want item[T]) (item[T], error) {
	merged := r.merge(have.content, want.content)
	change, err := r.difference(have, merged)
	if err != nil || len(change) == 0 {
		return item[T]{}, err
	}
	if merged, err = r.nextGeneration(have.content, merged); err != nil {
		return item[T]{}, err
	}
	want.action, want.content, want.claim = plan.Update, merged, have.claim
	want.fields = want.show(change)
	return want, nil
}

// difference lists the fields in which an entry differs from what it should be.
func (r *resource[O, T]) difference(have item[T], merged T) ([]plan.FieldChange, error) {
	same, err := equal(have.content, merged)
	if err != nil || same {
		return nil, err
	}
	// What a codec does not keep, such as parts of a second, is no difference.
	stored, err := r.config.Bucket.Stored(merged)
	if err != nil {
		return nil, err
	}
	before, err := shownFields(have.content)
	if err != nil {
		return nil, err
	}
	after, err := shownFields(stored)
	if err != nil {
		return nil, err
	}
	return plan.Diff(before, after), nil
}

// nextGeneration counts a change of what is wanted, which is everything but the metadata.
func (r *resource[O, T]) nextGeneration(have, merged T) (T, error) {
	relabelled := copyOf(have)
	*relabelled.EntityMeta() = *merged.EntityMeta()
	same, err := equal(relabelled, merged)
	if err != nil {
		return merged, err
	}
	if !same {
		merged.EntityMeta().Generation++
	}
	return merged, nil
}

// equal compares the JSON of two entities. Those that are equal in Go are, which is found out faster.
func equal[T natsinformer.Entity](a, b T) (bool, error) {
	if reflect.DeepEqual(a, b) {
		return true, nil
	}
	x, err := json.Marshal(a)
	if err != nil {
		return false, fmt.Errorf("encode %s: %w", a.GetName(), err)
	}
	y, err := json.Marshal(b)
	if err != nil {
		return false, fmt.Errorf("encode %s: %w", b.GetName(), err)
	}
	return bytes.Equal(x, y), nil
}

// shownFields are the fields of an entity that a change may show.
func shownFields[T natsinformer.Entity](entity T) (map[string]any, error) {
	shown := copyOf(entity)
	volatile(shown.EntityMeta())
	return fieldsOf(shown)
}
