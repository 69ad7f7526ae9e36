package natsresource

import (
	"slices"

	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/informer/natsinformer"
	"github.com/operatorkit/operatorkit/resource/internal/keyed"
)

// State is a set of entries: those that are there, those that should be, or those that a part of a patch changes. It shows
// keys and changes only, never the content of an entry, and no values of sensitive ones.
type State[T natsinformer.Entity] = keyed.State[Key, item[T]]

// item is one entry of a state.
type item[T natsinformer.Entity] struct {
	key    Key
	action plan.Action
	// content is the entry: as it is, or as it is to be written.
	content   T
	sensitive bool
	// claim is that on the entry as it was before the change.
	claim keyed.Claim
	// fields are the changes of an update.
	fields []plan.FieldChange
}

// description says of an update whether it takes the entry over.
func (it item[T]) description() string {
	if it.action != plan.Update {
		return ""
	}
	return it.claim.Takeover()
}

// changes are the fields that change, as they may be shown.
func (it item[T]) changes() []plan.FieldChange {
	if it.action != plan.Create {
		return slices.Clone(it.fields)
	}
	fields, err := shownFields(it.content)
	if err != nil {
		return nil // It can't be written either, which is the error that counts.
	}
	return it.show(plan.Diff(nil, fields))
}

// Key implements keyed.Item.
func (it item[T]) Key() Key { return it.key }

// Action implements keyed.Item.
func (it item[T]) Action() plan.Action { return it.action }

// Held implements keyed.Item.
func (it item[T]) Held() keyed.Claim { return it.claim }

// Change implements keyed.Item. The namespace of an entry is its bucket.
func (it item[T]) Change() plan.Change {
	return plan.Change{Action: it.action, Object: it.object(), Fields: it.changes(), Description: it.description()}
}

// object names the entry in plans.
func (it item[T]) object() plan.Object {
	o := plan.Object{Kind: "Entry", Namespace: it.key.Bucket, Name: it.key.Name}
	if it.action != plan.Create {
		o.UID, o.Version = it.content.GetUID(), it.content.EntityMeta().GetResourceVersion()
	}
	return o
}
