package keyedresource

import (
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/resource/internal/keyed"
)

// State is a set of things: those that are there, those that should be, or those that a part of a patch changes. It shows
// keys and changes only, and no values of sensitive fields.
type State[T any] = keyed.State[Key, item[T]]

// Key names a thing. It is comparable.
type Key struct {
	// Kind is Config.Kind.
	Kind string
	// Name is what Config.Key returns.
	Name string
}

// String returns the key as it stands in errors, such as "Record home.example.com".
func (k Key) String() string { return k.Kind + " " + k.Name }

// item is one thing of a state.
type item[T any] struct {
	key    Key
	action plan.Action
	// content is the thing: as it is, or as it is to be put.
	content T
	claim   keyed.Claim
	fields  []plan.FieldChange
	// description says in words what happens, if fields don't.
	description string
}

// Key implements keyed.Item.
func (it item[T]) Key() Key { return it.key }

// Action implements keyed.Item.
func (it item[T]) Action() plan.Action { return it.action }

// Held implements keyed.Item.
func (it item[T]) Held() keyed.Claim { return it.claim }

// Change implements keyed.Item.
func (it item[T]) Change() plan.Change {
	return plan.Change{
		Action: it.action, Object: plan.Object{Kind: it.key.Kind, Name: it.key.Name}, Fields: it.fields, Description: it.description,
	}
}
