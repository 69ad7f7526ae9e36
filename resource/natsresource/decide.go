package natsresource

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/operatorkit/operatorkit/context/requeuecontext"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/informer/natsinformer"
	"github.com/operatorkit/operatorkit/resource/internal/keyed"
)

// Compare implements keyed.Backend. An entry that is being deleted is created anew once it is gone.
func (r *entries[O, T]) Compare(ctx context.Context, existing *item[T], want item[T]) (item[T], error) {
	if existing == nil {
		creation := want
		creation.Change.Action = plan.Create
		creation.Created = func() []plan.FieldChange {
			fields, err := shownFields(want.Thing)
			if err != nil {
				return nil // It can't be written either, which is the error that counts.
			}
			return show(want, plan.Diff(nil, fields))
		}
		return creation, nil
	}
	have := *existing
	if have.Thing.GetDeletionTimestamp() != nil {
		deletion, waits := r.Deletion(have)
		if waits {
			requeuecontext.SetAfter(ctx, keyed.Vanishing)
		} else {
			requeuecontext.SetAfter(ctx, 0) // Own writes wake nobody.
		}
		return deletion, nil
	}
	merged := r.merge(have.Thing, want.Thing)
	change, err := r.difference(have, merged)
	if err != nil || len(change) == 0 {
		return item[T]{}, err
	}
	if merged, err = r.nextGeneration(have.Thing, merged); err != nil {
		return item[T]{}, err
	}
	want.Thing = merged
	want.Change = plan.Change{Action: plan.Update, Object: have.Change.Object, Fields: show(want, change)}
	return want, nil
}

// difference lists the fields in which an entry differs from what it should be.
func (r *resource[O, T]) difference(have item[T], merged T) ([]plan.FieldChange, error) {
	same, err := equal(have.Thing, merged)
	if err != nil || same {
		return nil, err
	}
	// What a codec does not keep, such as parts of a second, is no difference.
	stored, err := r.config.Bucket.Stored(merged)
	if err != nil {
		return nil, err
	}
	before, err := shownFields(have.Thing)
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
